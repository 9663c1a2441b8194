public import Logging
import NIOCore
import Synchronization
import TuttiLinuxHost
import TuttiTiming

import func Glibc.localtime_r
import func Glibc.strftime
import func Glibc.time
import struct Glibc.time_t
import struct Glibc.tm

/// A node's log for people: what happened, why, and the figures last; the same again is counted.
///
///     2026-11-27T13:04:43+0000 warning: a room cannot play: no such codec (room=bath)
///
/// Lines of `info` and above pass ``RepeatedLine``. What is below is for who looks for a fault, and
/// is written as it comes, with the module that says it.
public struct NodeLog: LogHandler {
    public var logLevel = Logger.Level.info
    public var metadata: Logger.Metadata = [:]
    public var metadataProvider: Logger.MetadataProvider?
    private let writer: Writer

    /// - Parameter write: takes a line without its end, or says that nobody reads at the moment: the
    ///   line is kept then and offered again. It must not wait, as whoever logs would wait for it.
    ///   May be called by several threads, one at a time.
    public init(write: @escaping @Sendable (String) -> Bool) { writer = Writer(write) }

    public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    public func log(event: LogEvent) {
        var values = metadata
        values.merge(metadataProvider?.get() ?? [:]) { $1 }
        values.merge(event.metadata ?? [:]) { $1 }
        let text = Self.text(event.message.description, values)
        guard event.level >= .info else {
            return writer.write("\(event.level) \(event.source): \(text)")
        }
        writer.write(
            "\(event.level): \(text)", kind: "\(event.level): \(event.message)")
    }

    /// Said as words rather than as figures, in this order.
    private static let words = ["reason", "error"]

    /// The message, why, and the figures.
    static func text(_ message: String, _ metadata: Logger.Metadata) -> String {
        let reasons = words.compactMap { metadata[$0] }.map { ": \($0)" }.joined()
        let figures = metadata.filter { !words.contains($0.key) }.sorted { $0.key < $1.key }
            .map { "\($0.key)=\($0.value)" }.joined(separator: " ")
        return message + reasons + (figures.isEmpty ? "" : " (\(figures))")
    }

    /// Shared by all copies of a handler.
    private final class Writer: Sendable {
        private struct State {
            var lines = RepeatedLine()
            /// Somebody will write what was counted.
            var isAlarmSet = false
            /// What nobody has read yet, in order, and how many more there were.
            var unread: [String] = []
            var lost = 0
        }
        private let state = Mutex(State())
        private let output: @Sendable (String) -> Bool

        /// Lines kept for a terminal that stands still; the newest are lost, as they would be read
        /// last.
        static let mostUnread = 500
        /// Between two looks whether somebody reads again.
        private static let unreadInterval = Nanoseconds.milliseconds(500)

        init(_ output: @escaping @Sendable (String) -> Bool) { self.output = output }

        func write(_ line: String) { state.withLock { put(line, &$0) } }

        private func put(_ line: String, _ state: inout State) {
            putUnread(&state)
            let line = "\(Self.now()) \(line)"
            if state.unread.isEmpty, output(line) { return }
            if state.unread.count < Self.mostUnread {
                state.unread.append(line)
            } else {
                state.lost += 1
            }
            setAlarm(&state)
        }

        private func putUnread(_ state: inout State) {
            while let first = state.unread.first, output(first) { state.unread.removeFirst() }
            guard state.unread.isEmpty, state.lost > 0 else { return }
            let text = "warning: \(state.lost) lines of this log were lost: nobody read them"
            if output("\(Self.now()) \(text)") { state.lost = 0 }
        }

        func write(_ line: String, kind: String) {
            state.withLock { state in
                if state.lines.admits(kind: kind, text: line, line: line, at: HostClock.now()) {
                    put(line, &state)
                } else {
                    setAlarm(&state)
                }
            }
        }

        private func setAlarm(_ state: inout State) {
            let isRead = state.unread.isEmpty && state.lost == 0
            let again = isRead ? nil : HostClock.now() + Self.unreadInterval
            guard !state.isAlarmSet,
                let deadline = [state.lines.nextDeadline, again].compactMap(\.self).min()
            else { return }
            state.isAlarmSet = true
            let wait = max(.zero, deadline - HostClock.now())
            LoopExecutor.shared.loop.scheduleTask(in: .nanoseconds(wait.count)) { self.ring() }
        }

        private func ring() {
            state.withLock { state in
                state.isAlarmSet = false
                putUnread(&state)
                for counted in state.lines.due(at: HostClock.now()) {
                    let count = counted.count == 1 ? "once more" : "\(counted.count) times more"
                    put("\(counted.line) [\(count)]", &state)
                }
                setAlarm(&state)
            }
        }

        private static func now() -> String {
            var instant = time(nil)
            var parts = tm()
            localtime_r(&instant, &parts)
            var text = [CChar](repeating: 0, count: 64)
            let count = strftime(&text, text.count, "%Y-%m-%dT%H:%M:%S%z", &parts)
            return String(decoding: text.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }
}
