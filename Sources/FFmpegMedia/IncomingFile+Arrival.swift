import TuttiPlayout

extension IncomingFile {
    /// How much of a file is here, and whether more will come.
    ///
    /// A value: the file does what it says.
    enum Arrival {
        /// The beginning of the file, where it can be read, all of it right.
        struct Bytes {
            var file: OpenFile
            var held: Int64
        }

        /// Its fetch waits. Until that is under way, readers may ask the server for so many bytes.
        case announced(mayAsk: Int64)
        /// It comes to where nobody reads it: another one fetches it, or nobody can say before its
        /// end whether it is right.
        case unseen(held: Int64)
        /// It comes, or has come, to where it is read.
        case seen(Bytes)
        /// No more will come. What is there stays good.
        case ended(MediaError, Bytes?)

        /// What can be read.
        var bytes: Bytes? {
            switch self {
            case .announced, .unseen: nil
            case .seen(let bytes): bytes
            case .ended(_, let bytes): bytes
            }
        }

        /// Bytes that have come, from the beginning.
        var held: Int64 {
            if case .unseen(let held) = self { return held }
            return bytes?.held ?? 0
        }

        var failure: MediaError? {
            if case .ended(let error, _) = self { return error }
            return nil
        }

        /// The fetch is under way.
        mutating func begin(in file: OpenFile?, holding count: Int64) {
            let new = file.map { Bytes(file: $0, held: count) }
            switch self {
            case .announced: self = new.map { .seen($0) } ?? .unseen(held: 0)
            // What was read so far is read on, also while another one fetches it.
            case .unseen, .seen: if let new { self = .seen(new) }
            case .ended(let error, let old): self = .ended(error, new ?? old)
            }
        }

        mutating func reach(_ count: Int64) {
            switch self {
            case .announced: preconditionFailure("bytes came before their fetch was under way")
            case .unseen: self = .unseen(held: count)
            case .seen(var bytes):
                bytes.held = count
                self = .seen(bytes)
            case .ended(let error, var bytes):
                bytes?.held = count
                self = .ended(error, bytes)
            }
        }

        /// What had come is gone, or is not to be read any more.
        mutating func lose() {
            switch self {
            case .announced: break
            case .unseen, .seen: self = .unseen(held: 0)
            case .ended(let error, _): self = .ended(error, nil)
            }
        }

        mutating func end(_ error: MediaError) { self = .ended(error, bytes) }

        /// A reader asked for so many bytes.
        mutating func ask(_ count: Int64) {
            if case .announced(let mayAsk) = self { self = .announced(mayAsk: mayAsk - count) }
        }
    }
}
