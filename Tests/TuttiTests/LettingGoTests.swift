import Foundation
import Testing
import Tutti

/// What nobody plays any more is not read any more, however slow its server is.
///
/// The servers here would go on for a day: each test waits until they were hung up on.
@Suite(.serialized, .timeLimit(.minutes(1))) struct LettingGoTests {
    private let sounds = Sounds()

    /// A megabyte of an MP3, of which so many bytes come at once.
    private func slowSong(quickBytes: Int = 200_000) throws -> WebServer {
        let path = sounds.folder + "/song.mp3"
        let noise = Sounds.noise(seconds: 1)
        try sounds.encode(noise, rate: 44_100, ["-c:a", "libmp3lame", "-b:a", "320k"], as: path)
        let second = try Data(contentsOf: URL(fileURLWithPath: path))
        return WebServer(
            (0..<30).reduce(into: Data()) { song, _ in song += second }, .trickles(from: quickBytes)
        )
    }

    private func until(_ isMet: () -> Bool) async throws {
        while !isMet() { try await Task.sleep(for: .milliseconds(5)) }
    }

    @Test func `who gives up loading an asset hangs up, unless another one waits`() async throws {
        let server = try slowSong()
        let asset = Asset(url: server.url("song.mp3"))
        let loads = (0..<2).map { _ in Task { try await asset.load(.duration) } }
        try await until { server.open > 0 }
        loads[0].cancel()
        _ = await loads[0].result
        try await Task.sleep(for: .milliseconds(500))
        #expect(server.open > 0)
        loads[1].cancel()
        _ = await loads[1].result
        try await until { server.open == 0 }
    }

    @Test func `who asks again after all gave up starts anew`() async throws {
        let server = try slowSong()
        let asset = Asset(url: server.url("song.mp3"))
        for _ in 0..<3 {
            let before = server.all
            let load = Task { try await asset.load(.duration) }
            try await until { server.all > before && server.open > 0 }
            load.cancel()
            let error = await #expect(throws: PlaybackError.self) { try await load.value }
            #expect(error?.code == .cancelled)
        }
        try await until { server.open == 0 }
    }

    @Test func `who skips through a queue leaves no download behind`() async throws {
        let server = try slowSong()
        let items = (0..<20).map { PlayerItem(url: server.url("\($0).mp3")) }
        let player = try QueuePlayer(items: items, output: AudioDevice.virtual().output)
        player.play()
        for number in 0..<20 {
            try await until { server.all > number }
            player.advanceToNextItem()
        }
        try await until { server.open == 0 }
        #expect(player.items().isEmpty)
    }

    enum Drop: CaseIterable { case item, player }

    @Test(arguments: Drop.allCases)
    func `an item that is dropped while its sound is waited for is not read on`(
        drop: Drop
    ) async throws {
        let path = try sounds.file(as: "a.wav", frames: 2_000_000) { Double($0 % 100) / 500 }
        let server = WebServer(try Data(contentsOf: URL(fileURLWithPath: path)))
        let item = PlayerItem(url: server.url("a.wav"))
        var player: Player? = try Player(playerItem: item, device: .virtual())
        try await item.ready()
        // The first second is there from the opening, and the ring has room for more.
        server.change(to: .trickles(from: 0))
        try player?.playImmediately(atRate: 1)
        try await until { server.open > 0 }
        switch drop {
        case .item: try player?.replaceCurrentItem(with: nil)
        case .player: player = nil
        }
        try await until { server.open == 0 }
    }
}
