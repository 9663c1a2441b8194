public import TuttiTiming

/// One of the streams that a piece of media consists of.
public struct MediaTrack: Equatable, Sendable, Identifiable {
    /// What a stream carries.
    public enum Kind: String, Sendable {
        case audio, video, text, other
    }

    /// Its number in the container: the same whenever the same bytes are opened.
    public var id: Int
    /// What it carries.
    public var kind: Kind
    /// As the container says it, BCP 47 or ISO 639; `nil` where it does not, or says that nobody knows.
    public var language: String?
    /// What the container calls it, for people; `nil`: nothing.
    public var title: String?
    /// FFmpeg's name of the coding: `aac`, `flac`, `subrip` …
    public var codec: String
    /// What it is for, as far as the container says.
    public var characteristics: Set<MediaCharacteristic>
    /// Whether the container asks for it unless somebody chooses otherwise.
    public var isDefault: Bool
    /// Whether this build can decode it.
    public var isDecodable: Bool
    /// Bits per second as the container says; `nil` where it does not.
    public var bitRate: Int?

    // Of audio.

    /// Frames per second; 0 for other kinds.
    public var sampleRate: Int
    /// 0 for other kinds.
    public var channelCount: Int
    /// FFmpeg's name of the channels and their order: `stereo`, `5.1(side)` …
    public var channelLayout: String?

    /// A track of which only the first three are known; the rest is as if the container said
    /// nothing.
    public init(
        id: Int, kind: Kind, codec: String, language: String? = nil, title: String? = nil,
        characteristics: Set<MediaCharacteristic> = [], isDefault: Bool = false,
        isDecodable: Bool = true, bitRate: Int? = nil, sampleRate: Int = 0, channelCount: Int = 0,
        channelLayout: String? = nil
    ) {
        self.id = id
        self.kind = kind
        self.codec = codec
        self.language = language
        self.title = title
        self.characteristics = characteristics
        self.isDefault = isDefault
        self.isDecodable = isDecodable
        self.bitRate = bitRate
        self.sampleRate = sampleRate
        self.channelCount = channelCount
        self.channelLayout = channelLayout
    }
}

/// What a track or an option is for.
public struct MediaCharacteristic: RawRepresentable, Hashable, Sendable {
    /// The word by which it is told from others.
    public var rawValue: String
    /// A purpose of an application's own.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// It can be heard.
    public static let audible = Self(rawValue: "audible")
    /// It can be seen.
    public static let visual = Self(rawValue: "visual")
    /// It can be read.
    public static let legible = Self(rawValue: "legible")
    /// What is played where nobody chooses.
    public static let isMainProgramContent = Self(rawValue: "main-program")
    /// A commentary, for example.
    public static let isAuxiliaryContent = Self(rawValue: "auxiliary")
    /// In the language in which it was made.
    public static let isOriginalContent = Self(rawValue: "original")
    /// Spoken anew in another language.
    public static let isDubbedTranslation = Self(rawValue: "dubbed")
    /// Only what is said in another language, or written in the picture.
    public static let containsOnlyForcedSubtitles = Self(rawValue: "forced-subtitles")
    /// Written for people who do not hear.
    public static let transcribesSpokenDialog = Self(rawValue: "transcribes-dialog")
    /// Spoken for people who do not see.
    public static let describesVideo = Self(rawValue: "describes-video")
    /// Translated from the original.
    public static let languageTranslation = Self(rawValue: "translation")
}

/// Text with the time in which it is to be shown.
public struct TimedText: Equatable, Sendable {
    /// Letters in one style.
    public struct Run: Equatable, Sendable {
        /// The letters; may have `\n` in it.
        public var text: String
        /// How they look.
        public var style: Style

        /// A run; without a style it is plain.
        public init(_ text: String, style: Style = Style()) {
            self.text = text
            self.style = style
        }
    }

    /// How letters look.
    public struct Style: Hashable, Sendable {
        /// In bold letters.
        public var isBold = false
        /// In slanted letters.
        public var isItalic = false
        /// With a line below.
        public var isUnderlined = false
        /// With a line through it.
        public var isStruckThrough = false
        /// 0xRRGGBB; `nil`: as whoever shows it likes.
        public var color: UInt32?

        /// Plain letters.
        public init() {}
    }

    /// Where in the picture; `nil` on either axis: as whoever shows it likes.
    public struct Place: Equatable, Sendable {
        /// Where on the line.
        public enum Horizontal: Sendable { case left, center, right }
        /// Where in the height.
        public enum Vertical: Sendable { case top, middle, bottom }
        /// Left, centre or right; `nil`: as whoever shows it likes.
        public var horizontal: Horizontal?
        /// Top, middle or bottom; `nil`: as whoever shows it likes.
        public var vertical: Vertical?

        /// Without arguments: as whoever shows it likes.
        public init(horizontal: Horizontal? = nil, vertical: Vertical? = nil) {
            self.horizontal = horizontal
            self.vertical = vertical
        }
    }

    /// Of item time.
    public var range: TimeRange
    /// In order; lines are parted by `\n`.
    public var runs: [Run]
    /// Where in the picture it belongs.
    public var place: Place

    /// Text that is shown over `range`.
    public init(range: TimeRange, runs: [Run], place: Place = Place()) {
        self.range = range
        self.runs = runs
        self.place = place
    }

    /// The letters without their styles.
    public var string: String { runs.map(\.text).joined() }
}
