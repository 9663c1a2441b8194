import CTuttiALSA
import Glibc
import TuttiLinuxHost
public import TuttiPlayout
public import TuttiTiming

/// What a sound card, or anything else that ALSA calls a PCM, turned out to be.
public struct CardFacts: Equatable, Sendable {
    /// Which clock a driver stamps its readings with.
    public enum Stamps: Equatable, Sendable {
        /// CLOCK_MONOTONIC_RAW, our local clock.
        case raw
        /// A clock that the time daemon steers; translated next to each reading.
        case monotonic, realTime
        /// The driver gives none, or none that can be true.
        case none
    }

    /// The name by which it was opened.
    public var pcm: String
    /// The library's word: HW is a driver of the kernel, others are plug-ins in this process.
    public var type = ""
    /// ALSA's name of the sample format it was opened with: `S32_LE`.
    public var sampleFormat = ""
    /// Frames per second that it was opened with.
    public var sampleRate = 0
    /// Channels that it was opened with.
    public var channelCount = 0
    /// Frames between two of the card's own wake-ups.
    public var periodFrames = 0
    /// Frames that the card can hold.
    public var bufferFrames = 0
    /// Which clock its readings are stamped with.
    public var stamps = Stamps.none
    /// The driver says that its pointer moves by transfers, not by frames.
    public var isBatch = false
    /// Readings taken while it ran.
    public var readings = 0
    /// How far the count of heard frames lies behind a straight line through it: the size of the
    /// jumps in which it moves.
    public var granularityFrames = 0.0
    /// The card's rate against the local clock; a second tells it to some ppm.
    public var partsPerMillion: Double?
    /// Times it ran dry while it was looked at.
    public var underruns = 0

    /// Of a card that nobody has looked at yet.
    public init(pcm: String) { self.pcm = pcm }
}

/// Opens a PCM for a moment and plays silence on it, to see what it tells about itself.
public enum CardProbe {
    /// - Parameter duration: how long it plays; longer tells the rate better.
    /// - Throws: what a room would run into, with what to do about it.
    public static func examine(
        pcm name: String, preferredSampleRate: Int, bufferMilliseconds: Int,
        duration: Nanoseconds = .seconds(1)
    ) throws(OutputError) -> CardFacts {
        let setup = try ALSANegotiation(
            name: name, preferredSampleRate: preferredSampleRate,
            bufferMilliseconds: bufferMilliseconds
        ).open()
        defer {
            unsafe snd_pcm_drop(setup.pcm)
            unsafe snd_pcm_close(setup.pcm)
        }
        var facts = CardFacts(pcm: name)
        let type = unsafe snd_pcm_type_name(snd_pcm_type(setup.pcm))
        facts.type = unsafe type.map { unsafe String(cString: $0) } ?? ""
        facts.sampleFormat = unsafe String(cString: snd_pcm_format_name(setup.sampleFormat.alsa))
        facts.sampleRate = setup.format.sampleRate
        facts.channelCount = setup.format.channelCount
        facts.periodFrames = setup.format.periodFrames
        facts.bufferFrames = setup.format.bufferFrames
        facts.isBatch = unsafe isBatch(setup.pcm)
        var run = Run(setup)
        try run.play(for: duration)
        facts.stamps = run.stamps
        facts.underruns = run.underruns
        run.conclude(&facts)
        return facts
    }

    private static func isBatch(_ pcm: OpaquePointer) -> Bool {
        var current: OpaquePointer?
        guard unsafe snd_pcm_hw_params_malloc(&current) >= 0, let current = unsafe current else {
            return false
        }
        defer { unsafe snd_pcm_hw_params_free(current) }
        guard unsafe snd_pcm_hw_params_current(pcm, current) >= 0 else { return false }
        return unsafe snd_pcm_hw_params_is_batch(current) != 0
    }

    /// One stretch of silence. `@safe`: the handle is the caller's and outlives this.
    @safe private struct Run {
        let setup: ALSASetup
        let silence: [UInt8]
        var clock: StampClock
        var stamps = CardFacts.Stamps.none
        var underruns = 0
        /// Since the last start; an underrun begins a new line.
        var looks: [(instant: LocalInstant, heard: Double)] = []
        var framesWritten: Int64 = 0

        init(_ setup: ALSASetup) {
            self.setup = setup
            clock = setup.stampClock
            // Zero is silence in all formats that we choose from.
            silence = Array(
                repeating: 0,
                count: setup.format.periodFrames * setup.format.channelCount
                    * setup.sampleFormat.bytesPerSample)
        }

        mutating func play(for duration: Nanoseconds) throws(OutputError) {
            var allocated: OpaquePointer?
            let code = unsafe snd_pcm_status_malloc(&allocated)
            guard code >= 0, let status = unsafe allocated else {
                throw ALSAFailure.error("snd_pcm_status_malloc", code, pcm: setup.name)
            }
            defer { unsafe snd_pcm_status_free(status) }
            try start()
            let end = HostClock.now() + duration
            while HostClock.now() < end {
                if unsafe look(status) { try fill() } else { try again() }
                // Not a divisor of a frame, so that looks fall everywhere between two of them.
                HostClock.sleep(until: HostClock.now() + Nanoseconds(317_000))
            }
        }

        private mutating func start() throws(OutputError) {
            framesWritten = 0
            looks = []
            while framesWritten < setup.format.bufferFrames { try write() }
            try ALSAFailure.check(
                unsafe snd_pcm_start(setup.pcm), "snd_pcm_start", pcm: setup.name)
        }

        private mutating func again() throws(OutputError) {
            underruns += 1
            // A card that only ever runs dry shall not keep us.
            guard underruns < 20 else { return }
            unsafe snd_pcm_drop(setup.pcm)
            try ALSAFailure.check(
                unsafe snd_pcm_prepare(setup.pcm), "snd_pcm_prepare", pcm: setup.name)
            try start()
        }

        private mutating func fill() throws(OutputError) {
            let needed = setup.cardFrames - setup.format.bufferFrames + setup.format.periodFrames
            if unsafe snd_pcm_avail(setup.pcm) >= needed { try write() }
        }

        private mutating func write() throws(OutputError) {
            let count = snd_pcm_uframes_t(setup.format.periodFrames)
            let taken = unsafe silence.withUnsafeBytes {
                unsafe snd_pcm_writei(setup.pcm, $0.baseAddress, count)
            }
            if taken > 0 {
                framesWritten += Int64(taken)
            } else if taken != -Int(EPIPE), taken != -Int(EAGAIN) {
                throw ALSAFailure.error("snd_pcm_writei", Int32(taken), pcm: setup.name)
            } else if framesWritten < setup.format.bufferFrames {
                throw ALSAFailure.error("snd_pcm_writei", -EIO, pcm: setup.name)
            }
        }

        /// - Returns: false when the card has stopped.
        private mutating func look(_ status: OpaquePointer) -> Bool {
            let before = HostClock.now()
            guard unsafe snd_pcm_status(setup.pcm, status) >= 0,
                unsafe snd_pcm_status_get_state(status) == SND_PCM_STATE_RUNNING
            else { return false }
            let after = HostClock.now()
            // Preempted in between: a plug-in's count and stamp would be of different moments.
            guard after - before < .microseconds(200) else { return true }
            let delay = unsafe snd_pcm_status_get_delay(status)
            var stamp = timespec()
            unsafe snd_pcm_status_get_htstamp(status, &stamp)
            var instant = before + (after - before) / 2
            if stamp.tv_sec != 0 || stamp.tv_nsec != 0, let seen = clock.confirmed(by: stamp) {
                clock = seen
                switch seen {
                case .raw: stamps = .raw
                case .monotonic: stamps = .monotonic
                case .realTime: stamps = .realTime
                }
                instant = seen.localInstant(of: stamp)
            }
            looks.append((instant, Double(framesWritten - Int64(delay))))
            return true
        }

        /// A straight line through all looks: its slope is the rate, its residuals the jumps.
        func conclude(_ facts: inout CardFacts) {
            facts.readings = looks.count
            guard looks.count >= 50, let first = looks.first, let last = looks.last,
                last.instant - first.instant > .milliseconds(100)
            else { return }
            let points = looks.map { (x: ($0.instant - first.instant).seconds, y: $0.heard) }
            let count = Double(points.count)
            let meanX = points.reduce(0) { $0 + $1.x } / count
            let meanY = points.reduce(0) { $0 + $1.y } / count
            var (xx, xy) = (0.0, 0.0)
            for point in points {
                xx += (point.x - meanX) * (point.x - meanX)
                xy += (point.x - meanX) * (point.y - meanY)
            }
            guard xx > 0 else { return }
            let slope = xy / xx
            facts.partsPerMillion = (slope / Double(setup.format.sampleRate) - 1) * 1e6
            let residuals = points.map { $0.y - meanY - slope * ($0.x - meanX) }.sorted()
            // A saw-tooth is spread evenly: nine tenths of it lie between these.
            let low = residuals[Int(0.05 * count)]
            let high = residuals[Int(0.95 * count)]
            facts.granularityFrames = (high - low) / 0.9
        }
    }
}
