/// What a room plays on, as its owner writes it: `alsa:hw:1,0`, `virtual:ppm=80`, `file:/a.wav`,
/// `none`.
///
/// The text is parsed once, at the edge (command line, configuration file); everything behind it
/// handles this value. `OutputSpecification(parsing: x.description) == x` for every value that
/// came from text.
public enum OutputSpecification: Equatable, Sendable {
    /// A PCM of ALSA by its full name, colons and commas included: `default`, `hw:1,0`,
    /// `plug:'dmix:0'`.
    case alsa(pcm: String)
    /// A card that exists in this process only: paced by a crystal of its own.
    case virtual(VirtualCardOptions)
    /// A WAV file that is written at the pace of a card, so that it stays on the group's line.
    case file(path: String)
    /// This node makes no sound.
    case none
}

/// The make of a virtual card.
public struct VirtualCardOptions: Equatable, Sendable {
    /// Constant rate error of the card's crystal; ±1000 ppm.
    public var partsPerMillion: Double
    /// Standard deviation of the slow wander around it; 0…100 ppm.
    public var wander: Double
    /// Seed of the wander: the same seed gives the same crystal.
    public var seed: UInt64
    /// Where to record what leaves the card: `PATH.f32` and `PATH.times` (see ``CardRecording``);
    /// a path without a comma.
    public var record: String?
    /// Nominal frames per second, 8000…384 000; `nil`: whatever the room prefers.
    public var sampleRate: Int?
    /// 1…8.
    public var channelCount: Int

    /// A virtual card; see the properties for ranges, which are checked where a text is parsed.
    public init(
        partsPerMillion: Double = 0, wander: Double = 0, seed: UInt64 = 1, record: String? = nil,
        sampleRate: Int? = nil, channelCount: Int = 2
    ) {
        self.partsPerMillion = partsPerMillion
        self.wander = wander
        self.seed = seed
        self.record = record
        self.sampleRate = sampleRate
        self.channelCount = channelCount
    }
}

/// Why a text names no output: one sentence that says what is wrong and what is allowed.
public struct OutputSpecificationError: Error, Equatable, CustomStringConvertible {
    /// The whole text as given.
    public var text: String
    /// What is wrong with it, without the text.
    public var reason: String
    /// What the owner may have meant; `nil` where that cannot be told.
    public var slip: Slip?

    /// A slip of the pen that can be recognised.
    public enum Slip: Equatable, Sendable {
        /// A word of the text is none of those that may stand there.
        case mistyped(String, among: [String])
        /// A PCM of ALSA without `alsa:` before it.
        case cardWithoutKind(pcm: String)
        /// A path without `file:` before it.
        case fileWithoutKind(path: String)
    }

    public var description: String { "output “\(text)”: \(reason)" }

    init(_ text: String, _ reason: String, _ slip: Slip? = nil) {
        self.text = text
        self.reason = reason
        self.slip = slip
    }
}

extension OutputSpecification: CustomStringConvertible {
    /// The shortest text that parses to this value.
    public var description: String {
        switch self {
        case .alsa(let pcm): "alsa:\(pcm)"
        case .virtual(let options):
            options.description.isEmpty ? "virtual" : "virtual:\(options)"
        case .file(let path): "file:\(path)"
        case .none: "none"
        }
    }
}

extension VirtualCardOptions: CustomStringConvertible {
    /// The options that differ from their defaults, `key=value` separated by commas.
    public var description: String {
        let plain = VirtualCardOptions()
        var parts: [String] = []
        if partsPerMillion != plain.partsPerMillion {
            parts.append("ppm=\(short(partsPerMillion))")
        }
        if wander != plain.wander { parts.append("wander=\(short(wander))") }
        if seed != plain.seed { parts.append("seed=\(seed)") }
        if let record { parts.append("record=\(record)") }
        if let sampleRate { parts.append("rate=\(sampleRate)") }
        if channelCount != plain.channelCount { parts.append("channels=\(channelCount)") }
        return parts.joined(separator: ",")
    }

    /// `80` rather than `80.0`; otherwise the shortest text that reads back to the same number.
    private func short(_ number: Double) -> String {
        let text = "\(number)"
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }
}
