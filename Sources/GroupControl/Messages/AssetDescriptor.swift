/// What every room must agree on about an item before it plays: the same bytes decode to the same
/// frames everywhere, and a room that computes otherwise says so.
public struct AssetDescriptor: Hashable, Sendable {
    /// Longest title in bytes of UTF-8; longer ones are cut at a whole character.
    public static let longestTitle = 200
    /// Longest file extension in bytes.
    public static let longestExtension = 16
    /// Highest sample rate accepted, Hz; above it no card and no studio format goes.
    public static let highestSampleRate = 768_000
    /// Most frames accepted: four days at 768 kHz; keeps every later product inside `Int64`.
    public static let mostFrames: Int64 = 1 << 38

    /// SHA-256 of the file's bytes: rooms ask for it by this, and believe what has it.
    public let hash: ContentHash
    /// Length of the file in bytes.
    public let byteCount: Int64
    /// Frames a second, Hz.
    public let sampleRate: Int
    /// Length of the item in frames at its sample rate; at least 1.
    public let frameCount: Int64
    /// For people; may be empty.
    public let title: String
    /// Without the dot, letters and digits only ("flac"); tells the decoder what it may expect.
    public let fileExtension: String
    /// SHA-256 of the hashes of the asset's pieces, by which bytes are believed while they arrive;
    /// `nil` where nobody computed them: then a room waits for all of it.
    public let piecesRoot: ContentHash?
    /// Where the item is a part of its file, as the track of a cue sheet; `nil`: it is all of it.
    public let excerpt: Excerpt?

    /// Which part of a file an item is; its length is that of the item.
    public struct Excerpt: Hashable, Sendable {
        /// Frame of the file that is the item's first.
        public let firstFrame: Int64
        /// Frames of the whole file.
        public let fileFrameCount: Int64

        /// A part of a file of `fileFrameCount` frames; whether it lies inside is judged where the
        /// descriptor is made.
        public init(firstFrame: Int64, fileFrameCount: Int64) {
            self.firstFrame = firstFrame
            self.fileFrameCount = fileFrameCount
        }
    }

    /// - Throws: ``InvalidValue`` naming the value that is out of its range. A long title is cut,
    ///   since it changes nothing that sounds.
    public init(
        hash: ContentHash, byteCount: Int64, sampleRate: Int, frameCount: Int64, title: String,
        fileExtension: String, piecesRoot: ContentHash? = nil, excerpt: Excerpt? = nil
    ) throws(InvalidValue) {
        guard byteCount >= 0 else {
            throw InvalidValue("asset size", "is negative (\(byteCount) bytes)")
        }
        guard sampleRate >= 1, sampleRate <= Self.highestSampleRate else {
            throw InvalidValue(
                "asset sample rate", "is \(sampleRate) Hz, not 1 to \(Self.highestSampleRate)")
        }
        guard frameCount >= 1, frameCount <= Self.mostFrames else {
            throw InvalidValue(
                "asset length", "is \(frameCount) frames, not 1 to \(Self.mostFrames)")
        }
        guard fileExtension.utf8.count <= Self.longestExtension,
            fileExtension.utf8.allSatisfy({ Self.isLetterOrDigit($0) })
        else {
            throw InvalidValue(
                "asset file extension", "is not up to \(Self.longestExtension) letters and digits")
        }
        if let excerpt {
            guard excerpt.firstFrame >= 0, excerpt.fileFrameCount <= Self.mostFrames,
                frameCount <= excerpt.fileFrameCount,
                excerpt.firstFrame <= excerpt.fileFrameCount - frameCount
            else {
                throw InvalidValue(
                    "asset excerpt",
                    "of \(frameCount) frames from \(excerpt.firstFrame) on is not within a file of \(excerpt.fileFrameCount)"
                )
            }
        }
        self.hash = hash
        self.byteCount = byteCount
        self.sampleRate = sampleRate
        self.frameCount = frameCount
        self.title = title.limited(toBytes: Self.longestTitle)
        self.fileExtension = fileExtension
        self.piecesRoot = piecesRoot
        self.excerpt = excerpt
    }

    /// Frames of the whole file.
    public var fileFrameCount: Int64 { excerpt?.fileFrameCount ?? frameCount }

    /// Length of the item at rate 1, in seconds.
    public var durationSeconds: Double { Double(frameCount) / Double(sampleRate) }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "A")...UInt8(ascii: "Z"):
            true
        default: false
        }
    }
}
