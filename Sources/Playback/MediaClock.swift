import Synchronization
public import TuttiPlayout
public import TuttiRealTime
public import TuttiTiming

/// A clock that can be read, compared with others, and drive players (Core Media's `CMClock`).
///
/// All of them read in nanoseconds of an epoch of their own. Each is known here by its relation to the
/// machine's local clock; two clocks are compared by way of that. Called so, and not `Clock`, because
/// Swift's own protocol has that name.
public final class MediaClock: Sendable {
    private enum Kind: Sendable {
        case host, manual, group
        case device(DeviceClock)
    }

    /// Of a clock that is set by hand.
    private static let rates = 0.5...2.0

    private let kind: Kind
    /// Where voices and players read it.
    let cell: ClockCell
    private let localNow: @Sendable () -> LocalInstant
    /// One writer at a time.
    private let writing = Mutex(())

    private init(_ kind: Kind, _ cell: ClockCell, now: @escaping @Sendable () -> LocalInstant) {
        self.kind = kind
        self.cell = cell
        localNow = now
    }

    // MARK: Making one

    /// The machine's own: it reads what `now` says.
    ///
    /// - Parameter now: the local clock.
    public static func host(now: @escaping @Sendable () -> LocalInstant) -> MediaClock {
        let cell = ClockCell(.own(at: LocalInstant(nanoseconds: 0), epoch: 1))
        return MediaClock(.host, cell, now: now)
    }

    /// A clock shared with other machines, as its estimate is published in `cell`.
    public static func group(
        _ cell: ClockCell, now: @escaping @Sendable () -> LocalInstant
    ) -> MediaClock {
        MediaClock(.group, cell, now: now)
    }

    /// The crystal of an output: its seconds are as many frames as the output's format says. While there
    /// is no card it goes on at the machine's pace.
    public static func device(_ output: PlayerOutput) -> MediaClock {
        let cell = ClockCell(.own(at: output.now(), epoch: 1))
        return MediaClock(.device(DeviceClock(output, cell)), cell, now: output.now)
    }

    /// One that is set by hand, for tests.
    ///
    /// - Parameters:
    ///   - instant: what it reads at first.
    ///   - rate: its seconds in one of the local clock, 0.5 to 2; anything else counts as 1.
    public static func manual(
        at instant: GroupInstant = GroupInstant(nanoseconds: 0), rate: Double = 1,
        now: @escaping @Sendable () -> LocalInstant
    ) -> MediaClock {
        let clock = ClockCell(.own(at: now(), epoch: 1))
        let manual = MediaClock(.manual, clock, now: now)
        manual.set(instant, rate: rates.contains(rate) ? rate : 1)
        return manual
    }

    // MARK: Reading

    /// What it reads now.
    public func now() -> GroupInstant { cell.load().map(localNow()) }

    /// Half of the width of the interval that contains its true reading, when it was estimated last; 0
    /// for clocks of this machine.
    public var uncertainty: Nanoseconds { cell.load().uncertainty }

    /// Whether anything can be begun by it: a group's clock has to be measured first.
    public var isPlayable: Bool { cell.load().quality.isPlayable }

    /// How many of its seconds pass in one of `other`'s, by what is known now.
    public func rate(relativeTo other: MediaClock) -> Double {
        if other === self { return 1 }
        return cell.load().map.rate / other.cell.load().map.rate
    }

    /// What `other` reads when this clock reads `instant`.
    public func convert(_ instant: GroupInstant, to other: MediaClock) -> GroupInstant {
        if other === self { return instant }
        return other.cell.load().map(cell.load().map.inverted(instant))
    }

    /// Whether the relation of the two may change by itself: not of a clock to itself, and not of the
    /// machine's to one that is set by hand.
    public func mightDrift(relativeTo other: MediaClock) -> Bool {
        if other === self || cell === other.cell { return false }
        func isCrystal(_ clock: MediaClock) -> Bool {
            switch clock.kind {
            case .host, .manual: false
            case .group, .device: true
            }
        }
        return isCrystal(self) || isCrystal(other)
    }

    // MARK: By hand

    /// It reads `instant` now; who plays by it finds item time elsewhere at once.
    ///
    /// - Returns: false for a clock that is not ``manual(at:rate:now:)``.
    @discardableResult
    public func setTime(_ instant: GroupInstant) -> Bool {
        set(instant, rate: cell.load().map.rate)
    }

    /// It goes on from what it reads now, at `rate`, from half as fast as the local clock to twice. It
    /// cannot stand still: that is what pausing a player is for.
    ///
    /// - Returns: false for a rate beyond that, and for a clock that is not ``manual(at:rate:now:)``.
    @discardableResult
    public func setRate(_ rate: Double) -> Bool { set(nil, rate: rate) }

    @discardableResult
    private func set(_ instant: GroupInstant?, rate: Double) -> Bool {
        guard case .manual = kind, Self.rates.contains(rate) else { return false }
        writing.withLock { _ in
            let local = localNow()
            let old = cell.load()
            cell.store(
                SharedClock(
                    map: ClockMap(from: local, to: instant ?? old.map(local), skew: rate - 1),
                    uncertainty: .zero, estimatedAt: local,
                    epoch: instant == nil ? old.epoch : old.epoch + 1, quality: .locked))
        }
        return true
    }
}

/// Keeps the reading of an output's crystal up to date, for as long as somebody has its clock.
private final class DeviceClock: Sendable {
    /// Often enough for a rate that is measured over seconds.
    private static let interval = Nanoseconds.milliseconds(100)
    private let task: Task<Void, Never>

    init(_ output: PlayerOutput, _ cell: ClockCell) {
        task = Task(executorPreference: output.executor) {
            var line = DeviceLine(output.port.report, output.port.format, at: output.now())
            while !Task.isCancelled {
                if output.port.hasCard {
                    line.follow(output.port.report, at: output.now())
                } else {
                    line.stand(at: output.now())
                }
                cell.store(line.clock)
                await output.sleep(Self.interval)
            }
        }
    }

    deinit { task.cancel() }
}

/// How much of an output's time has passed, as a line that has no steps: what has left the card is
/// known to half a frame only, and a card that ran dry lost frames that nobody counts.
struct DeviceLine {
    private let sampleRate: Double
    /// Its own seconds less those of the frames that were counted.
    private var lead: Double
    private(set) var clock: SharedClock

    /// Time in which the line comes back to the frames.
    private static let settling = 10.0
    /// A difference beyond it is no error of the line: frames were lost.
    private static let most = 0.02

    init(_ report: OutputReport, _ format: OutputFormat, at now: LocalInstant) {
        sampleRate = Double(max(1, format.sampleRate))
        clock = .own(at: now, epoch: 1)
        lead = 0
        lead = Double(clock.map(now).nanoseconds) * 1e-9 - heard(report, at: now)
    }

    /// The frames that have left the card by `now`, in seconds.
    private func heard(_ report: OutputReport, at now: LocalInstant) -> Double {
        let speed = 1 + report.cardPartsPerMillion * 1e-6
        return Double(report.framesWritten - Int64(report.queuedFrames)) / sampleRate
            + (now - report.at).seconds * speed
    }

    mutating func follow(_ report: OutputReport, at now: LocalInstant) {
        let reading = clock.map(now)
        let skew = report.cardPartsPerMillion * 1e-6
        var error = Double(reading.nanoseconds) * 1e-9 - heard(report, at: now) - lead
        if abs(error) > Self.most {
            lead += error
            error = 0
        }
        set(reading, at: now, skew: skew - error / Self.settling)
    }

    /// There is no card: its time passes as the machine's.
    mutating func stand(at now: LocalInstant) { set(clock.map(now), at: now, skew: 0) }

    private mutating func set(_ reading: GroupInstant, at now: LocalInstant, skew: Double) {
        clock = SharedClock(
            map: ClockMap(from: now, to: reading, skew: max(-0.01, min(skew, 0.01))),
            uncertainty: .zero, estimatedAt: now, epoch: 1, quality: .locked)
    }
}
