import Dispatch
import Glibc
import Synchronization
import TuttiRoom

/// Asks whoever sits at the leader's terminal about machines that want to join.
///
/// The terminal is read only while there is something to decide, and only in the foreground: a
/// leader that was sent to the background would be stopped by it. What an answer means is decided by
/// ``PairingQuestion``.
final class PairingPrompt: Sendable {
    private let node: LeaderNode
    private let question = Mutex(PairingQuestion())
    private let queue = DispatchQueue(label: "tutti.pairing")

    init(_ node: LeaderNode) { self.node = node }

    /// Asks until the task ends; nothing where nobody can type.
    func run() async {
        guard isatty(STDIN_FILENO) == 1, Terminal.error.isInteractive else { return }
        // Read in the background by mistake, the terminal answers with an error instead.
        signal(SIGTTIN, SIG_IGN)
        var source: (any DispatchSourceRead)?
        defer { source?.cancel() }
        for await candidates in node.candidates {
            question.withLock { question in
                // Of before there was anything to answer, or about others.
                if question.isNews(candidates) { Self.dropWhatIsTyped() }
                for line in question.change(to: candidates) { Terminal.error.say(line) }
            }
            if candidates.isEmpty {
                source?.cancel()
                source = nil
            } else if source == nil {
                source = listen()
            }
        }
    }

    /// In the background the terminal is somebody else's, and so is what is typed.
    private static func dropWhatIsTyped() {
        guard tcgetpgrp(STDIN_FILENO) == getpgrp() else { return }
        tcflush(STDIN_FILENO, TCIFLUSH)
    }

    private func listen() -> any DispatchSourceRead {
        let source = DispatchSource.makeReadSource(fileDescriptor: STDIN_FILENO, queue: queue)
        source.setEventHandler { [weak self] in
            guard tcgetpgrp(STDIN_FILENO) == getpgrp() else { return }
            self?.take { source.cancel() }
        }
        source.activate()
        return source
    }

    /// Reads a line and does what it says.
    private func take(atEnd: () -> Void) {
        // Together: no other question comes between the line and what it answers.
        let decision = question.withLock { question -> PairingQuestion.Decision? in
            // What was typed may have been thrown away since it was noticed.
            var terminal = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
            guard poll(&terminal, 1, 0) > 0 else { return nil }
            var bytes = [UInt8](repeating: 0, count: 256)
            let count = read(STDIN_FILENO, &bytes, bytes.count)
            guard count > 0 else {
                atEnd()
                return nil
            }
            return question.answer(String(decoding: bytes[..<count], as: UTF8.self))
        }
        do throws(RoomError) {
            switch decision {
            case .accept(let digits)?: try node.accept(digits)
            case .decline(let digits)?: try node.decline(digits)
            case .say(let line)?: Terminal.error.say(line)
            case nil: break
            }
        } catch {
            Terminal.error.say("tutti: \(error)")
        }
    }
}
