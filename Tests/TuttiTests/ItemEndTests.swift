import Foundation
import Testing
import Tutti

/// What players were reported to do wrong near the end of an item.
@Suite(.serialized, .timeLimit(.minutes(1))) struct ItemEndTests {
    private let sounds = Sounds()

    /// Seconds of noise in a file with a title.
    private func song(_ seconds: Int, _ title: String, as name: String) throws -> String {
        let noise = Sounds.noise(seconds: seconds)
        let path = sounds.folder + "/" + name
        try sounds.encode(noise, rate: 44_100, ["-metadata", "title=" + title], as: path)
        return path
    }

    private func until(_ isMet: () -> Bool) async throws {
        while !isMet() { try await Task.sleep(for: .milliseconds(5)) }
    }

    /// nullplayer 343: the seek was taken for a failure of the network.
    @Test(arguments: ["a.mp3", "a.ogg", "a.flac", "a.m4a", "a.wav"], [false, true])
    func `a seek to the end of what is loaded whole is no error, though its server is gone`(
        name: String, whilePlaying: Bool
    ) async throws {
        let path = try song(1, "One", as: name)
        let server = WebServer(try Data(contentsOf: URL(fileURLWithPath: path)))
        let player = Player(url: server.url(name), device: .virtual())
        let item = try #require(player.currentItem)
        try await item.ready()
        let notices = player.notices()
        if whilePlaying { player.play() } else { _ = try await player.preroll(atRate: 1) }
        try await until { item.loadedTimeRanges.last?.end == item.duration }
        server.vanish()
        #expect(await player.seek(to: item.duration))
        if whilePlaying {
            for await notice in notices {
                if case .didPlayToEnd(let ended) = notice {
                    #expect(ended === item)
                    break
                }
                if case .failedToPlayToEnd(let error) = notice { throw error }
            }
        }
        #expect(player.currentTime() == item.duration)
        #expect(player.error == nil && item.error == nil && item.status == .readyToPlay)
    }

    /// The same report: what a network loses near the end is no end.
    @Test func `a server that breaks off near the end of an item is an error there`()
        async throws
    {
        let path = try song(4, "One", as: "a.wav")
        let body = try Data(contentsOf: URL(fileURLWithPath: path))
        let server = WebServer(body)
        let player = Player(url: server.url("a.wav"), device: .virtual())
        try await player.currentItem?.ready()
        let notices = player.notices()
        // Only opening it needs its last second.
        server.change(to: .breaksOff(at: body.count * 9 / 10))
        await player.seek(to: MediaTime(seconds: 3))
        player.play()
        for await notice in notices {
            if case .didPlayToEnd = notice { Issue.record("it has not come to its end") }
            guard case .failedToPlayToEnd(let error) = notice else { continue }
            #expect((error.underlying as? MediaError)?.code == .network, "\(error)")
            break
        }
        // What had come was heard.
        #expect(abs(player.currentTime().seconds - 3.6) < 0.1, "\(player.currentTime())")
    }

    /// high-tide 100, termusic 232: names of the item before, and no end of the second one.
    @Test func `a seek straight to the end goes on to the next item, which is itself`()
        async throws
    {
        let items = try (1...3).map { number in
            PlayerItem(url: try song(10 + number, "Song \(number)", as: "\(number).flac"))
        }
        let player = try QueuePlayer(items: items, output: AudioDevice.virtual().output)
        let notices = player.notices()
        try await items[0].ready()
        player.play()
        #expect(await player.seek(to: items[0].duration))
        var ended: [Int] = []
        var begun: [Int] = []
        for await notice in notices {
            switch notice {
            case .didPlayToEnd(let item):
                ended.append(try #require(items.firstIndex { $0 === item }) + 1)
            case .currentItemDidChange(let item):
                guard let item else {
                    #expect(ended == [1, 2, 3] && begun == [2, 3])
                    return
                }
                let number = try #require(items.firstIndex { $0 === item }) + 1
                begun.append(number)
                // Those who end come before those who begin.
                #expect(ended == Array(1..<number))
                #expect(player.currentItem === item && player.currentTime().seconds < 5)
                try await item.ready()
                #expect(player.currentItem?.metadata?.title == "Song \(number)")
                #expect(player.currentItem?.duration.seconds == Double(10 + number))
                #expect(await player.seek(to: item.duration))
            case .failedToPlayToEnd(let error): throw error
            default: break
            }
        }
    }
}
