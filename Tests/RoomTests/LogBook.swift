import Logging
import Synchronization

/// What a node logs, kept.
final class LogBook: Sendable {
    private struct Handler: LogHandler {
        let book: LogBook
        var metadata: Logger.Metadata = [:]
        var metadataProvider: Logger.MetadataProvider?
        var logLevel = Logger.Level.debug

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let values = (event.metadata ?? [:]).mapValues { "\($0)" }
            book.lines.withLock { $0.append(("\(event.message)", values)) }
        }
    }

    typealias Line = (message: String, metadata: [String: String])

    private let lines = Mutex<[Line]>([])
    var all: [Line] { lines.withLock { $0 } }

    var logger: Logger { Logger(label: "book", factory: { _ in Handler(book: self) }) }

    /// The metadata of all lines with this message.
    func entries(_ message: String) -> [[String: String]] {
        all.filter { $0.message == message }.map(\.metadata)
    }
}
