/// A point or span of item time: a whole number of units of `1/timescale` seconds.
///
/// Frame numbers must survive conversion without drift, so item time is rational and never a
/// `Double`. Every operation accepts every input: sums and products are computed exactly in 128
/// bits, and what does not fit in a value at any timescale becomes ±infinity. Besides numbers
/// there are the times of Core Media: unknown yet (``indefinite``), beyond every number
/// (±infinity), and the result of a meaningless operation (``invalid``).
///
/// Order and equality go by the time meant, not by its spelling: 1/2 = 2/4, and
/// −∞ < numbers < indefinite < +∞ < invalid. ``wasRounded`` does not count.
@frozen
public struct MediaTime: Sendable, BitwiseCopyable {
    /// What the two numbers mean; in sorting order.
    @frozen
    public enum Kind: UInt8, Sendable, BitwiseCopyable {
        case negativeInfinity, number, indefinite, positiveInfinity, invalid
    }

    /// Units of `1/timescale` seconds; 0 unless ``isNumeric``.
    public let value: Int64
    /// Units per second, at least 1; 0 unless ``isNumeric``.
    public let timescale: Int32
    /// Whether it is a number of seconds, or what it is instead.
    public let kind: Kind
    /// The exact result of a conversion or of arithmetic was not a whole number of units; inherited
    /// by everything computed from it.
    public let wasRounded: Bool

    /// The time `value / timescale` seconds; ``invalid`` when the timescale is below 1.
    public init(value: Int64, timescale: Int32) {
        self.init(value: value, timescale: timescale, wasRounded: false)
    }

    init(value: Int64, timescale: Int32, wasRounded: Bool) {
        let meaningful = timescale > 0
        self.value = meaningful ? value : 0
        self.timescale = meaningful ? timescale : 0
        self.kind = meaningful ? .number : .invalid
        self.wasRounded = meaningful && wasRounded
    }

    init(_ kind: Kind) {
        self.value = 0
        self.timescale = kind == .number ? 1 : 0
        self.kind = kind
        self.wasRounded = false
    }

    /// The beginning of an item: 0 seconds, exactly.
    public static let zero = MediaTime(.number)
    /// The result of an operation without meaning; also "not given" where a time is optional.
    public static let invalid = MediaTime(.invalid)
    /// Not known yet, or without an end: the duration of a live stream.
    public static let indefinite = MediaTime(.indefinite)
    /// Later than every number of seconds: the end of what never ends.
    public static let positiveInfinity = MediaTime(.positiveInfinity)
    /// Earlier than every number of seconds.
    public static let negativeInfinity = MediaTime(.negativeInfinity)

    /// False for the result of an operation without meaning alone; infinite and indefinite are
    /// valid.
    public var isValid: Bool { kind != .invalid }
    /// A number of seconds: neither invalid, indefinite nor infinite.
    public var isNumeric: Bool { kind == .number }
    /// Not known yet, or without an end.
    public var isIndefinite: Bool { kind == .indefinite }
    /// One of the two infinities.
    public var isInfinite: Bool { kind == .positiveInfinity || kind == .negativeInfinity }
}

extension MediaTime: Comparable, Hashable {
    public static func == (a: Self, b: Self) -> Bool {
        a.kind == b.kind && a.crossProduct(with: b) == b.crossProduct(with: a)
    }

    public static func < (a: Self, b: Self) -> Bool {
        a.kind == b.kind
            ? a.crossProduct(with: b) < b.crossProduct(with: a)
            : a.kind.rawValue < b.kind.rawValue
    }

    /// 63 + 31 bits: exact. Zero on both sides for the times without a number.
    private func crossProduct(with other: Self) -> Int128 {
        Int128(value) * Int128(other.timescale)
    }

    /// Equal times hash alike: the fraction is reduced first.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(kind)
        guard isNumeric else { return }
        let divisor = Int128(value).greatestCommonDivisor(with: Int128(timescale))
        hasher.combine(Int128(value) / divisor)
        hasher.combine(Int128(timescale) / divisor)
    }
}

extension MediaTime: CustomStringConvertible {
    public var description: String {
        switch kind {
        case .number: "\(value)/\(timescale)\(wasRounded ? "~" : "")"
        case .negativeInfinity: "-∞"
        case .positiveInfinity: "+∞"
        case .indefinite: "indefinite"
        case .invalid: "invalid"
        }
    }
}
