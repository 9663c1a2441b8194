import TuttiTiming

/// What time it is, on the clock that voices follow, when a frame leaves the card.
///
/// The card model and the shared clock say it with small jumps (every packet and every reading
/// moves them a little). The timeline is the line that is *played*: it begins exactly on what they
/// say and then only changes its rate, continuously. All voices of one clock follow the same
/// timeline, so they keep their distance to a fraction of a frame whatever the servo does.
///
/// Servo: `rate = dM/dn + clip(e/τ)`, e = target − timeline (positive: we are late). The
/// feed-forward term holds the rate, so a proportional term suffices: no integrator and no wind-up.
/// No dead band.
struct Timeline: BitwiseCopyable {
    /// Up to here an error is slewed away; beyond it a voice jumps: a cross-fade, or a dip.
    static var slewLimit: Double {
        @_noLocks @_noAllocation get { 5e-3 }
    }
    /// The same, in seconds, when the target was moved at once: by another latency offset, or by a
    /// clock that begins a new line. What is less is slewed in some seconds, unheard; other errors
    /// of this size may be a position of a young card, and pass.
    static var moveLimit: Double {
        @_noLocks @_noAllocation get { 200e-6 }
    }
    /// Up to here a jump is a cross-fade: beyond it is another place in the music, and the two do
    /// not belong together.
    static var crossLimit: Double {
        @_noLocks @_noAllocation get { 1 }
    }

    /// τ of a timeline that has just begun, seconds: what it follows is learnt in its first second, and
    /// is not noise …
    private static var youngTime: Double {
        @_noLocks @_noAllocation get { 0.15 }
    }
    /// … and of one that is older than ``calmAge``, seconds.
    private static var calmTime: Double {
        @_noLocks @_noAllocation get { 8 }
    }
    private static var calmAge: Double {
        @_noLocks @_noAllocation get { 20 }
    }
    /// Until this age, seconds, a small error may be corrected as fast as a larger one.
    private static var youngAge: Double {
        @_noLocks @_noAllocation get { 2 }
    }

    /// Clock nanoseconds at the first frame of the next period; `fraction` is 0 to 1.
    var nanoseconds: Int64 = 0
    var fraction = 0.0
    /// Clock seconds per nominal card second, minus one.
    var skew = 0.0
    /// Seconds since it was anchored.
    var age = 0.0

    /// Makes it say what the target says.
    @_noLocks @_noAllocation
    mutating func anchor(nanoseconds: Int64, skew: Double) {
        self.nanoseconds = nanoseconds
        fraction = 0
        self.skew = skew
        age = 0
    }

    /// Seconds by which `target` is ahead.
    @_noLocks @_noAllocation
    func error(to target: Int64) -> Double {
        (Double(target.subtracting(saturating: nanoseconds)) - fraction) * 1e-9
    }

    /// Seconds from `instant` to the timeline's now.
    @_noLocks @_noAllocation
    mutating func shift(bySeconds seconds: Double) { advance(byNanoseconds: seconds * 1e9) }

    /// The rate for the coming period.
    ///
    /// - Parameters:
    ///   - error: target − timeline in seconds.
    ///   - known: feed-forward, the rate of the target minus one.
    ///   - duration: of the period, seconds.
    @_noLocks @_noAllocation
    func servoed(error: Double, known: Double, duration: Double) -> Double {
        let tau = Self.youngTime + (Self.calmTime - Self.youngTime) * min(1, age / Self.calmAge)
        let youth = max(0, 1 - age / Self.youngAge)
        let magnitude = error < 0 ? -error : error
        let limit =
            magnitude < 100e-6 ? 20e-6 + 80e-6 * youth : magnitude < 1e-3 ? 100e-6 : 500e-6
        let correction = max(-limit, min(limit, error / tau))
        // 10 ppm/s in steady state; in proportion to the gain while young, and for large errors. What
        // a young clock learns of its rate is followed at once.
        let slew = limit * ((4 + 8 * youth) / tau) * duration
        return max(skew - slew, min(skew + slew, known + correction))
    }

    /// Moves to the end of a period during which the rate went linearly to `next`.
    @_noLocks @_noAllocation
    mutating func advance(seconds: Double, to next: Double) {
        advance(byNanoseconds: seconds * 1e9 * (1 + 0.5 * (skew + next)))
        skew = next
        age += seconds
    }

    @_noLocks @_noAllocation
    private mutating func advance(byNanoseconds span: Double) {
        let total = fraction + span
        var whole = Int64(saturating: total)
        if Double(whole) > total { whole -= 1 }
        nanoseconds = nanoseconds.adding(saturating: whole)
        fraction = total - Double(whole)
    }
}
