import CTuttiALSA
import Glibc
import TuttiLinuxHost
import TuttiTiming

/// Reads a card's queue together with the instant at which it was that long, and refuses what
/// cannot be true.
///
/// A driver of the kernel takes both at once. A plug-in in this process takes them one after the
/// other, and when the thread is preempted in between they belong to different moments; such a call
/// takes long, so one that took longer than 200 µs is asked again and then dropped.
struct PositionStamps {
    private var clock: StampClock
    private var isConfirmed = false
    private var last = LocalInstant(nanoseconds: .min)
    private var refusals = 0
    /// Readings that were dropped since opening.
    private(set) var dropped = 0

    /// A status call takes a few µs; ten times that is a preemption.
    private static let longestCall = Nanoseconds.microseconds(200)
    /// Drivers without any stamp exist; after so many we stamp ourselves.
    private static let refusalsMax = 50

    init(clock: StampClock) { self.clock = clock }

    /// After a restart; the clock stays confirmed.
    mutating func forget() { refusals = 0 }

    /// - Returns: frames still to be heard, frames that there is room for, and when that was so;
    ///   `nil` when the card is not running or what it says is implausible.
    mutating func read(
        _ pcm: OpaquePointer, into status: OpaquePointer
    ) -> (delay: Int, room: Int, instant: LocalInstant)? {
        for _ in 0..<2 {
            let before = HostClock.now()
            guard unsafe snd_pcm_status(pcm, status) >= 0 else { return nil }
            let after = HostClock.now()
            guard unsafe snd_pcm_status_get_state(status) == SND_PCM_STATE_RUNNING else {
                return nil
            }
            guard after - before <= Self.longestCall else { continue }
            let delay = unsafe snd_pcm_status_get_delay(status)
            let room = unsafe Int(snd_pcm_status_get_avail(status))
            if refusals > Self.refusalsMax { return (delay, room, before + (after - before) / 2) }
            var stamp = timespec()
            unsafe snd_pcm_status_get_htstamp(status, &stamp)
            if let instant = accepted(stamp, before: before, after: after) {
                refusals = 0
                return (delay, room, instant)
            }
            break
        }
        refusals += 1
        dropped += 1
        return nil
    }

    /// The stamp on the local clock; `nil` when it is missing, older than the last or in the
    /// future.
    private mutating func accepted(
        _ stamp: timespec, before: LocalInstant, after: LocalInstant
    ) -> LocalInstant? {
        guard stamp.tv_sec != 0 || stamp.tv_nsec != 0 else { return nil }
        if !isConfirmed {
            guard let confirmed = clock.confirmed(by: stamp) else { return nil }
            clock = confirmed
            isConfirmed = true
        }
        let instant = clock.localInstant(of: stamp)
        // Translation from another clock is good to a microsecond.
        guard instant >= last, instant <= after + .microseconds(2),
            before - instant <= StampClock.plausibleAge
        else { return nil }
        last = instant
        return instant
    }
}
