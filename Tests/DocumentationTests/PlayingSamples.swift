import Tutti

func hello() async throws {
    let player = Player(url: "song.flac")  // on the default device
    let notices = player.notices()
    player.play()
    for await notice in notices {
        switch notice {
        case .didPlayToEnd: return
        case .failedToPlayToEnd(let error): throw error
        default: break  // there may be more kinds one day
        }
    }
}

func album(_ files: [String]) throws -> QueuePlayer {
    let items = files.map { PlayerItem(url: $0) }
    let player = try QueuePlayer(items: items, output: AudioDevice.default.output)
    player.play()  // the first sample of each follows the last one of the item before
    return player
}

func devices(_ player: Player) throws {
    for device in AudioDevice.available() { print(device.name, device.description) }
    player.device = try AudioDevice("alsa:hw:1,0")  // goes on there
    if let error = player.device?.error { print("waits for \(error)") }
}

func watch(_ player: Player) async {
    async let _: Void = {
        for await status in Observations({ player.timeControlStatus }) { print(status) }
    }()
    for await time in player.periodicTimes(every: MediaTime(value: 1, timescale: 2)) {
        print(time.seconds)
    }
}
