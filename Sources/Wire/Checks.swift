import TuttiGroupControl
import TuttiTiming

// What a value from a peer must pass before it becomes one of ours.

/// A finite number. Durations, rates and figures are all small: what is beyond 1e18 is nonsense
/// even where it would do no harm.
func finite(_ value: Double, _ subject: String) throws(WireError) -> Double {
    guard value.isFinite, value.magnitude <= 1e18 else {
        throw WireError(.outOfRange, subject, "\(value)")
    }
    return value
}

func finite(_ value: Double, if isGiven: Bool, _ subject: String) throws(WireError) -> Double? {
    isGiven ? try finite(value, subject) : nil
}

/// What a person reads of another node, and what is added up from it, stays within what can be.
///
/// A figure beyond is not refused but brought back to the end of its range: a room whose card or
/// clock has gone mad is still a room, and the end of a range is seen to be one.
enum Figures {
    /// Of a room's decoded audio, seconds.
    static let buffer = 0.0...3_600
    /// Of crystals and corrections, ppm: a hundred times what is ever built.
    static let partsPerMillion = -100_000.0...100_000
    /// An hour; a clock that stood still says so.
    static let microseconds = -3.6e9...3.6e9
    /// Of what was said or measured last, seconds: four months.
    static let age = 0.0...1e7
    /// Of an item, seconds: three years.
    static let position = 0.0...1e8
    /// At the highest rate a lane of frames is played.
    static let rate = 0.0...4.0
    /// Of packets, dropouts and the like; ten of them added up are still a number.
    static let count: Int64 = 999_999_999
    static let span = Nanoseconds.seconds(3_600)
    static let longestSpan = Nanoseconds.seconds(10_000_000)
}

/// A finite number, brought back into its range.
func figure(
    _ value: Double, _ range: ClosedRange<Double>, _ subject: String
) throws(WireError) -> Double {
    min(max(try finite(value, subject), range.lowerBound), range.upperBound)
}

func figure(
    _ value: Double, _ range: ClosedRange<Double>, if isGiven: Bool, _ subject: String
) throws(WireError) -> Double? {
    isGiven ? try figure(value, range, subject) : nil
}

/// A span of time that is only shown and added up, brought back into ±1 hour.
func figure(_ value: Int64) -> Nanoseconds {
    min(max(Nanoseconds(value), -Figures.span), Figures.span)
}

/// A span since something, brought back into 0 to four months.
func age(_ value: Int64) -> Nanoseconds {
    min(max(Nanoseconds(value), .zero), Figures.longestSpan)
}

func notNegative(_ value: Int64, _ subject: String) throws(WireError) -> Int64 {
    guard value >= 0 else { throw WireError(.outOfRange, subject, "\(value) is negative") }
    return value
}

func count(_ value: Int64, _ subject: String) throws(WireError) -> Int {
    Int(min(try notNegative(value, subject), Figures.count))
}

func index(_ value: Int32, _ subject: String) throws(WireError) -> Int {
    guard value >= 0 else { throw WireError(.outOfRange, subject, "\(value) is negative") }
    return Int(value)
}

/// A span of time that is a latency or a round trip: within ±1 hour.
func span(_ value: Int64, _ subject: String) throws(WireError) -> Nanoseconds {
    let span = Nanoseconds(value)
    guard span.magnitude <= .seconds(3_600) else {
        throw WireError(.outOfRange, subject, "\(span.seconds) s")
    }
    return span
}

/// A latency offset, and how surely it is known; nanoseconds, whole microseconds of them.
func latency(
    _ offset: Int64, _ uncertainty: Int64?, _ subject: String
) throws(WireError) -> LatencyOffset {
    for part in [offset, uncertainty ?? 0] where part % 1_000 != 0 {
        throw WireError(.outOfRange, subject, "\(part) ns are no whole microseconds")
    }
    return try valid(subject) { () throws(InvalidValue) in
        try LatencyOffset(
            microseconds: Int(offset / 1_000),
            uncertaintyMicroseconds: uncertainty.map { Int($0 / 1_000) })
    }
}

func port(_ value: UInt32, _ subject: String) throws(WireError) -> UInt16 {
    guard let port = UInt16(exactly: value) else {
        throw WireError(.outOfRange, subject, "\(value) is no port")
    }
    return port
}

func text(
    _ value: String, _ subject: String, limit: Int = RoomReport.longestText
) throws(WireError) -> String {
    guard value.utf8.count <= limit else {
        throw WireError(.tooLong, subject, "\(value.utf8.count) bytes of at most \(limit)")
    }
    return value
}

/// Runs an initialiser of the vocabulary and names the field when it refuses.
func valid<Value>(
    _ subject: String, _ make: () throws(InvalidValue) -> Value
) throws(WireError) -> Value {
    do {
        return try make()
    } catch {
        throw WireError(.outOfRange, subject, error.description)
    }
}

func present<Value>(_ value: Value?, _ subject: String) throws(WireError) -> Value {
    guard let value else { throw WireError(.missing, subject, "not given") }
    return value
}
