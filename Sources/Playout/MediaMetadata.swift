import func Glibc.exp
public import TuttiTiming

/// What a piece of media says of itself besides its sound.
public struct MediaMetadata: Equatable, Sendable {
    /// A part with a name.
    public struct Chapter: Equatable, Sendable {
        /// What it is called; `nil`: it has no name.
        public var title: String?
        /// When it is, in item time.
        public var range: TimeRange

        /// A chapter over `range`.
        public init(title: String?, range: TimeRange) {
            self.title = title
            self.range = range
        }
    }

    /// A picture that came with the sound, as it is stored.
    public struct Artwork: Equatable, Sendable {
        /// The picture's file, as it was stored.
        public var bytes: [UInt8]
        /// `image/jpeg`, `image/png` …
        public var mimeType: String

        /// A picture as it is stored; nothing is decoded.
        public init(bytes: [UInt8], mimeType: String) {
            self.bytes = bytes
            self.mimeType = mimeType
        }
    }

    /// How much louder or quieter it is to be played to sound as loud as others, and how loud its
    /// loudest sample is then 1 (ReplayGain 2.0; EBU R 128 in Opus, RFC 7845, 5.2.1).
    public struct Loudness: Equatable, Sendable {
        /// dB.
        public var gain: Double
        /// Linear; `nil` where it is not said.
        public var peak: Double?

        /// How much louder it is to be played, dB, and its largest sample.
        public init(gain: Double, peak: Double?) {
            self.gain = gain
            self.peak = peak
        }

        /// What samples are multiplied by: never so much that the loudest is beyond full scale, and no
        /// more than 1 where nobody says how loud that is.
        public var factor: Float {
            let linear = exp(gain * 0.115_129_254_649_702_28)  // ln 10 / 20
            let loudest = peak.map { $0 > 0 ? $0 : 1 } ?? 1
            return Float(min(linear, 1 / loudest))
        }
    }

    /// Every tag by its name in lower case, as the container calls it.
    public var tags: [String: String] = [:]
    /// In the order of the container; empty: there are none.
    public var chapters: [Chapter] = []
    /// The first picture that came with it; `nil`: none.
    public var artwork: Artwork?

    /// How long its header says that it is, where that is more than a second beyond what is there:
    /// it was cut off. `nil`: it was not, or nobody can tell.
    public var promisedDuration: MediaTime?

    /// How long its header says that it is, where nobody could count: a server sends it once, from its
    /// beginning. `nil`: its length is known, or nothing is said.
    public var statedDuration: MediaTime?

    /// Of what says nothing of itself.
    public init() {}
}

extension MediaMetadata {
    // Names that containers share, as FFmpeg maps them.

    /// What it is called; `nil` without the tag.
    public var title: String? { tags["title"] }
    /// Who plays it, or else whose album it is; `nil` without either tag.
    public var artist: String? { tags["artist"] ?? tags["album_artist"] }
    /// The album's title; `nil` without the tag.
    public var album: String? { tags["album"] }
    /// The kind of music, as the tag says; `nil` without it.
    public var genre: String? { tags["genre"] }
    /// When it appeared, as the tag writes it, often the year alone; `nil` without it.
    public var date: String? { tags["date"] ?? tags["year"] }
    /// A remark of whoever made the file; `nil` without the tag.
    public var comment: String? { tags["comment"] }

    /// The chapter at a time.
    public func chapter(at time: MediaTime) -> Chapter? {
        chapters.last { $0.range.contains(time) }
    }

    /// Of the item by itself.
    public var trackLoudness: Loudness? { loudness("track") }
    /// Of the album that it is of: keeps quiet items quiet beside loud ones.
    public var albumLoudness: Loudness? { loudness("album") }

    private func loudness(_ kind: String) -> Loudness? {
        if let gain = decibels(tags["replaygain_\(kind)_gain"]) {
            return Loudness(gain: gain, peak: tags["replaygain_\(kind)_peak"].flatMap(Self.number))
        }
        // 1/256 dB to −23 LUFS; ReplayGain aims at −18.
        guard let text = tags["r128_\(kind)_gain"], let steps = Int(text),
            (-32_768...32_767).contains(steps)
        else { return nil }
        return Loudness(gain: Double(steps) / 256 + 5, peak: nil)
    }

    private func decibels(_ text: String?) -> Double? {
        guard let word = text?.split(separator: " ").first, let gain = Self.number(String(word)),
            abs(gain) <= 60
        else { return nil }
        return gain
    }

    private static func number(_ text: String) -> Double? {
        guard let value = Double(text), value.isFinite else { return nil }
        return value
    }
}
