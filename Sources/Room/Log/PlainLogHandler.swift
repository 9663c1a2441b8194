public import Logging
import TuttiGroupControl

/// Stands before a log handler, and makes lines of what comes: each one line of characters that can
/// be seen (``TuttiGroupControl/ShownText``), each value no longer than a line may be.
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

    /// Hands lines on to `inner`, made plain.
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
        inner.log(event: event)
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
