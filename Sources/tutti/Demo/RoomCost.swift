import Glibc

/// What a room costs its machine while it plays, its virtual card and the recording of it included.
struct RoomCost: Encodable, Equatable, Sendable {
    /// Processor time of all its threads per time, percent of one core.
    var processorPercent: Double
    /// Most memory that it had mapped and present (RSS), millions of bytes.
    var residentMegabytes: Double
}

/// Measures processes while they play; what starting them cost is not part of it.
struct CostMeter {
    /// After the first sound: what the start has touched is let go of by then.
    static let settling = Duration.seconds(5)
    /// A shorter measurement is mostly chance.
    static let shortest = Duration.seconds(3)
    /// Looks come a few times a second: with this much of music there is a measurement.
    static let leastPlaying = settling + shortest + .seconds(1)

    /// One look at a process.
    struct Reading: Equatable {
        var at: ContinuousClock.Instant
        /// Processor time of all threads since the process began.
        var processorSeconds: Double
        var residentBytes: Int
    }

    private struct Span {
        var first: Reading
        var last: Reading
        var mostBytes: Int
    }
    private var spans: [Int: Span] = [:]

    /// Takes in a look at room number `room`, made while it plays and after ``settling``.
    mutating func note(_ reading: Reading, room: Int) {
        var span =
            spans[room] ?? Span(first: reading, last: reading, mostBytes: reading.residentBytes)
        span.last = reading
        span.mostBytes = max(span.mostBytes, reading.residentBytes)
        spans[room] = span
    }

    /// The cost of a room; `nil` while it is watched for less than ``shortest``.
    func cost(ofRoom room: Int) -> RoomCost? {
        guard let span = spans[room] else { return nil }
        let time = span.first.at.duration(to: span.last.at)
        guard time >= Self.shortest else { return nil }
        let work = span.last.processorSeconds - span.first.processorSeconds
        return RoomCost(
            processorPercent: 100 * work / (time / .seconds(1)),
            residentMegabytes: Double(span.mostBytes) / 1e6)
    }
}

extension CostMeter.Reading {
    /// Looks at a running process; `nil` when there is none of that number.
    init?(process: pid_t) {
        var clock = clockid_t()
        var time = timespec()
        guard clock_getcpuclockid(process, &clock) == 0, clock_gettime(clock, &time) == 0,
            let file = fopen("/proc/\(process)/statm", "r")
        else { return nil }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 128)
        // Pages: in all, resident, …
        guard fgets(&line, Int32(line.count), file) != nil,
            let pages = String(
                decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self
            ).split(separator: " ").dropFirst().first.flatMap({ Int($0) })
        else { return nil }
        at = .now
        processorSeconds = Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
        residentBytes = pages * sysconf(Int32(_SC_PAGESIZE))
    }
}
