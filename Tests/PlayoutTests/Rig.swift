import TuttiPlayout
import TuttiRealTime
import TuttiTiming

/// A room in memory: an engine, a virtual card, a host clock, and the truth about all of them.
final class Rig {
    static let format = OutputFormat(
        sampleRate: 48_000, channelCount: 2, periodFrames: 480, bufferFrames: 1_920)

    private static let silence = [Float](repeating: 0, count: 9_600)

    let engine: OutputEngine
    let clock: ClockCell
    /// Local clock to group clock: what a perfect clock service would publish.
    let truth: ClockMap<LocalClock, GroupClock>
    private(set) var card: VirtualCard
    private(set) var now: LocalInstant
    /// Frames rendered since the card last started from 0.
    private(set) var rendered: Int64 = 0
    /// At the card.
    private(set) var looks = 0
    /// What left the card, all channels, in order; frame 0 is the first that ever did.
    private(set) var heard: [Float] = []
    private var sources: [Source] = []
    private var period: [Float]
    private var random: UInt64
    private let partsPerMillion: Double
    /// Between the card's ring and the ear; the card says so.
    var latency = Nanoseconds.zero
    /// What a faulty driver adds to its position, frames.
    var pointerFault = 0.0
    /// The card does not say where it is.
    var isMute = false
    /// The thread does not wake before this instant: a stall.
    private var stalledUntil = LocalInstant(nanoseconds: 0)

    private struct Source {
        let voice: Voice
        let end: Int64
        /// `nil`: silence.
        let sample: ((Int64) -> (Float, Float))?
        var next: Int64
    }

    /// - Parameters:
    ///   - partsPerMillion: of the card's crystal against the local clock.
    ///   - hostPartsPerMillion: of the local clock against the group clock.
    init(
        format: OutputFormat = Rig.format, partsPerMillion: Double = 0, wander: Double = 0,
        hostPartsPerMillion: Double = 0, pointerGranularity: Int = 0, seed: UInt64 = 1,
        fidelity: OutputEngine.Fidelity = .audio
    ) {
        self.partsPerMillion = partsPerMillion
        engine = OutputEngine(format: format, fidelity: fidelity)
        period = [Float](repeating: 0, count: format.periodFrames * format.channelCount)
        now = LocalInstant(nanoseconds: 7_000_000_000 + Int64(seed) * 1_234_567)
        truth = ClockMap(
            from: now, to: GroupInstant(nanoseconds: 500_000_000_000),
            skew: -hostPartsPerMillion * 1e-6)
        clock = ClockCell(
            SharedClock(
                map: truth, uncertainty: .zero, estimatedAt: now, epoch: 1, quality: .locked))
        card = VirtualCard(
            format: format,
            crystal: Crystal(
                nominalRate: format.sampleRate, partsPerMillion: partsPerMillion, wander: wander,
                seed: seed),
            pointerGranularity: pointerGranularity)
        random = seed &* 77 &+ 5
    }

    var groupNow: GroupInstant { truth(now) }
    /// Now, for voices without a clock.
    var localAsGroup: GroupInstant { GroupInstant(nanoseconds: now.nanoseconds) }

    /// A voice that is fed `sample` for `range` as its ring takes it.
    func voice(
        sampleRate: Int = 48_000, frames range: Range<Int64> = 0..<Int64.max,
        _ sample: ((Int64) -> (Float, Float))? = nil
    ) -> Voice {
        let voice = engine.port.makeVoice(sampleRate: sampleRate)!
        voice.ring.reset(firstFrame: range.lowerBound)
        sources.append(
            Source(voice: voice, end: range.upperBound, sample: sample, next: range.lowerBound))
        feed()
        return voice
    }

    /// Voices whose decoder hangs get nothing more.
    var isFeeding = true

    func feed() {
        guard isFeeding else { return }
        for i in sources.indices {
            // Enough ahead for any test, and cheap in a debug build.
            let ring = sources[i].voice.ring
            while ring.endFrame - sources[i].next <= 0, sources[i].next < sources[i].end,
                ring.writableFrames >= 4_800,
                sources[i].next - max(ring.firstFrame, position(sources[i])) < 24_000
            {
                let upper = min(sources[i].end, sources[i].next + 4_800)
                var samples: [Float] = []
                samples.reserveCapacity(9_600)
                guard let sample = sources[i].sample else {
                    let silence = Rig.silence.prefix(2 * Int(upper - sources[i].next))
                    sources[i].next += Int64(silence.withUnsafeBufferPointer { ring.write($0) })
                    if sources[i].next == sources[i].end { ring.finish() }
                    continue
                }
                for k in sources[i].next..<upper {
                    let (l, r) = sample(k)
                    samples.append(l)
                    samples.append(r)
                }
                sources[i].next += Int64(samples.withUnsafeBufferPointer { ring.write($0) })
                if sources[i].next == sources[i].end { ring.finish() }
            }
        }
    }

    private func position(_ source: Source) -> Int64 {
        let frame = source.voice.report.itemFrame
        return frame > 0 ? Int64(frame) : 0
    }

    /// The card is closed, and another one opened in its place.
    func reopen(partsPerMillion: Double) {
        card = VirtualCard(
            format: engine.format,
            crystal: Crystal(
                nominalRate: engine.format.sampleRate, partsPerMillion: partsPerMillion))
        engine.replaced()
        rendered = 0
    }

    func stall(_ span: Nanoseconds) { stalledUntil = now + span }

    /// Runs the output thread for a while; `each` is called after every period.
    func run(_ span: Nanoseconds, each: () -> Void = {}) {
        let end = now + span
        while now < end {
            if now >= stalledUntil {
                advanceCard()
                while card.writableFrames >= engine.format.periodFrames {
                    render()
                    each()
                }
            }
            // A thread wakes a period later, 0 to 0.4 ms late.
            random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            glance(until: now + Nanoseconds(9_500_000 + Int64(random >> 44) % 400_000))
        }
    }

    /// Runs the output thread as it plans it; `each` is called after every period with what is
    /// queued then.
    func runAsPlanned(_ span: Nanoseconds, each: (_ queuedFrames: Int) -> Void = { _ in }) {
        let end = now + span
        func play(until next: LocalInstant) {
            now = max(now, next)
            advanceCard()
        }
        while now < end {
            let plan = engine.planWait(after: now)
            if let glance = plan.glance {
                play(until: glance)
                look()
                continue
            }
            if let due = plan.due { play(until: due) }
            while card.writableFrames < engine.format.periodFrames {
                play(until: now + .microseconds(100))
            }
            render()
            each(card.queuedFrames)
        }
    }

    /// The card plays until now.
    private func advanceCard() {
        if card.advance(to: now, emit: { samples, _ in heard += samples }) == .restarted {
            engine.restarted()
            rendered = 0
        }
    }

    /// Renders one period, and queues it.
    private func render() {
        look()
        feed()
        period.withUnsafeMutableBufferPointer { buffer in
            engine.render(into: buffer.baseAddress!, now: now)
            card.write(UnsafeBufferPointer(buffer), now: now)
        }
        rendered += Int64(engine.format.periodFrames)
    }

    /// Sleeps until `wake`, but for the looks in between that the engine asks for.
    private func glance(until wake: LocalInstant) {
        while now >= stalledUntil, let glance = engine.planWait(after: now).glance, glance < wake {
            now = glance
            look()
        }
        now = wake
    }

    private func look() {
        looks += 1
        guard !isMute, var reading = card.reading(at: now) else { return }
        reading.framesAhead =
            latency.seconds * Double(engine.format.sampleRate) * (1 + partsPerMillion * 1e-6)
        reading.framesHeard -= reading.framesAhead
        reading.framesHeard += pointerFault
        engine.observe(reading)
    }

    /// The group instant at which the frame behind the last rendered one really leaves the card.
    var groupAtEnd: (instant: GroupInstant, fraction: Double)? {
        card.instant(ofFrame: Double(rendered)).map { (truth($0.instant + latency), $0.fraction) }
    }

    /// How late the voice is on `line`, in seconds, by the truth; `nil` while it is silent.
    func lateness(of voice: Voice, on line: Line, sampleRate: Double = 48_000) -> Double? {
        guard let position = engine.position(of: voice), let at = groupAtEnd else { return nil }
        let elapsed = Double((at.instant - line.instant).count) + at.fraction
        let wanted = line.itemFrame + elapsed * 1e-9 * sampleRate * line.rate
        return (wanted - position) / (sampleRate * line.rate)
    }

    /// One channel of what was heard.
    func channel(_ c: Int = 0) -> [Float] {
        stride(from: c, to: heard.count, by: engine.format.channelCount).map { heard[$0] }
    }

    /// When frame `n` of ``heard`` left the card, while the card has not restarted.
    func group(ofHeard n: Int) -> Double {
        let (instant, fraction) = card.instant(ofFrame: Double(n))!
        return Double((truth(instant) - GroupInstant(nanoseconds: 500_000_000_000)).count) * 1e-9
            + fraction * 1e-9
    }
}
