import Logging
import Testing
import TuttiDeviceOutput
import TuttiGroupControl
import TuttiPlayback
import TuttiPlayout
import TuttiTiming

@testable import TuttiRoom

extension IntegrationTests {
    @Suite(.timeLimit(.minutes(1))) struct RoomPlayersOpenings {
        /// A look at what it is, a survey of its packets, and the decoder that plays it from its
        /// middle: a disk that sleeps, or a share on the network, is asked for the file once.
        @Test func `a preparation opens its file once, and the next one once more`() async throws {
            let folder = try TemporaryFolder()
            defer { folder.remove() }
            let path = try folder.writeNoise(seconds: 20, seed: 5, as: "a.wav")
            let output = try OutputThread.open(
                .virtual(VirtualCardOptions()), sampleRate: TemporaryFolder.sampleRate,
                bufferMilliseconds: 200,
                realTimePriority: 0)
            let asset = try AssetDescriptor(
                hash: ContentHash(bytes: [UInt8](repeating: 7, count: 32)), byteCount: 1_000,
                sampleRate: TemporaryFolder.sampleRate,
                frameCount: 20 * Int64(TemporaryFolder.sampleRate), title: "a", fileExtension: "wav"
            )
            let players = RoomPlayers(port: output.port, logger: Logger(label: "players"))
            let clock = LeaderClock(epoch: 5)
            let count = OpenCount(of: path)
            for id in 1...2 as ClosedRange<UInt64> {
                let order = Preparation(
                    id: id, asset: asset, itemFrame: 10 * Int64(TemporaryFolder.sampleRate),
                    rate: 1, change: nil)
                let ticket = players.expect(order)
                try await players.prepare(
                    order, ticket, Member.AssetFile(path: path), clock: clock.cell
                ) {}
                #expect(count.value == Int(id))
            }
            players.withdrawAll()
            output.stop()
        }
    }
}
