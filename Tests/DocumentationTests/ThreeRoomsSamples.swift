import TuttiDeviceOutput
import TuttiGroupControl
import TuttiRoom

/// Plays an album in three rooms at once, each on a card of its own; returns when it is over.
func playInThreeRooms(_ album: String) async throws {
    func room(_ name: String, _ card: String) -> NodeConfiguration {
        NodeConfiguration(
            name: name, output: .alsa(pcm: card), cacheFolder: "/var/cache/tutti/\(name)",
            stateFolder: "/var/lib/tutti")
    }
    let kitchen = LeaderNode(
        room("kitchen", "hw:0,0"), assets: [album], roomsToWaitFor: 3, loops: false)
    let here = HostPort(host: "127.0.0.1", port: HostPort.defaultPort)
    let others = [("bath", "hw:1,0"), ("study", "hw:2,0")].map { name, card in
        FollowerNode(room(name, card), leader: here)
    }
    try await withThrowingTaskGroup(of: Void.self) { rooms in
        rooms.addTask { try await kitchen.run() }
        for other in others { rooms.addTask { try await other.run() } }
        try await rooms.next()  // the album is over, or a room has failed
        rooms.cancelAll()
    }
}

/// A room on a machine of its own: plays along with whatever is led here, until it is cancelled.
func playAlong(as name: String) async throws {
    let room = NodeConfiguration(
        name: name, output: .alsa(pcm: "default"), cacheFolder: "/var/cache/tutti",
        stateFolder: "/var/lib/tutti")
    try await FollowerNode(room, leader: nil).run()
}

/// Makes one room quieter, from any machine; the others stay as loud as they are.
func whisper(in room: String, of leader: HostPort) async throws {
    let group = try await GroupClient.connect(
        to: leader, credentials: .household(in: "/var/lib/tutti", name: "remote control"))
    try await group.perform(.volume(room: RoomID(room), percent: 30))
}
