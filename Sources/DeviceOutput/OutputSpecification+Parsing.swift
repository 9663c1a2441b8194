extension OutputSpecification {
    /// Reads `alsa[:PCM]`, `virtual[:key=value,…]`, `file:PATH` or `none`.
    ///
    /// - Throws: a sentence for the owner of the text; nothing is guessed or dropped.
    public init(parsing text: String) throws(OutputSpecificationError) {
        let (scheme, rest) = Self.split(text, at: ":")
        switch scheme {
        case "alsa":
            if rest == "" {
                throw OutputSpecificationError(
                    text, "the PCM name is empty; write “alsa” for the default, or alsa:hw:0")
            }
            let pcm = rest ?? "default"
            if pcm.utf8.contains(0) {
                throw OutputSpecificationError(text, "a PCM name cannot contain a zero byte")
            }
            self = .alsa(pcm: pcm)
        case "virtual":
            self = .virtual(try VirtualCardOptions(parsing: rest, of: text))
        case "file":
            guard let rest, !rest.isEmpty, !rest.utf8.contains(0) else {
                throw OutputSpecificationError(
                    text, "the path is missing; write file:/tmp/room.wav")
            }
            self = .file(path: rest)
        case "none":
            if rest != nil {
                throw OutputSpecificationError(text, "“none” takes nothing after it")
            }
            self = .none
        default: throw Self.unknownKind(scheme, in: text)
        }
    }

    private static let kinds = ["alsa", "virtual", "file", "none"]

    /// Many a player takes a card or a file by its bare name.
    private static func unknownKind(
        _ scheme: String, in text: String
    ) -> OutputSpecificationError {
        if PCMName.usualDefinitions.contains(scheme) {
            return OutputSpecificationError(
                text, "“\(scheme)” is a PCM of ALSA, and needs alsa: before it",
                .cardWithoutKind(pcm: text))
        }
        let isPath = text.hasPrefix("/") || text.hasPrefix("./")
        if isPath || scheme == text && text.lowercased().hasSuffix(".wav") {
            return OutputSpecificationError(
                text, "the path of a file needs file: before it", .fileWithoutKind(path: text))
        }
        return OutputSpecificationError(
            text,
            "“\(scheme)” is not a kind of output; "
                + "write alsa[:PCM], virtual[:ppm=…], file:PATH or none",
            .mistyped(scheme, among: kinds + PCMName.usualDefinitions.sorted()))
    }

    /// What stands before and after the first `separator`; the latter is `nil` without one.
    static func split(_ text: String, at separator: Character) -> (String, String?) {
        guard let index = text.firstIndex(of: separator) else { return (text, nil) }
        return (String(text[..<index]), String(text[text.index(after: index)...]))
    }
}

extension VirtualCardOptions {
    static let keys = ["ppm", "wander", "seed", "record", "rate", "channels"]
    /// No crystal that is sold for audio is off by a tenth of this.
    static let partsPerMillionLimit = 1000.0
    static let wanderLimit = 100.0
    static let sampleRates = 8_000...384_000
    static let channelCounts = 1...8

    /// - Parameters:
    ///   - list: what follows `virtual:`; `nil` when nothing does.
    ///   - text: the whole specification, for the error.
    init(parsing list: String?, of text: String) throws(OutputSpecificationError) {
        self.init()
        guard let list else { return }
        var seen: Set<String> = []
        for part in list.split(separator: ",", omittingEmptySubsequences: false) {
            let (key, value) = OutputSpecification.split(String(part), at: "=")
            let allowed = Self.keys.joined(separator: ", ")
            guard Self.keys.contains(key) else {
                throw OutputSpecificationError(
                    text, "“\(key)” is not an option of a virtual card; there are \(allowed)",
                    .mistyped(key, among: Self.keys))
            }
            guard let value, !value.isEmpty else {
                throw OutputSpecificationError(text, "“\(key)” needs a value: \(key)=…")
            }
            guard seen.insert(key).inserted else {
                throw OutputSpecificationError(text, "“\(key)” is given twice")
            }
            try set(key, to: value, of: text)
        }
    }

    private mutating func set(
        _ key: String, to value: String, of text: String
    ) throws(OutputSpecificationError) {
        func bad(_ allowed: String) -> OutputSpecificationError {
            OutputSpecificationError(text, "\(key)=\(value) is not \(allowed)")
        }
        switch key {
        case "ppm":
            guard let x = Double(value), abs(x) <= Self.partsPerMillionLimit else {
                throw bad("a number of ppm from −1000 to 1000")
            }
            partsPerMillion = x
        case "wander":
            guard let x = Double(value), x >= 0, x <= Self.wanderLimit else {
                throw bad("a number of ppm from 0 to 100")
            }
            wander = x
        case "seed":
            guard let x = UInt64(value) else { throw bad("a whole number from 0 on") }
            seed = x
        case "rate":
            guard let x = Int(value), Self.sampleRates.contains(x) else {
                throw bad("a sample rate from 8000 to 384000")
            }
            sampleRate = x
        case "channels":
            guard let x = Int(value), Self.channelCounts.contains(x) else {
                throw bad("a number of channels from 1 to 8")
            }
            channelCount = x
        default:
            guard !value.utf8.contains(0) else { throw bad("a path") }
            record = value
        }
    }
}
