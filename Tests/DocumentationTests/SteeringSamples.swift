import TuttiDeviceOutput
import TuttiGroupControl
import TuttiRoom

/// Goes to a place of what plays, and tells what the group does from then on.
func steer(_ leader: HostPort) async throws {
    let group = try await GroupClient.connect(
        to: leader, credentials: .household(in: "/var/lib/tutti", name: "remote control"))
    let effect = try await group.perform(.seek(seconds: 83.5))
    print("\(effect.title) from \(effect.positionSeconds ?? 0) s on")
    for try await event in group.events() {
        print(event.sequence, event.status.phase, event.status.title)
    }
}

/// Leads a group that plays an album here and wherever somebody follows, for as long as it lasts.
func lead(_ album: String) async throws {
    let node = LeaderNode(
        NodeConfiguration(
            name: "kitchen", output: .alsa(pcm: "default"), cacheFolder: "/var/cache/kitchen",
            stateFolder: "/var/lib/kitchen"),
        assets: [album], roomsToWaitFor: 1, loops: false)
    async let ended: Void = node.run()
    while node.control == nil { try await Task.sleep(for: .milliseconds(10)) }
    if let group = node.control {
        try await group.add(QueueAddition(locations: ["/music/encore.flac"], place: .end))
    }
    try await ended
}
