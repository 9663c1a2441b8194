public import Timing

/// When the frames written to a card leave it, in local time.
///
/// A card counts frames with its own crystal. Each reading says: at local instant `t` the card had
/// played `N` frames, i.e. `N/fs` of its own seconds. The difference `z = N/fs − t` is a line whose
/// slope `r` is the card's rate error. Readings are noisy (the pointer moves in steps, the look at it
/// is late), so `[z, r]` is estimated by a Kalman filter: between readings `z` grows by `r·dt` and both
/// wander with the white frequency noise of a crystal; a reading observes `z`. The noise of the
/// readings is learnt from the innovations, and an innovation beyond three standard deviations
/// counts as one of three (Huber), so that a late look does not tear the line.
///
/// A pointer that moves in coarse steps (1 ms on USB, a period on others) is always late and never
/// early, by half a step on average. Once the noise shows such a card, only the freshest reading of
/// each 0.4 s is used: the one that is least late. The more often a period the card is looked at, at
/// irregular moments, the closer that comes to the truth.
///
/// Solving for `t` gives the instant of any frame: `t(n) = t₀ + (n/fs − z₀ − t₀) / (1 + r)`.
public struct CardClock: Sendable, BitwiseCopyable {
    /// Random walk of the rate, seconds per second per √s: 0.01 ppm/√s, a crystal in a room.
    private static var rateNoise: Double {
        @_noLocks @_noAllocation get { 1e-8 }
    }
    /// Before the first reading, standard deviation of the rate: 200 ppm.
    private static var firstRateVariance: Double {
        @_noLocks @_noAllocation get { 200e-6 * 200e-6 }
    }
    /// The same after a restart of a card whose rate is known: 5 ppm.
    private static var keptRateVariance: Double {
        @_noLocks @_noAllocation get { 5e-6 * 5e-6 }
    }
    /// A reading is at first believed to 20 µs, one frame.
    private static var firstNoise: Double {
        @_noLocks @_noAllocation get { 20e-6 * 20e-6 }
    }
    private static var leastNoise: Double {
        @_noLocks @_noAllocation get { 1e-13 }
    }
    /// Readings in a row that lie far off on the same side before the line is taken up anew: the
    /// card has jumped.
    private static var outliersBeforeJump: Int {
        @_noLocks @_noAllocation get { 12 }
    }

    /// Noise, as a standard deviation, from which on a pointer counts as coarse: 75 µs. Steps of 8
    /// frames at 48 kHz have 48 µs and are better averaged.
    private static var coarseNoise: Double {
        @_noLocks @_noAllocation get { 75e-6 * 75e-6 }
    }
    /// How long the freshest reading of a coarse pointer is waited for, seconds.
    private static var freshWindow: Double {
        @_noLocks @_noAllocation get { 0.4 }
    }

    private let sampleRate: Double
    /// Local instant of the first reading since the restart; `time` counts seconds from it.
    private var epoch = LocalInstant(nanoseconds: 0)
    private var time = 0.0
    private var z = 0.0
    private var r = 0.0
    private var p00 = 0.0
    private var p01 = 0.0
    private var p11 = CardClock.firstRateVariance
    private var noise = CardClock.firstNoise
    private var outliers = 0
    private var sinceRestart = 0
    /// Whether the pointer moves in coarse steps.
    private(set) var isCoarse = false
    /// Of the current window of a coarse card: its end, and the freshest look so far.
    private var windowEnd = 0.0
    private var freshest = 0.0
    private var freshestTime = 0.0
    private var hasFreshest = false
    /// Readings since the card was opened.
    private(set) var readings: Int64 = 0

    public init(sampleRate: Int) { self.sampleRate = Double(sampleRate) }

    /// The card counts from 0 again: the rate is kept, the phase must be found again.
    @_noLocks @_noAllocation
    public mutating func restart() {
        sinceRestart = 0
        outliers = 0
        p01 = 0
        p11 = max(p11, Self.keptRateVariance)
    }

    /// Takes in one look at the card.
    @_noLocks @_noAllocation
    public mutating func observe(_ reading: CardReading) {
        guard reading.framesHeard == reading.framesHeard else { return }
        readings += 1
        guard sinceRestart > 0 else {
            epoch = reading.instant
            time = 0
            anchor(z: reading.framesHeard / sampleRate)
            return
        }
        let now = (reading.instant - epoch).seconds
        guard now > time else { return }
        let innovation = reading.framesHeard / sampleRate - now - (z + r * (now - time))
        sinceRestart += 1
        guard isCoarse else {
            update(innovation, at: now)
            if sinceRestart > 50, noise > Self.coarseNoise { becomeCoarse() }
            return
        }
        if !hasFreshest || innovation > freshest {
            freshest = innovation
            freshestTime = now
            hasFreshest = true
        }
        if now >= windowEnd {
            windowEnd = now + Self.freshWindow
            hasFreshest = false
            update(freshest, at: freshestTime)
        }
    }

    /// From the mean of the readings to their edge: lateness that is uniform with deviation σ has its
    /// freshest end √3 σ before its mean.
    @_noLocks @_noAllocation
    private mutating func becomeCoarse() {
        isCoarse = true
        z += 1.732 * squareRoot(of: noise)
        // What was learnt while the noise was underrated is not worth its stated deviation.
        p00 = noise
        p01 = 0
        p11 = Self.firstRateVariance
        noise = 4 * Self.firstNoise
        windowEnd = time + Self.freshWindow
        hasFreshest = false
    }

    /// One step of the filter: `innovation` is the measured less the predicted z at `now`.
    @_noLocks @_noAllocation
    private mutating func update(_ innovation: Double, at now: Double) {
        let dt = now - time
        let q = Self.rateNoise * Self.rateNoise
        z += r * dt
        p00 += dt * (2 * p01 + dt * p11) + q * dt * dt * dt / 3
        p01 += dt * p11 + q * dt * dt / 2
        p11 += q * dt
        time = now
        let variance = p00 + noise
        let squared = innovation * innovation
        var weighted = innovation
        if squared > 9 * variance {
            // Fresher than expected is never wrong on a card that can only be late.
            if !isCoarse || innovation < 0 {
                weighted = (innovation < 0 ? -3 : 3) * squareRoot(of: variance)
            }
            outliers = innovation < 0 ? min(outliers, 0) - 1 : max(outliers, 0) + 1
            if outliers.magnitude >= Self.outliersBeforeJump {
                anchor(z: z + innovation)
                return
            }
        } else {
            outliers = 0
        }
        let gain0 = p00 / variance
        let gain1 = p01 / variance
        z += gain0 * weighted
        r += gain1 * weighted
        p11 -= gain1 * p01
        p01 -= gain0 * p01
        p00 -= gain0 * p00
        let learning = 1 / Double(min(sinceRestart + 20, 400))
        noise = max(
            Self.leastNoise, noise + (min(squared - p00, 9 * noise) - noise) * learning)
    }

    /// Takes a card that cannot be looked at to play at the nominal rate from here on.
    @_noLocks @_noAllocation
    mutating func assume(framesHeard: Double, at instant: LocalInstant) {
        epoch = instant - .milliseconds(100)
        time = 0.1
        anchor(z: framesHeard / sampleRate - time)
        sinceRestart = 4
    }

    @_noLocks @_noAllocation
    private mutating func anchor(z measured: Double) {
        z = measured
        // A single look at a coarse card may be late by a step.
        p00 = isCoarse ? 300e-6 * 300e-6 : max(noise, Self.firstNoise)
        p01 = 0
        outliers = 0
        windowEnd = time + Self.freshWindow
        hasFreshest = false
        sinceRestart = 1
    }

    /// Whether any frame can be placed in time.
    public var isAnchored: Bool {
        @_noLocks @_noAllocation get { sinceRestart > 0 }
    }

    /// Whether a voice may enter: a tenth of a second of readings and the phase known to 50 µs, or a
    /// second of readings from a card whose pointer is too coarse for that.
    var isUsable: Bool {
        @_noLocks @_noAllocation get {
            sinceRestart >= 4 && (time >= 1 || (time >= 0.1 && p00 < 50e-6 * 50e-6))
        }
    }

    /// Whether phase and rate are known well enough for lockstep: 20 µs and 10 ppm (one sigma).
    public var isSettled: Bool {
        @_noLocks @_noAllocation get { isUsable && p00 < 20e-6 * 20e-6 && p11 < 10e-6 * 10e-6 }
    }

    /// Rate of the card against the local clock, minus one; positive: the card is fast.
    public var skew: Double {
        @_noLocks @_noAllocation get { r }
    }

    /// One standard deviation of ``instant(ofFrame:)`` near the last reading, seconds.
    public var uncertaintySeconds: Double {
        @_noLocks @_noAllocation get { squareRoot(of: p00) }
    }

    /// When frame `n` (counted from the last restart) leaves the card.
    @_noLocks @_noAllocation
    public func instant(ofFrame n: Double) -> LocalInstant {
        epoch + Nanoseconds(seconds: time + (n / sampleRate - z - time) / (1 + r))
    }

    /// Frames that have left the card at `instant`: the inverse of ``instant(ofFrame:)``.
    @_noLocks @_noAllocation
    public func frames(at instant: LocalInstant) -> Double {
        let t = (instant - epoch).seconds
        return (t + z + r * (t - time)) * sampleRate
    }
}

/// √x without a C function, for the output thread: a guess from half the exponent, then Newton.
///
/// - Parameter x: not negative; 0 gives a value below 1e-150.
@_noLocks @_noAllocation
func squareRoot(of x: Double) -> Double {
    guard x > 0 else { return 0 }
    var root = Double(bitPattern: (x.bitPattern >> 1) + 0x1FF8_0000_0000_0000)
    for _ in 0..<4 { root = 0.5 * (root + x / root) }
    return root
}
