/// What a source of decoded frames yields.
@frozen
public struct MediaFormat: Equatable, Sendable {
    /// Frames per second of the item, 1 to 768 000.
    public var sampleRate: Int
    /// Channels in the file; ``MediaSource/read(into:)`` yields two whatever this is.
    public var channelCount: Int
    /// The exact number of frames, encoder delay and padding removed; `nil` for a live stream.
    public var frameCount: Int64?

    /// A format; without a number of frames it is a live stream.
    public init(sampleRate: Int, channelCount: Int, frameCount: Int64?) {
        self.sampleRate = sampleRate
        self.channelCount = channelCount
        self.frameCount = frameCount
    }
}

/// Port: decoded audio of one item, in order, from any frame on.
///
/// One owner at a time uses a source; calls block on I/O and must not be made on the output thread.
public protocol MediaSource: AnyObject {
    /// Sample rate, channels of the file and exact length.
    var format: MediaFormat { get }

    /// What it says of itself besides; nothing, where it does not know.
    var metadata: MediaMetadata { get }

    /// All that its container holds besides pictures and attached files, in the container's order.
    var tracks: [MediaTrack] { get }

    /// Which of ``tracks`` it yields, by ``MediaTrack/id``; `nil` where it has none.
    var track: Int? { get }

    /// Frames that are coded together, about; 0 where nothing is.
    var packetFrames: Int { get }

    /// Makes the next ``read(into:)`` begin with exactly `frame` (0 is the item's first frame).
    func seek(toFrame frame: Int64) throws(MediaError)

    /// Decodes the next frames: interleaved stereo Float, −1…1 (a mono file in both channels, more
    /// than two mixed down).
    ///
    /// - Parameter buffer: room for `buffer.count / 2` frames.
    /// - Returns: frames written; 0 only at the end of the item.
    func read(into buffer: UnsafeMutableBufferPointer<Float>) throws(MediaError) -> Int
}

extension MediaSource {
    public var metadata: MediaMetadata { MediaMetadata() }
    public var tracks: [MediaTrack] { [] }
    public var track: Int? { nil }
    public var packetFrames: Int { 0 }
}

/// Why an asset cannot be opened, read or positioned.
///
/// Its description is for people; what was called is in the debug description.
public struct MediaError: Error, Equatable, CustomStringConvertible, CustomDebugStringConvertible {
    /// What kind of failure it is, for programs.
    public enum Code: String, Sendable {
        case notFound, notReadable, notMedia, noAudio, unsupported, encrypted, damaged, network
        case cancelled, tooLarge
    }
    /// What kind of failure it is.
    public var code: Code
    /// What was tried: the name of the library call or of our own step.
    public var operation: String
    /// Which file or URL.
    public var subject: String
    /// What the library or the system said, and what the user can do.
    public var reason: String

    /// A failure of one step with one file or address.
    public init(_ code: Code, operation: String, subject: String, reason: String) {
        self.code = code
        self.operation = operation
        self.subject = subject
        self.reason = reason
    }

    /// Which file, why, and where it is: whoever cuts the sentence cuts the address.
    public var description: String {
        let path = subject.prefix { $0 != "?" && $0 != "#" }
        let name = path.split(separator: "/").last.map(String.init) ?? subject
        let isNamed = path.contains("/") && !path.hasSuffix("/")
        return isNamed ? "\(name): \(reason) (\(subject))" : "\(subject): \(reason)"
    }
    public var debugDescription: String { "\(description) (\(operation))" }
}
