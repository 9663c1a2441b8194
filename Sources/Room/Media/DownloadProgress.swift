package import TuttiTiming

/// What a person reads while a large address loads: now and then one line, so that nobody wonders
/// whether anything happens; nothing of what is loaded soon.
package struct DownloadProgress {
    /// Between two lines: often enough to see it move, seldom enough for a log.
    static let interval = Nanoseconds.seconds(5)

    private let name: String
    private var saidAt: LocalInstant

    package init(_ name: String, at now: LocalInstant) {
        self.name = name
        saidAt = now
    }

    /// - Parameters:
    ///   - held: bytes so far.
    ///   - whole: bytes of all; `nil` where the server does not say.
    /// - Returns: `nil` when the last line was said only just now.
    package mutating func line(_ held: Int64, of whole: Int64?, at now: LocalInstant) -> String? {
        guard now - saidAt >= Self.interval else { return nil }
        saidAt = now
        return "loading \(name): \(Self.part(held, of: whole))"
    }

    /// `3 of 40 MB`.
    package static func part(_ held: Int64, of whole: Int64?) -> String {
        let megabyte: Int64 = 1_000_000
        let part = whole.map { "\(held / megabyte) of \(max(1, $0 / megabyte)) MB" }
        return part ?? "\(held / megabyte) MB"
    }
}
