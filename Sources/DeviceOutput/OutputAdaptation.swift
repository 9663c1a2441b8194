import TuttiPlayout
public import TuttiTiming

/// What a card is asked for.
struct OutputWish: Equatable, Sendable {
    /// Nominal frames per second, the nearest that it has.
    var sampleRate: Int
    var bufferMilliseconds: Int

    /// What a card that is not there yet is taken for.
    var format: OutputFormat {
        let buffer = max(OutputFormat.usualPeriods, sampleRate * bufferMilliseconds / 1_000)
        let period = max(
            1,
            min(
                buffer / OutputFormat.usualPeriods,
                sampleRate * ALSANegotiation.periodMillisecondsMax / 1_000))
        return OutputFormat(
            sampleRate: sampleRate, channelCount: 2, periodFrames: period,
            bufferFrames: buffer / period * period)
    }
}

/// What an output may do besides playing.
public struct OutputManner: Equatable, Sendable {
    /// While nothing sounds the card goes to the sample rate of the item that comes, if it can.
    public var followsItems: Bool
    /// When nothing has sounded for some seconds, other programs may have the card.
    public var releasesWhenIdle: Bool
    /// A card that runs dry again and again gets a longer buffer.
    var lengthensBuffer: Bool
    /// Silence after which a card is let go of: longer than the pause between two items that a
    /// person starts one after the other.
    var idleSpan = Nanoseconds.seconds(5)

    /// From the wish to play to a card that was let go of and is known again.
    public static let reopening = Nanoseconds.milliseconds(700)

    /// Without arguments: it only plays, as it was opened.
    public init(
        followsItems: Bool = false, releasesWhenIdle: Bool = false, lengthensBuffer: Bool = false
    ) {
        self.followsItems = followsItems
        self.releasesWhenIdle = releasesWhenIdle
        self.lengthensBuffer = lengthensBuffer
    }

    var lengtheningBuffer: OutputManner {
        var manner = self
        manner.lengthensBuffer = true
        return manner
    }
}

/// Decides when a card is closed and opened otherwise: for another rate, for a longer buffer, or to
/// let others have it.
///
/// The rate changes only while nothing sounds or is about to: a queue that plays is never
/// interrupted, and what comes next in it is resampled. A buffer is doubled when the card has run
/// dry several times within seconds: cards take their frames in lumps of a size that nobody tells,
/// and a machine that stalls once in a while is no reason.
struct OutputAdaptation {
    enum Step: Equatable {
        case goOn
        case reopen
        case release
    }

    let manner: OutputManner
    private(set) var wish: OutputWish
    /// The item that was last expected, as far as it has been seen to.
    private(set) var seenTo = ExpectedItem()
    private var pending: (serial: UInt64, since: LocalInstant)?
    private var busyAt: LocalInstant?
    private var dryAt: [LocalInstant] = []
    /// The rate of the settings: for items whose own the card does not have.
    private let standardRate: Int
    /// Asked for and not given.
    private var refused: Set<Int> = []

    /// What is being ended may still fade for so long; then the card stays as it is.
    static let fadeSpan = Nanoseconds.milliseconds(60)
    /// So many times dry within so long are no accident.
    static let dryCount = 4
    static let drySpan = Nanoseconds.seconds(10)

    init(_ wish: OutputWish, manner: OutputManner) {
        self.wish = wish
        self.manner = manner
        standardRate = wish.sampleRate
    }

    /// - Parameters:
    ///   - isActive: a voice sounds or is about to.
    ///   - item: what was expected last.
    ///   - format: what the card is open with, and the rates that it has.
    mutating func step(
        at now: LocalInstant, isActive: Bool, item: ExpectedItem, rate: Int, offered: [Int]
    ) -> Step {
        if isActive || busyAt == nil { busyAt = now }
        if item.serial != seenTo.serial {
            busyAt = now
            let wanted = choice(for: item.sampleRate, among: offered)
            if !manner.followsItems || wanted == rate {
                seenTo = item
            } else if !isActive {
                seenTo = item
                wish.sampleRate = wanted
                return .reopen
            } else if pending?.serial != item.serial {
                pending = (item.serial, now)
            } else if let pending, now - pending.since > Self.fadeSpan {
                seenTo = item
            }
        }
        if manner.releasesWhenIdle, let busyAt, now - busyAt > manner.idleSpan { return .release }
        return .goOn
    }

    /// The card is taken again.
    mutating func wake(for item: ExpectedItem, offered: [Int], at now: LocalInstant) {
        seenTo = item
        busyAt = now
        if manner.followsItems, item.sampleRate > 0 {
            wish.sampleRate = choice(for: item.sampleRate, among: offered)
        }
    }

    /// The item's own rate, or a multiple of it, for which no sample is invented; else that of the
    /// settings.
    private func choice(for rate: Int, among offered: [Int]) -> Int {
        let possible = offered.filter { !refused.contains($0) }
        if possible.contains(rate) { return rate }
        let multiple = possible.filter { $0 > rate && rate > 0 && $0 % rate == 0 }.min()
        return multiple ?? (possible.contains(standardRate) ? standardRate : wish.sampleRate)
    }

    /// It is open, with this rate.
    mutating func opened(with rate: Int) {
        if rate != wish.sampleRate { refused.insert(wish.sampleRate) }
    }

    /// It cannot be opened with the rate of the item.
    mutating func refusedToOpen() {
        guard wish.sampleRate != standardRate else { return }
        refused.insert(wish.sampleRate)
        wish.sampleRate = standardRate
    }

    /// The card ran dry.
    ///
    /// - Parameter isHopeless: starting it again was of no use.
    /// - Returns: whether it is to be opened with a longer buffer: ``wish``.
    mutating func ranDry(at now: LocalInstant, isHopeless: Bool = false) -> Bool {
        dryAt.removeAll { now - $0 > Self.drySpan }
        dryAt.append(now)
        guard manner.lengthensBuffer, isHopeless || dryAt.count >= Self.dryCount,
            wish.bufferMilliseconds < OutputThread.longestBufferMilliseconds
        else { return false }
        dryAt = []
        wish.bufferMilliseconds = min(
            2 * wish.bufferMilliseconds, OutputThread.longestBufferMilliseconds)
        return true
    }
}
