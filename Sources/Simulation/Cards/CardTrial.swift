public import TuttiPlayout
import TuttiRealTime
import TuttiTiming

/// One card and the engine that serves it, for minutes, against a perfect clock: how far from its
/// line is what leaves the card?
///
/// The code under test is the output thread's own: ``OutputEngine`` with its card clock and servo,
/// called as the thread calls it. Only the card, the moments at which the thread wakes and the
/// truth are simulated. The same model and seed give the same result.
public struct CardTrial {
    /// Everything at the card in microseconds; positive: late.
    public struct Result: Sendable, Equatable {
        /// Median, 99 hundredths and largest of the absolute error, from ``CardTrial/settling`` on.
        public var median = 0.0
        /// 99 of a hundred absolute errors are not above it.
        public var p99 = 0.0
        /// The largest absolute error.
        public var worst = 0.0
        /// Mean of the signed error: the lasting difference between this card and another.
        public var mean = 0.0
        /// 99 hundredths of the error's distance from its mean.
        public var p99AboutMean = 0.0
        /// Scatter (RMS) of the resampling ratio about the one that the crystal asks for, ppm.
        public var ratioNoise = 0.0
        /// Largest change of the ratio from one period to the next, ppm.
        public var largestStep = 0.0
        /// From opening the card until the error stays below 20 µs for a second; `nil`: never.
        public var secondsToTwenty: Double?
        /// How often the output thread slept and woke, a second, from ``CardTrial/settling`` on.
        public var wakeUps = 0.0
        /// What the engine found out about the pointer.
        public var cardClass = CardClass.probing
        /// Half width of what the engine promised of its own error, where half of the promises are
        /// narrower …
        public var bound = 0.0
        /// … and the share of them that held, 0…1, of those since the voice sounds and the card is
        /// known.
        public var kept = 0.0
        /// Errors of each period since the voice sounds.
        public var errors: [Double] = []
    }

    /// Errors count from here on, seconds after the card was opened.
    public static let settling = 10.0
    /// Frames the card holds: 80 ms at 48 kHz.
    private static let bufferFrames = 3_840
    private var bufferPeriods: Int { Self.bufferFrames / card.model.periodFrames }
    /// From the look before a period is rendered to the one after it is written, seconds.
    private static let writing = 47e-6

    private var card: SimulatedCard
    private let engine: OutputEngine
    private let voice: Voice
    private let clock: ClockCell
    private let line: Line
    private var result = Result()
    private var written = 0
    private var ratios: [(noise: Double, ratio: Double)] = []
    private var times: [Double] = []
    /// When the thread woke.
    private var wakes: [Double] = []
    private var promises: [(bound: Double, isKept: Bool)] = []

    /// Plays for `seconds` on a card of `model`.
    public static func run(_ model: CardModel, seconds: Double, seed: UInt64) -> Result {
        var trial = CardTrial(model, seed: seed)
        trial.play(for: seconds)
        trial.conclude()
        return trial.result
    }

    private init(_ model: CardModel, seed: UInt64) {
        card = SimulatedCard(model: model, seed: seed)
        engine = OutputEngine(
            format: OutputFormat(
                sampleRate: model.sampleRate, channelCount: 2, periodFrames: model.periodFrames,
                bufferFrames: Self.bufferFrames),
            fidelity: .positionsOnly)
        let now = Self.instant(0)
        clock = ClockCell(.own(at: now, epoch: 1))
        guard let voice = engine.port.makeVoice(sampleRate: model.sampleRate) else {
            preconditionFailure("a new port has no free voice")
        }
        self.voice = voice
        line = Line(
            itemFrame: 0,
            instant: GroupInstant(nanoseconds: now.nanoseconds) + .milliseconds(200))
        voice.start(line, clock: clock)
    }

    private static func instant(_ seconds: Double) -> LocalInstant {
        LocalInstant(nanoseconds: 1_000_000_000) + Nanoseconds(seconds: seconds)
    }

    private static func seconds(_ instant: LocalInstant) -> Double {
        (instant - LocalInstant(nanoseconds: 1_000_000_000)).seconds
    }

    // MARK: The thread

    private mutating func play(for seconds: Double) {
        let silence = [Float](repeating: 0, count: 9_600)
        var now = 0.0
        for _ in 0..<bufferPeriods { render(at: now) }
        card.start(at: 1e-3)
        while now < seconds {
            let plan = engine.planWait(after: Self.instant(now))
            let needed = written - (bufferPeriods - 1) * card.model.periodFrames
            let room = card.roomAt(needed)
            if let glance = plan.glance {
                let awake = card.wake(at: Self.seconds(glance))
                if awake < room {
                    now = max(now, awake)
                    wakes.append(now)
                    look(at: now, isGlance: true)
                    continue
                }
            }
            // The thread sleeps until it is due, and is woken by the card when that was too early.
            let due = plan.due.map { card.wake(at: Self.seconds($0)) } ?? 0
            if max(due, room) > now { wakes.append(max(due, room)) }
            now = max(now + 1e-6, due > room ? due : card.wake(at: room))
            look(at: now)
            feed(silence)
            render(at: now)
            measure()
            // Rendering and writing have taken that long: see `OutputLoop`.
            now += Self.writing
            look(at: now)
        }
    }

    private mutating func look(at now: Double, isGlance: Bool = false) {
        let (frames, seconds) = card.look(at: now)
        engine.observe(
            CardReading(framesHeard: frames, instant: Self.instant(seconds), resolution: 1),
            isGlance: isGlance)
    }

    private mutating func render(at now: Double) {
        var period = [Float](repeating: 0, count: card.model.periodFrames * 2)
        unsafe period.withUnsafeMutableBufferPointer {
            guard let base = $0.baseAddress else { return }
            unsafe engine.render(into: base, now: Self.instant(now))
        }
        written += card.model.periodFrames
    }

    private func feed(_ silence: [Float]) {
        let ring = voice.ring
        while ring.writableFrames >= silence.count / 2 {
            _ = unsafe silence.withUnsafeBufferPointer { unsafe ring.write($0) }
        }
    }

    // MARK: The truth

    private mutating func measure() {
        guard let position = engine.position(of: voice) else { return }
        let at = card.seconds(ofFrame: Double(written))
        let start = (line.instant.nanoseconds - Self.instant(0).nanoseconds)
        let wanted = (at - Double(start) * 1e-9) * Double(card.model.sampleRate)
        let error = (wanted - position) / Double(card.model.sampleRate) * 1e6
        result.errors.append(error)
        times.append(at)
        let report = engine.port.report
        if let doubt = report.bound(sampleRate: card.model.sampleRate) {
            let bound = (report.error.magnitude + doubt).microseconds
            promises.append((bound, error.magnitude <= bound))
        }
        let ratio = voice.report.ratioPartsPerMillion
        let ideal = (1 / (1 + card.skew(at: at)) - 1) * 1e6
        ratios.append((ratio - ideal, ratio))
    }

    private mutating func conclude() {
        result.cardClass = engine.port.report.cardClass
        let steady = times.firstIndex { $0 >= Self.settling } ?? times.endIndex
        let errors = result.errors[steady...]
        guard !errors.isEmpty else { return }
        let count = Double(errors.count)
        let sorted = errors.map(\.magnitude).sorted()
        result.median = sorted[sorted.count / 2]
        result.p99 = sorted[sorted.count * 99 / 100]
        result.worst = sorted[sorted.count - 1]
        result.mean = errors.reduce(0, +) / count
        let spread = errors.map { ($0 - result.mean).magnitude }.sorted()
        result.p99AboutMean = spread[spread.count * 99 / 100]
        let noise = ratios[steady...].map { $0.noise * $0.noise }
        let awake = wakes.filter { $0 >= Self.settling }
        result.wakeUps = Double(awake.count) / ((awake.last ?? .infinity) - Self.settling)
        result.ratioNoise = (noise.reduce(0, +) / count).squareRoot()
        for (a, b) in zip(ratios[steady...], ratios[steady...].dropFirst()) {
            result.largestStep = max(result.largestStep, (b.ratio - a.ratio).magnitude)
        }
        if !promises.isEmpty {
            let bounds = promises.map(\.bound).sorted()
            result.bound = bounds[bounds.count / 2]
            result.kept = Double(promises.count(where: \.isKept)) / Double(promises.count)
        }
        var below = 0
        for (time, error) in zip(times, result.errors) {
            below = error.magnitude < 20 ? below + 1 : 0
            if Double(below * card.model.periodFrames) >= Double(card.model.sampleRate) {
                result.secondsToTwenty = time - 1
                break
            }
        }
    }
}
