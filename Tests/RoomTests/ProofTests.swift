import Logging
import Testing
import TuttiDeviceOutput
import TuttiFFmpegMedia
import TuttiGroupControl
import TuttiLinuxHost
import TuttiPlayback
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

@testable import TuttiRoom

extension IntegrationTests {
    /// A room whose player does something else than it was told.
    @Suite struct Proof {
        enum Fault: CaseIterable {
            /// As a late item load left it.
            case fromTheBeginning
            /// As was heard for the whole of an item.
            case slightlyEarly
            case silent
        }

        /// At another rate the voices' frames are not those of the item: the pitch is kept.
        @Test(
            .timeLimit(.minutes(1)),
            arguments: Fault.allCases.map { ($0, 1.0) } + [(.slightlyEarly, 1.25)])
        func `a room that is broken is in alarm, and in step again by itself`(
            fault: Fault, rate: Double
        ) async throws {
            let folder = try TemporaryFolder()
            defer { folder.remove() }
            let path = try folder.writeNoise(seconds: 120, seed: 77, as: "a.wav")
            let group = try PairOfRooms(path, seconds: 120)
            try await withThrowingTaskGroup { tasks in
                tasks.addTask { await group.core.run() }
                for room in group.rooms { tasks.addTask { await room.run() } }
                try await until("both are on the line") { await group.lines == ["on the line"] }
                _ = await group.core.perform(.rate(rate))
                // Far enough that the beginning is another place.
                _ = await group.core.perform(.seek(seconds: 60))
                try await until("both are there") {
                    await group.places(rate).allSatisfy { $0 > 60 && $0 < 100 }
                }
                try await until("both are on the line again") {
                    await group.lines == ["on the line"]
                }
                try await group.rooms[1].derail(fault, rate)
                try await until("the alarm") {
                    await group.core.status(hasPoints: false).rooms.contains {
                        $0.name == "bath" && $0.sync?.lineAlarm == true && $0.sync?.alarm == true
                    }
                }
                // The other one is not concerned.
                let kitchen = await group.core.status(hasPoints: false).rooms.last
                #expect(kitchen?.sync?.lineAlarm == false)
                try await until("it plays what was committed") {
                    let status = await group.core.status(hasPoints: false)
                    return status.rooms.allSatisfy { $0.state == .playing }
                        && status.rooms.allSatisfy { $0.sync?.line == "on the line" }
                }
                // By the frames behind both outputs, at one instant.
                let places = await group.places(rate)
                #expect(places.count == 2)
                #expect(abs(places[0] - places[1]) < 1e-3, "\(places)")
                tasks.cancelAll()
            }
            let said = group.book.all.map(\.message)
            #expect(
                said.contains {
                    $0.hasPrefix("this room ") && $0.hasSuffix("prepares itself anew")
                },
                "\(said)")
            #expect(said.contains("a room does not play what was committed"))
            #expect(said.contains("a room plays what was committed again"))
        }
    }
}

/// A leader and two rooms in one process, on one clock, without a network.
private struct PairOfRooms {
    /// One that is here for all.
    struct LocalAsset: AssetSource {
        let path: String

        func file(of asset: AssetDescriptor, _ welcome: Welcome?) -> Member.AssetFile {
            Member.AssetFile(path: path)
        }

        func complete(
            _ incoming: IncomingFile, of asset: AssetDescriptor, _ welcome: Welcome?
        ) -> Member.AssetFile { Member.AssetFile(path: path) }

        func removePart(of incoming: IncomingFile) {}
    }

    let core: LeaderCore
    let rooms: [Member]
    let outputs: [OutputThread]
    let book = LogBook()

    init(_ path: String, seconds: Int) throws {
        let clock = LeaderClock(epoch: 5)
        let rate = TemporaryFolder.sampleRate
        let item = try AssetDescriptor(
            hash: ContentHash(words: (1, 2, 3, 4)), byteCount: 1_000, sampleRate: rate,
            frameCount: Int64(seconds * rate), title: "noise", fileExtension: "wav")
        let core = LeaderCore(
            LeaderConfiguration(
                name: "kitchen", queue: [item], roomsToWaitFor: 2, term: 1, groupClockEpoch: 5,
                timePort: 1, mediaPort: 1),
            clock: clock, logger: book.logger, ended: {})
        self.core = core
        var outputs: [OutputThread] = []
        var rooms: [Member] = []
        for name in ["kitchen", "bath"] {
            let output = try OutputThread.open(
                .virtual(VirtualCardOptions(partsPerMillion: name == "bath" ? 70 : -40)),
                sampleRate: rate, bufferMilliseconds: 200, realTimePriority: 0)
            outputs.append(output)
            rooms.append(
                Member(
                    name: try RoomID(name), output: output, clock: OwnClock(clock),
                    logger: book.logger, options: Member.Options(),
                    assets: LocalAsset(path: path),
                    uplink: { await Self.uplink($0, $1, core) }))
        }
        self.outputs = outputs
        self.rooms = rooms
    }

    /// As that of the leader's own room.
    private static func uplink(_ member: Member, _ attempt: Int, _ core: LeaderCore) async -> String
    {
        let toRoom = Outbox<LeaderToRoom>()
        let toLeader = Outbox<RoomToLeader>()
        let link = await core.open(toRoom)
        await withDiscardingTaskGroup { group in
            group.addTask {
                for await message in toLeader.messages { await core.receive(message, from: link) }
                await core.closed(link)
            }
            await member.linkUp(toLeader, attempt, foundAt: HostClock.now())
            for await message in toRoom.messages { await member.receive(message, attempt) }
            toLeader.finish()
        }
        return "the leader ended"
    }

    /// What the rooms say of their lines, each different word once.
    var lines: Set<String> {
        get async {
            let rooms = await core.status(hasPoints: false).rooms
            return rooms.count == 2 ? Set(rooms.map { $0.sync?.line ?? "" }) : []
        }
    }

    /// Seconds of the item that leave each card at one instant; a voice plays frames that were made
    /// of the item's for its rate.
    func places(_ rate: Double) async -> [Double] {
        let now = HostClock.now()
        return outputs.flatMap { output in
            output.port.voices.filter { $0.report.state == .playing }.map { _, report in
                rate
                    * (report.itemFrame / Double(TemporaryFolder.sampleRate)
                        - (report.at - now).seconds)
            }
        }
    }
}

extension Member {
    /// Does to what sounds what nobody ordered.
    fileprivate func derail(_ fault: IntegrationTests.Proof.Fault, _ pace: Double) throws {
        for part in (stage?.parts ?? [:]).values where part.sounds && !part.isQueued {
            guard let player = part.player else { continue }
            let rate = TemporaryFolder.sampleRate
            let instant = part.clock.load().map(HostClock.now()) + .milliseconds(300)
            let seconds = player.currentTime().seconds
            switch fault {
            case .fromTheBeginning:
                try player.setRate(pace, time: .zero, atHostTime: instant)
            case .slightlyEarly:
                try player.setRate(
                    pace,
                    time: MediaTime(
                        frame: Int64((seconds + 0.339) * Double(rate)), sampleRate: rate),
                    atHostTime: instant)
            case .silent: player.pause()
            }
        }
    }
}
