import TuttiClockSync
import TuttiDeviceOutput
import TuttiFFmpegMedia
import TuttiLinuxHost
import TuttiPlayback
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

/// Plays the file at `path` from its first frame, which is heard at `instant` of the shared clock.
func play(_ path: String, at instant: GroupInstant, by clock: ClockCell) async throws {
    let thread = try OutputThread.open(.alsa(pcm: "default"))
    defer { thread.stop() }
    let output = PlayerOutput(port: thread.port, now: { HostClock.now() })

    let asset = Asset(
        location: path,
        opener: MediaOpener { location throws(MediaError) in try FFmpegSource(location) })
    let item = PlayerItem(asset: asset)
    let player = try Player(playerItem: item, output: output)
    player.automaticallyWaitsToMinimizeStalling = false  // a line waits for nobody
    player.sourceClock = .group(clock, now: { HostClock.now() })
    let notices = player.notices()

    try await item.ready()
    guard try await player.preroll(atRate: 1, time: .zero) else { return }
    try player.setRate(1, time: .zero, atHostTime: instant)

    for await notice in notices {
        switch notice {
        case .didPlayToEnd: return
        case .failedToPlayToEnd(let error): throw error
        default: break
        }
    }
}

// The other samples, each with what it is said to have.

func ownClock() throws -> (TimeService, ClockCell) {
    let own = SharedClock.own(at: HostClock.now(), epoch: .random(in: 1 ... .max))
    let service = try TimeService.start(
        port: 7430, priority: RealTimeThread.usualPriority, clock: { own })
    let clock = ClockCell(own)
    return (service, clock)
}

func otherClock() throws -> (ClockClient, ClockCell) {
    let clock = ClockCell(.unknown)
    let client = try ClockClient.start(
        host: "192.168.1.20", port: 7430, priority: RealTimeThread.usualPriority,
        seed: .random(in: .min ... .max)
    ) { shared, _ in clock.store(shared) }
    return (client, clock)
}

func wanted(_ client: ClockClient) {
    client.expectStart(.common)
}

func instant(by clock: ClockCell) -> GroupInstant {
    let instant = clock.load().map(HostClock.now()) + .milliseconds(250)
    return instant
}

/// Goes to 1:23.5 in every room at one instant, and pauses ten seconds later.
func seekAndPause(_ player: Player, by clock: ClockCell) async throws {
    let place = MediaTime(seconds: 83.5)
    guard try await player.preroll(atRate: 1, time: place) else { return }
    let instant = clock.load().map(HostClock.now()) + .milliseconds(250)

    // Exact seek: the old place sounds until the instant, the new one from it on.
    try player.setRate(1, time: place, atHostTime: instant)

    // Pause: the last sound ends at the instant, and item time stands there.
    try player.setRate(0, atHostTime: instant + .seconds(10))
}
