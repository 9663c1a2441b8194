import Synchronization
import Testing
import TuttiDeviceOutput
import TuttiGroupControl
import TuttiTiming

@testable import TuttiRoom

extension IntegrationTests {
    /// The lead goes from one node to another while the rooms play.
    @Suite struct Handover {
        /// What a busy machine does to virtual cards, whoever leads; frames of 62 µs.
        private static let leastSteady = 0.25
        /// Noise is this quiet for so many frames only where something is missing.
        private static let quiet: Float = 1e-4
        private static let longestQuiet = 24
        private static let rooms = ["attic", "bath", "leader"]

        @Test(.timeLimit(.minutes(2)))
        func `nothing is heard when another node leads, and when it gives the lead back`()
            async throws
        {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 13, seed: 42, as: "a.wav")
                func card(_ name: String, ppm: Double) -> OutputSpecification {
                    .virtual(
                        VirtualCardOptions(
                            partsPerMillion: ppm, wander: 0.3, record: group.folder.path(name)))
                }
                let leader = try await group.lead(
                    [asset], roomsToWaitFor: 3, output: card("leader", ppm: 80))
                group.follow("attic", output: card("attic", ppm: -120))
                group.follow("bath", output: card("bath", ppm: 20))
                let first = group.address
                try await group.untilPlaying(Self.rooms)
                try await group.perform(.volume(room: RoomID("bath"), percent: 90))
                try await group.untilStatus("it has played for a while") {
                    $0.positionSeconds > 4
                }

                try await group.perform(.handOver(to: RoomID("attic")))
                try await group.goOver(to: "attic")
                let status = try await group.untilPlaying(Self.rooms)
                #expect(status.leader == "attic")
                #expect(status.rooms.map(\.volume) == [100, 90, 100])
                try await group.untilStatus("it has played for a while") {
                    $0.positionSeconds > 7.5
                }
                // Who asks the leader before is told.
                await #expect(throws: RoomError.self) {
                    try await GroupClient(address: first).perform(.pause)
                }
                // … where to go, and a client goes there.
                let sentTo = try await GroupClient(address: first).whoeverLeads {
                    try await $0.perform(.play)
                    return try await $0.status().leader
                }
                #expect(sentTo == "attic")

                try await group.perform(.handOver(to: RoomID("leader")))
                try await group.goOver(to: "leader")
                let back = try await group.untilPlaying(Self.rooms)
                #expect(back.leader == "leader")
                // It was started for the queue, which it leads again.
                try await until("the leader has ended") { leader.hasEnded }
                await group.stopNodes()
                try expectUnbroken(group)
            }
        }

        /// Only the leader before has the files: whoever leads now gets what comes next from there, for
        /// itself and for the others.
        @Test(.timeLimit(.minutes(2)))
        func `items that nobody has fetched yet follow without a hole under the next leader`()
            async throws
        {
            try await withGroup { group in
                let assets = try (1...4).map {
                    try group.folder.writeNoise(seconds: 3, seed: UInt64($0), as: "\($0).wav")
                }
                func card(_ name: String) -> OutputSpecification {
                    .virtual(VirtualCardOptions(record: group.folder.path(name)))
                }
                try await group.lead(assets, roomsToWaitFor: 3, output: .none)
                group.follow("attic", output: card("attic"))
                group.follow("bath", output: card("bath"))
                group.follow("cellar", output: card("cellar"))
                try await group.untilPlaying(["attic", "bath", "cellar"])
                // Refused while items are still being read.
                try await until("the lead is handed over") {
                    (try? await group.perform(.handOver(to: RoomID("attic")))) != nil
                }
                try await group.goOver(to: "attic")
                try await group.untilStatus("it has been played") { $0.phase == .ended }
                await group.stopNodes()
                for name in ["attic", "bath", "cellar"] {
                    let card = try CardRecording.load(path: group.folder.path(name))
                    #expect(holes(in: card) == [], "\(name)")
                    let sounding = (0..<card.frameCount).count {
                        abs(card.samples[$0 * card.channelCount]) >= Self.quiet
                    }
                    #expect(
                        sounding > (4 * 3 - 1) * TemporaryFolder.sampleRate, "\(name): \(sounding)")
                }
            }
        }

        /// Items that the leader before had not read when it handed over: it goes on reading them, in
        /// the order that the next leader wants.
        @Test(.timeLimit(.minutes(2)))
        func `what nobody has read yet is read and played under the next leader`() async throws {
            try await withGroup { group in
                let (addresses, server) = try await group.serveNoise(
                    6, seconds: 30, firstSeed: 900)
                try await group.lead(addresses)
                group.follow("attic")
                group.follow("bath")
                try await group.untilPlaying(["attic", "bath", "leader"])
                let before = try await group.client().queue()
                #expect(before.items.last?.state == .unread)
                try await until("the lead is handed over") {
                    (try? await group.perform(.handOver(to: RoomID("attic")))) != nil
                }
                try await group.goOver(to: "attic")
                try await group.untilPlaying(["attic", "bath", "leader"])
                let client = try await group.client()
                let after = try await client.queue()
                #expect(after.items.map(\.id) == before.items.map(\.id))
                // In its turn …
                try await client.perform(.next)
                try await until("what comes next is read") {
                    try await client.queue().items.count { $0.state == .known } > 3
                }
                // … and out of it; then back at the node that reads.
                let last = try #require(after.items.last)
                try await client.perform(.queue(.play(last.id)))
                try await group.untilStatus("the last one plays in all rooms") {
                    $0.index == 5 && $0.phase == .playing
                        && $0.rooms.allSatisfy { $0.state == .playing }
                }
                try await group.perform(.handOver(to: RoomID("leader")))
                try await group.goOver(to: "leader")
                let own = try await group.client()
                let fifth = try #require(after.items.dropLast().last)
                try await own.perform(.queue(.play(fifth.id)))
                try await group.untilStatus("the one before it plays in all rooms") {
                    $0.index == 4 && $0.phase == .playing
                        && $0.rooms.allSatisfy { $0.state == .playing }
                }
                _ = await server.stop()
            }
        }

        /// The room leads, and whoever asked it to never hears of it.
        @Test(.timeLimit(.minutes(2)))
        func `an answer that is lost leaves one leader`() async throws {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 7, as: "a.wav")
                try await group.lead([asset], roomsToWaitFor: 3)
                let first = group.address
                let relay = Relay(to: first.port)
                group.follow("attic", of: HostPort(host: "127.0.0.1", port: relay.port))
                group.follow("bath")
                try await group.untilPlaying(["attic", "bath", "leader"])
                relay.swallow()
                let asked = Task { try await group.perform(.handOver(to: RoomID("attic"))) }
                try await group.goOver(to: "attic")
                let attic = group.address
                #expect(attic != first)
                // The one that leads already has others behind it, and goes on; whoever asked for it may
                // be told so or not.
                _ = try? await asked.value
                try await until("all play by one leader") {
                    var seen: [GroupStatus] = []
                    for address in [first, attic] {
                        let status = try? await GroupClient(address: address)
                            .whoeverLeads { try await $0.status() }
                        if let status { seen.append(status) }
                    }
                    return seen.count == 2 && seen[0].leader == seen[1].leader
                        && seen.allSatisfy {
                            $0.rooms.map(\.name) == ["attic", "bath", "leader"]
                                && $0.rooms.allSatisfy { $0.state == .playing }
                        }
                }
                #expect(group.leaders.count == 1)
            }
        }

        /// What a leader has given up is not what the group does.
        @Test(.timeLimit(.minutes(2)))
        func `who watches or asks never sees a stopped group while the lead goes over`()
            async throws
        {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 9, as: "a.wav")
                try await group.lead([asset], roomsToWaitFor: 2)
                group.follow("attic")
                try await group.untilPlaying(["attic", "leader"])
                let (client, asking) = (try await group.client(), try await group.client())
                let phases = Mutex<[SessionPhase]>([])
                async let watching: Void = {
                    do {
                        for try await event in client.events() {
                            phases.withLock { $0.append(event.status.phase) }
                        }
                    } catch {}
                }()
                try await until("it is watched") { !phases.withLock(\.isEmpty) }
                try await until("the lead is handed over") {
                    (try? await group.perform(.handOver(to: RoomID("attic")))) != nil
                }
                // On a connection that was there before, and on others, until its node follows.
                var next: NextLeader?
                try await until("it says where to ask") {
                    do {
                        let phase = try await asking.status().phase
                        phases.withLock { $0.append(phase) }
                        let listed = try await asking.queue().phase
                        phases.withLock { $0.append(listed) }
                    } catch let error as RoomError where error.code == .refused {
                        next = NextLeader(refusal: error.description)
                    }
                    return next != nil
                }
                await watching
                #expect(try next?.name == RoomID("attic"))
                #expect(Set(phases.withLock { $0 }) == [.playing])
            }
        }

        @Test(.timeLimit(.minutes(2)))
        func `what is added around a hand-over is in the queue or refused`() async throws {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 8, as: "a.wav")
                let others = try (0..<40).map {
                    try group.folder.writeNoise(seconds: 0.2, seed: UInt64($0), as: "add-\($0).wav")
                }
                try await group.lead([asset], roomsToWaitFor: 2)
                group.follow("attic")
                try await group.untilPlaying(["attic", "leader"])
                let own = try #require(group.control(in: "leader"))
                let accepted = Mutex<[String]>([])
                async let adding: Void = {
                    for path in others {
                        do {
                            try await own.add(QueueAddition(locations: [path], place: .end))
                            accepted.withLock { $0.append(path) }
                        } catch {}
                    }
                }()
                try await until("the lead is handed over") {
                    (try? await group.perform(.handOver(to: RoomID("attic")))) != nil
                }
                try await group.goOver(to: "attic")
                await adding
                let taken = accepted.withLock { $0 }
                #expect(!taken.isEmpty)
                let queue = try await group.client().queue()
                #expect(queue.items.count == 1 + taken.count)
            }
        }

        /// In the recordings of the cards: no hole, and the rooms no further apart than before.
        private func expectUnbroken(_ group: TestGroup) throws {
            let rooms = try Self.rooms.map { try CardRecording.load(path: group.folder.path($0)) }
            let measure = Skew()
            let begin = try #require(measure.firstSound(of: rooms[2]))
            for (place, room) in rooms.enumerated() {
                #expect(holes(in: room) == [], "\(Self.rooms[place])")
                guard place < 2 else { break }
                func skews(_ span: ClosedRange<Double>) -> [Double] {
                    stride(from: span.lowerBound, to: span.upperBound, by: 0.2).compactMap {
                        measure.skew(
                            of: room, to: rooms[2], at: begin + Nanoseconds(Int64($0 * 1e9)))
                    }.map(\.magnitude)
                }
                let steady = try #require(skews(2...4).max())
                let later = skews(4...12.5)
                #expect(later.count > 25)
                #expect(
                    later.allSatisfy { $0 <= 2 * max(steady, Self.leastSteady) },
                    "\(Self.rooms[place]): \(steady), then \(later)")
            }
        }

        /// Frames at which a silence begins within the sound; not where the card itself stood still.
        private func holes(in recording: CardRecording) -> [Int] {
            func isQuiet(_ frame: Int) -> Bool {
                abs(recording.samples[frame * recording.channelCount]) < Self.quiet
            }
            let sounding = (0..<recording.frameCount).filter { !isQuiet($0) }
            guard let first = sounding.first else { return [0] }
            var holes: [Int] = []
            var last = first
            for frame in sounding {
                let isBreak = recording.segments.contains {
                    (Double(last)...Double(frame)).contains($0.frames.upperBound)
                }
                if frame - last > Self.longestQuiet, !isBreak { holes.append(last) }
                last = frame
            }
            return holes
        }
    }
}
