import TuttiClockSync
import TuttiGroupControl
import TuttiTiming

/// What a room remembers between two sessions: the latency behind each of its outputs, and how
/// fast the crystals of its leaders run against its own.
///
/// One text file a room:
///
///     tutti room 1
///     offset -1500±50 alsa:hw:1,0
///     skew 9f3c… 41d0… 77ab… 35.118 0.5 1795270000 kitchen
///
/// An offset is a ``LatencyOffset`` and belongs to an output as its owner writes it. A skew belongs
/// to the leader's node and boot, our own boot and the leader's name; then come the leader's rate
/// against ours and its standard deviation, in ppm, and when that was (seconds since 1970).
struct RoomMemory: Equatable, Sendable {
    struct Skew: Equatable, Sendable {
        var crystal: CrystalID
        var ownBoot: UInt64
        var leader: String
        /// Leader's rate against ours, minus one.
        var skew: Double
        var deviation: Double
        /// Seconds since 1970.
        var at: Int64
    }

    static let heading = "tutti room 1"
    /// Leaders remembered; the ones not met for the longest time are forgotten.
    static let mostSkews = 32
    static let mostOffsets = 32
    /// Crystals age and know the seasons: per day, growing with the root of the time.
    static let agingPerDay = 2e-6
    /// A kernel may calibrate its clock at each boot, some to a few ppm, some to 20.
    static let bootDeviation = 20e-6
    /// No memory is believed more than this: a room warms up after switching on. A right one nearly
    /// halves the clock's error in the first second; one that is 100 ppm off makes it seven times as large.
    static let leastDeviation = 2e-6
    /// Nor one that no second session has confirmed, since it may be of another crystal altogether,
    /// as when a disk is moved to another machine. Believed to 20 ppm, even one that is 100 ppm off
    /// does no harm.
    static let unconfirmedDeviation = 10e-6
    /// A session that knows its leader's rate better than this has something to remember.
    static let settledDeviation = 1e-6

    /// Newest last.
    private(set) var offsets: [(output: String, offset: LatencyOffset)] = []
    /// Newest last.
    private(set) var skews: [Skew] = []
    /// How loud the room was, and what it played of stereo; `nil`: nobody has said.
    var settings: RoomSettings?

    static func == (a: Self, b: Self) -> Bool {
        a.skews == b.skews && a.settings == b.settings
            && a.offsets.elementsEqual(b.offsets) { $0 == $1 }
    }

    // MARK: Offsets

    func offset(of output: String) -> LatencyOffset? {
        offsets.last { $0.output == Self.line(output) }?.offset
    }

    mutating func setOffset(_ offset: LatencyOffset, of output: String) {
        offsets.removeAll { $0.output == Self.line(output) }
        offsets.append((Self.line(output), offset))
        offsets.removeFirst(max(0, offsets.count - Self.mostOffsets))
    }

    // MARK: Skews

    /// What is known of a leader's rate now.
    ///
    /// - Parameter now: seconds since 1970.
    func storedSkew(
        of crystal: CrystalID, leader: String, ownBoot: UInt64, at now: Int64
    ) -> StoredSkew {
        guard let known = entry(of: crystal, leader: leader) else { return .unknown }
        // A clock on the wall that was set back says nothing about the age.
        let days = now >= known.at ? min(Double(now - known.at) / 86_400, 2_000) : 1
        var variance = known.deviation * known.deviation
        variance += Self.agingPerDay * Self.agingPerDay * days
        if known.ownBoot != ownBoot || known.crystal.boot != crystal.boot {
            variance += Self.bootDeviation * Self.bootDeviation
        }
        let deviation = max(variance.squareRoot(), Self.leastDeviation)
        guard deviation < StoredSkew.unknown.deviation else { return .unknown }
        return StoredSkew(skew: known.skew, deviation: deviation)
    }

    /// Keeps what a session has learnt.
    ///
    /// Each session that confirms a memory halves its deviation; one that proves it wrong makes it
    /// at least the surprise. So a room whose leaders' crystals cannot
    /// be told apart learns to expect nothing of them.
    ///
    /// - Parameter before: the entry as it was when the session began; `nil` when there was none.
    mutating func remember(_ new: Skew, before: Skew?) {
        guard new.crystal.node != 0, new.skew.isFinite, new.deviation.isFinite else { return }
        var new = new
        new.leader = Self.line(new.leader)
        new.deviation = max(new.deviation, Self.leastDeviation)
        if let before {
            new.deviation = max(
                new.deviation, (new.skew - before.skew).magnitude, before.deviation / 2)
        } else {
            new.deviation = max(new.deviation, Self.unconfirmedDeviation)
        }
        skews.removeAll { $0.crystal.node == new.crystal.node && $0.leader == new.leader }
        skews.append(new)
        skews.removeFirst(max(0, skews.count - Self.mostSkews))
    }

    func entry(of crystal: CrystalID, leader: String) -> Skew? {
        skews.last {
            $0.crystal.node == crystal.node && $0.leader == Self.line(leader)
                && crystal.node != 0
        }
    }

    // MARK: Text

    init() {}

    /// - Throws: ``InvalidValue`` that names the line.
    init(parsing text: String) throws(InvalidValue) {
        // However a line ends: `\r` and `\n` together are one character.
        var lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)[...]
        guard lines.popFirst() == Self.heading[...] else {
            throw InvalidValue("line 1", "is not \"\(Self.heading)\"")
        }
        for (number, line) in zip(2..., lines) where !line.isEmpty {
            let isTaken =
                switch line.prefix(while: { $0 != " " }) {
                case "offset": take(offset: line)
                case "skew": take(skew: line)
                case "loudness": take(loudness: line)
                default: false
                }
            guard isTaken else {
                throw InvalidValue("line \(number)", "cannot be understood")
            }
        }
    }

    private mutating func take(offset line: Substring) -> Bool {
        let words = line.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard words.count == 3, let offset = try? LatencyOffset(parsing: String(words[1])),
            !words[2].isEmpty, offsets.count < Self.mostOffsets
        else { return false }
        offsets.append((String(words[2]), offset))
        return true
    }

    private mutating func take(loudness line: Substring) -> Bool {
        let words = line.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 4, settings == nil, let volume = Int(words[1]),
            let isMuted = Bool(String(words[2])),
            words[3] == "-" || RoomRole(rawValue: String(words[3])) != nil,
            let known = try? RoomSettings(
                volume: volume, muted: isMuted, role: RoomRole(rawValue: String(words[3])))
        else { return false }
        settings = known
        return true
    }

    private mutating func take(skew line: Substring) -> Bool {
        let words = line.split(separator: " ", maxSplits: 7, omittingEmptySubsequences: false)
        guard words.count == 8, let node = UInt64(words[1], radix: 16), node != 0,
            let boot = UInt64(words[2], radix: 16), let ownBoot = UInt64(words[3], radix: 16),
            let skew = Double(words[4]), skew.magnitude <= 1_000,
            // Not so small that it would be written as zero.
            let deviation = Double(words[5]), deviation * 1e-6 > 0, deviation <= 10_000,
            let at = Int64(words[6]), at >= 0, skews.count < Self.mostSkews
        else { return false }
        skews.append(
            Skew(
                crystal: CrystalID(node: node, boot: boot), ownBoot: ownBoot,
                leader: String(words[7]), skew: skew * 1e-6, deviation: deviation * 1e-6, at: at))
        return true
    }

    var text: String {
        var lines = [Self.heading]
        for (output, offset) in offsets { lines.append("offset \(offset) \(output)") }
        if let settings {
            lines.append(
                "loudness \(settings.volume) \(settings.muted) \(settings.role?.rawValue ?? "-")")
        }
        for skew in skews {
            lines.append(
                "skew \(hexText(skew.crystal.node)) \(hexText(skew.crystal.boot)) "
                    + "\(hexText(skew.ownBoot)) \(skew.skew * 1e6) \(skew.deviation * 1e6) "
                    + "\(skew.at) \(skew.leader)")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// A text of somebody else on one line of ours.
    private static func line(_ text: String) -> String { text.shown() }
}
