import CTuttiALSA

/// The name of a PCM as its owner wrote it, and whether something of that name may still come.
///
/// A card is plugged in, a sound server is started: then a name that leads nowhere today does so
/// tomorrow, and whoever plays on it waits. A name that ALSA's configuration does not define, or a
/// card that no machine can have, is a slip of the pen.
struct PCMName {
    /// What stands before the first colon: a definition of the configuration.
    let definition: String
    /// What stands behind it, cut at its commas.
    private let arguments: [(key: String?, value: String)]
    /// What `plug` plays on.
    private let slave: String?

    /// Definitions whose first argument is a card.
    private static let ofCards: Set = [
        "hw", "plughw", "sysdefault", "default", "hdmi", "iec958", "spdif", "front", "rear",
        "center_lfe", "side", "surround21", "surround40", "surround41", "surround50", "surround51",
        "surround71", "dmix", "dshare", "dsnoop", "usbstream",
    ]
    /// What is named without having been defined by the owner.
    static let usualDefinitions = ofCards.union([
        "plug", "pulse", "pipewire", "jack", "null", "dsp", "asym", "softvol",
    ])
    /// What ALSA counts cards up to, and the letters of a card's name.
    private static let cardNumbers = 0..<32
    private static let longestCardName = 15
    private static let longestDeviceNumber = 3
    /// Card, device, subdevice.
    private static let placesOfHardware = ["CARD", "DEV", "SUBDEV"]

    init(_ text: String) {
        let (definition, rest) = OutputSpecification.split(text, at: ":")
        self.definition = definition
        let isPlug = definition == "plug"
        slave = isPlug ? rest.map { Self.unquoted(Self.value(of: "SLAVE", in: $0)) } : nil
        arguments = (isPlug ? "" : rest ?? "").split(separator: ",").map {
            let (key, value) = OutputSpecification.split(String($0), at: "=")
            return value.map { (key, Self.unquoted($0)) } ?? (nil, Self.unquoted(key))
        }
    }

    private static func value(of key: String, in text: String) -> String {
        text.hasPrefix("\(key)=") ? String(text.dropFirst(key.count + 1)) : text
    }

    private static func unquoted(_ text: String) -> String {
        guard text.count >= 2, let quote = text.first, quote == "'" || quote == "\"",
            text.last == quote
        else { return text }
        return String(text.dropFirst().dropLast())
    }

    /// The card that it names; `nil` where it leaves that to the configuration.
    var card: String? {
        guard Self.ofCards.contains(definition) else { return nil }
        return arguments.first { $0.key == "CARD" }?.value
            ?? arguments.first.flatMap { $0.key == nil ? $0.value : nil }
    }

    /// Whether a machine can have what it names.
    ///
    /// - Parameter isDefined: whether ALSA's configuration has a definition of that name.
    func isPossible(isDefined: (String) -> Bool) -> Bool {
        guard isDefined(definition) else { return false }
        if let slave { return PCMName(slave).isPossible(isDefined: isDefined) }
        if let card, !Self.isPossible(card: card) { return false }
        guard definition == "hw" else { return true }
        return arguments.count <= Self.placesOfHardware.count
            && arguments.allSatisfy { $0.key.map(Self.placesOfHardware.contains) ?? true }
            && arguments.dropFirst().allSatisfy { Self.isNumber($0.value) }
    }

    private static func isPossible(card: String) -> Bool {
        if card.hasPrefix("/dev/snd/") { return true }
        if isNumber(card) { return Int(card).map(cardNumbers.contains) ?? false }
        return (1...longestCardName).contains(card.utf8.count)
            && card.utf8.allSatisfy {
                (0x30...0x39).contains($0) || (0x41...0x5A).contains($0)
                    || (0x61...0x7A).contains($0) || $0 == 0x5F || $0 == 0x2D
            }
    }

    private static func isNumber(_ text: String) -> Bool {
        (1...longestDeviceNumber).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }

    /// Whether it plays on a card that is not in the machine now: by its own words, or by what its
    /// owner has defined under that name.
    ///
    /// - Parameter defined: what the configuration has under a key; see
    ///   ``ALSADefinition/named(_:)``.
    func lacksCard(
        isPresent: (String) -> Bool, defined: (String) -> ALSADefinition? = { _ in nil }
    ) -> Bool {
        lacksCard(isPresent, defined, depth: 0)
    }

    private func lacksCard(
        _ isPresent: (String) -> Bool, _ defined: (String) -> ALSADefinition?, depth: Int
    ) -> Bool {
        // Definitions may name each other in a circle.
        guard depth < Self.mostDefinitions else { return false }
        func lacks(_ definition: ALSADefinition?) -> Bool {
            switch definition {
            case .text(let name)?:
                return PCMName(name).lacksCard(isPresent, defined, depth: depth + 1)
            case .compound(let parts)?:
                // A parameter, which only the name in use fills in, begins with a dollar sign.
                if case .text(let card)? = parts["card"], !card.hasPrefix("$"), !isPresent(card) {
                    return true
                }
                var slave = parts["slave"]
                if case .text(let name)? = slave { slave = defined("pcm_slave.\(name)") }
                return [parts["pcm"], slave, parts["playback"]].contains(where: lacks)
            case nil: return false
            }
        }
        if let slave { return PCMName(slave).lacksCard(isPresent, defined, depth: depth + 1) }
        return card.map { !isPresent($0) } ?? lacks(defined("pcm.\(definition)"))
    }

    private static let mostDefinitions = 16
}

extension PCMName {
    /// Whether the configuration that ALSA has read defines it.
    static func isDefined(_ definition: String) -> Bool {
        guard !definition.isEmpty else { return false }
        return unsafe tutti_alsa_defines("pcm.\(definition)") != 0
    }

    /// A definition that there is, of a card that there is not.
    var isCardMissing: Bool {
        Self.isDefined(definition)
            && lacksCard(isPresent: Self.isPresent, defined: ALSADefinition.named)
    }

    static func isPresent(_ card: String) -> Bool { unsafe snd_card_get_index(card) >= 0 }
}
