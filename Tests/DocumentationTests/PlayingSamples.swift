import Tutti

func hello() async throws {
    let player = Player(url: "song.flac")  // on the default device
    let notices = player.notices()
    player.play()
    for await notice in notices {
        switch notice {
        case .didPlayToEnd: return
        case .failedToPlayToEnd(let error): throw error
        default: break  // there will be more kinds
        }
    }
}

func album(_ files: [String]) throws -> QueuePlayer {
    let items = files.map { PlayerItem(url: $0) }
    let player = try QueuePlayer(items: items)
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

func slowly(_ player: Player) throws {
    player.currentItem?.audioTimePitchAlgorithm = .spectral  // or .timeDomain, .varispeed
    try player.setRate(0.75)
    if player.currentItem?.canPlayReverse == true { try player.setRate(-1) }
}

func german(_ player: Player) async throws {
    player.setMediaSelectionCriteria(
        MediaSelectionCriteria(preferredLanguages: ["de"]), for: .audible)
    guard let item = player.currentItem else { return }
    try await item.ready()
    if let texts = item.mediaSelectionGroup(for: .legible) {
        try item.select(texts.options.first, in: texts)
    }
    for await cues in player.timedText() { print(cues.map(\.string)) }
}

func together(_ one: Player, _ other: Player) async throws {
    other.sourceClock = one.device?.clock  // its card is resampled to the first one's crystal
    other.automaticallyWaitsToMinimizeStalling = false
    guard try await other.preroll(atRate: 1) else { return }
    try other.setRate(1, time: .zero, atHostTime: other.hostTime() + .milliseconds(250))
}
