public import TuttiTiming

/// How much later the sound leaves what hangs behind a room's card: an amplifier, a converter, a
/// wireless loudspeaker. The owner of the room says so; nobody can measure it from here.
public struct LatencyOffset: Equatable, Sendable {
    /// Nothing is known to delay.
    public static let zero = LatencyOffset()
    /// Amplifiers, converters and wireless loudspeakers are all within half a second.
    public static let limit = Nanoseconds.milliseconds(500)

    /// Whole microseconds within ±``limit``; positive: the sound is late, so the room plays
    /// earlier.
    public let delay: Nanoseconds
    /// How sure that is: half the width of an interval around it that contains the truth, up to
    /// ``limit``. `nil`: it was not measured, and no promise includes it.
    public let uncertainty: Nanoseconds?

    private init() {
        delay = .zero
        uncertainty = nil
    }

    /// - Throws: for what is beyond ``limit``.
    public init(
        microseconds: Int, uncertaintyMicroseconds: Int? = nil
    ) throws(InvalidValue) {
        let limit = Int(Self.limit.microseconds)
        guard (-limit...limit).contains(microseconds) else {
            throw Self.invalid("is −\(limit) to \(limit) µs, not \(microseconds)")
        }
        if let uncertainty = uncertaintyMicroseconds, !(0...limit).contains(uncertainty) {
            throw Self.invalid("can be known to 0 to \(limit) µs, not \(uncertainty)")
        }
        delay = .microseconds(Int64(microseconds))
        uncertainty = uncertaintyMicroseconds.map { .microseconds(Int64($0)) }
    }

    /// What a person writes: `1500`, `-300`, or, where it was measured, `1500±50` (`1500+-50`).
    public init(parsing text: String) throws(InvalidValue) {
        let parts = text.replacing("−", with: "-").replacing("+-", with: "±").split(
            separator: "±", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), let delay = Int(parts[0]) else {
            throw Self.invalid("is microseconds, such as 1500 or -300 or 1500±50, not \"\(text)\"")
        }
        guard parts.count == 2 else {
            try self.init(microseconds: delay)
            return
        }
        guard let uncertainty = Int(parts[1]), parts[1].first?.isNumber == true else {
            throw Self.invalid("is known to some microseconds, such as 1500±50, not \"\(text)\"")
        }
        try self.init(microseconds: delay, uncertaintyMicroseconds: uncertainty)
    }

    private static func invalid(_ reason: String) -> InvalidValue {
        InvalidValue("latency offset", reason)
    }
}

extension LatencyOffset: CustomStringConvertible {
    /// As ``init(parsing:)`` takes it.
    public var description: String {
        "\(delay.count / 1_000)" + (uncertainty.map { "±\($0.count / 1_000)" } ?? "")
    }
}
