import Dispatch
import GroupControl
import LinuxHost
public import Logging
import Synchronization
import Timing

/// Stands before a log handler, and makes lines of what comes: each one line of characters that can
/// be seen (``GroupControl/ShownText``), each value no longer than a line may be, and equal ones
/// counted (``LineLimiter``).
///
/// Names, titles and reasons of other nodes are in most lines. Every node puts this before the
/// handler it is given, so that no place that logs can forget it.
public struct PlainLogHandler: LogHandler {
    /// Bytes of one value, or of the message.
    static let longestText = 1_024
    /// Values of a list or a dictionary that are shown; the depth of what is in one another.
    static let mostValues = 32
    static let deepest = 4

    private var inner: any LogHandler
    private let limiter = Held()

    /// Shared by all copies of a handler.
    private final class Held: Sendable {
        struct State {
            var lines = LineLimiter<LogEvent>()
            var isDue = false
        }
        let state = Mutex(State())
    }

    public init(_ inner: any LogHandler) { self.inner = inner }

    public var logLevel: Logger.Level {
        get { inner.logLevel }
        set { inner.logLevel = newValue }
    }

    public var metadata: Logger.Metadata {
        get { inner.metadata }
        set { inner.metadata = Self.shown(newValue) }
    }

    public var metadataProvider: Logger.MetadataProvider? {
        get { inner.metadataProvider }
        set { inner.metadataProvider = newValue }
    }

    public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { inner[metadataKey: key] }
        set { inner[metadataKey: key] = newValue.map { Self.shown($0) } }
    }

    public func log(event: LogEvent) {
        var event = event
        event.message = "\(event.message.description.shown(limit: Self.longestText))"
        var metadata = Self.shown(event.metadata ?? [:])
        if let error = event.error {
            metadata["error"] = "\("\(error)".shown(limit: Self.longestText))"
            event.error = nil
        }
        event.metadata = metadata.isEmpty ? nil : metadata
        // Who asks for everything gets everything.
        guard event.level > .debug else { return inner.log(event: event) }
        let (message, line, now) = (event.message.description, event, HostClock.now())
        let (verdict, isFirst) = limiter.state.withLock { state in
            let verdict = state.lines.judge(message, "\(metadata)", line, at: now)
            let isFirst = verdict == .hold && !state.isDue
            if isFirst { state.isDue = true }
            return (verdict, isFirst)
        }
        switch verdict {
        case .say(let missed): inner.log(event: Self.counting(missed, event))
        case .hold: if isFirst { settleLater() }
        }
    }

    private func settleLater() {
        let patience = Int(LineLimiter<LogEvent>.patience.count)
        DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + .nanoseconds(patience)) {
            let owed = limiter.state.withLock { state in
                state.isDue = false
                return state.lines.settle()
            }
            for (line, missed) in owed { inner.log(event: Self.counting(missed, line)) }
        }
    }

    private static func counting(_ missed: Int, _ event: LogEvent) -> LogEvent {
        guard missed > 0 else { return event }
        var event = event
        event.metadata = (event.metadata ?? [:]).merging(["also": "\(missed) times"]) { $1 }
        return event
    }

    // MARK: Text of others

    private static func shown(_ metadata: Logger.Metadata, depth: Int = 0) -> Logger.Metadata {
        var shown: Logger.Metadata = [:]
        for (key, value) in metadata.prefix(mostValues) {
            shown[key.shown(limit: longestText)] = Self.shown(value, depth: depth)
        }
        return shown
    }

    private static func shown(
        _ value: Logger.Metadata.Value, depth: Int = 0
    ) -> Logger.Metadata.Value {
        switch value {
        case .array(let values) where depth < deepest:
            .array(values.prefix(mostValues).map { shown($0, depth: depth + 1) })
        case .dictionary(let values) where depth < deepest:
            .dictionary(shown(values, depth: depth + 1))
        default: .string("\(value)".shown(limit: longestText))
        }
    }
}

extension Logger {
    /// The same logger with a ``PlainLogHandler`` before its handler.
    public var plain: Logger {
        if handler is PlainLogHandler { return self }
        var logger = self
        logger.handler = PlainLogHandler(handler)
        return logger
    }
}
