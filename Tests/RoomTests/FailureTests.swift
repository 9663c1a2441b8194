import Foundation
import Logging
import NIOCore
import Testing
import TuttiDeviceOutput
import TuttiGroupControl
import TuttiRoom

extension IntegrationTests {
    /// What cannot be done is said in words that help.
    @Suite struct Failing {
        @Test(.timeLimit(.minutes(1)))
        func `a port that is taken is an error that names it`() async throws {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 5, seed: 31, as: "a.wav")
                try await group.lead([asset], roomsToWaitFor: 2, output: .none)
                let port = group.address.port
                let second = LeaderNode(
                    group.configuration("second", port: port), assets: [asset],
                    roomsToWaitFor: 1, loops: false)
                let error = await #expect(throws: RoomError.self) { try await second.run() }
                #expect(error?.code == .portTaken)
                #expect(error?.description.contains("\(port)") == true)
                try await group.untilStatus("the first is well") { $0.leader == "leader" }
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `a file that is missing or no sound is an error that names it`() async throws {
            try await withGroup { group in
                let text = try group.folder.write(Data("Dear diary,\n".utf8), as: "diary.txt")
                let empty = try group.folder.write(Data(), as: "empty.flac")
                let missing = group.folder.path("missing.flac")
                for bad in [text, empty, missing] {
                    let leader = LeaderNode(
                        group.configuration("leader"), assets: [bad], roomsToWaitFor: 1,
                        loops: false)
                    let error = await #expect(throws: RoomError.self) { try await leader.run() }
                    #expect(error?.code == .badAsset)
                    #expect(error?.description.contains(bad) == true)
                    #expect(leader.address == nil)
                }
            }
        }

        @Test(.timeLimit(.minutes(1)), arguments: ["song", "symbolic", "hard", "recording"])
        func `what is to be played is never written over`(link: String) async throws {
            try await withGroup { group in
                let song = try group.folder.writeNoise(seconds: 1, seed: 33, as: "song.f32")
                let before = try Data(contentsOf: URL(fileURLWithPath: song))
                var path = group.folder.path("link.wav")
                var output = OutputSpecification.file(path: path)
                switch link {
                case "symbolic":
                    try FileManager.default.createSymbolicLink(
                        atPath: path, withDestinationPath: song)
                case "hard": try FileManager.default.linkItem(atPath: song, toPath: path)
                case "recording":
                    path = String(song.dropLast(4))
                    output = .virtual(VirtualCardOptions(record: path))
                default: output = .file(path: song)
                }
                var configuration = group.configuration("leader")
                configuration.output = output
                configuration.overwritesFiles = true
                let leader = LeaderNode(
                    configuration, assets: [song], roomsToWaitFor: 1, loops: false)
                let error = await #expect(throws: RoomError.self) { try await leader.run() }
                #expect(error?.code == .noOutput)
                #expect(error?.description.contains("is the file that is to be played") == true)
                #expect(try Data(contentsOf: URL(fileURLWithPath: song)) == before)
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `an output that cannot be opened is an error of leader and room alike`()
            async throws
        {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 1, seed: 33, as: "a.wav")
                let nowhere = OutputSpecification.file(path: group.folder.path("no/such/a.wav"))
                let leader = LeaderNode(
                    group.configuration("leader", nowhere), assets: [asset], roomsToWaitFor: 1,
                    loops: false)
                let error = await #expect(throws: RoomError.self) { try await leader.run() }
                #expect(error?.code == .noOutput)
                let room = FollowerNode(
                    group.configuration("attic", nowhere), leader: group.address)
                let other = await #expect(throws: RoomError.self) { try await room.run() }
                #expect(other?.code == .noOutput)
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `a leader that cannot start gives its port back`() async throws {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 1, seed: 36, as: "a.wav")
                _ = try await group.lead([asset], output: .none).stop()
                let nowhere = OutputSpecification.file(path: group.folder.path("no/such/a.wav"))
                let leader = LeaderNode(
                    group.configuration("leader", nowhere, port: group.address.port),
                    assets: [asset], roomsToWaitFor: 1, loops: false)
                let error = await #expect(throws: RoomError.self) { try await leader.run() }
                #expect(error?.code == .noOutput)
                #expect(leader.address == nil)
                try await group.lead([asset], port: group.address.port, output: .none)
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `play after a pause is refused when the file went meanwhile, which is said once`()
            async throws
        {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 30, seed: 37, as: "a.wav")
                let book = LogBook()
                try await group.lead([asset]) {
                    $0.logger = book.logger
                    $0.logger.logLevel = .notice
                }
                try await group.untilPlaying(["leader"])
                let aside = group.folder.path("aside")
                try FileManager.default.moveItem(atPath: asset, toPath: aside)
                try await group.perform(.pause)
                try await group.untilStatus("the room says why it does not stand by") {
                    $0.phase == .paused && $0.rooms.first?.detail.contains("not there") == true
                }
                let error = await #expect(throws: RoomError.self) {
                    try await group.perform(.play)
                }
                #expect(error?.code == .refused)
                #expect(error?.description.contains("put it back") == true)
                // A second attempt of the room is behind this.
                try await Task.sleep(for: .seconds(3))
                let said = book.all.filter { "\($0)".contains("not there") }
                #expect(said.count == 1, "\(said)")
                try FileManager.default.moveItem(atPath: aside, toPath: asset)
                try await group.perform(.play)
                try await group.untilPlaying(["leader"])
                // Who stands by has the file: it may go.
                try await group.perform(.pause)
                try await group.untilStatus("it stands by") {
                    $0.phase == .paused && $0.rooms.first?.detail == ""
                        && $0.rooms.first?.state == .paused
                        && $0.rooms.first?.bufferSeconds == 0
                }
                try await Task.sleep(for: .seconds(1))
                try FileManager.default.removeItem(atPath: asset)
                try await group.perform(.play)
                try await group.untilPlaying(["leader"])
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `a closed port is unreachable, and the error names the address`() async throws {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 1, seed: 34, as: "a.wav")
                _ = try await group.lead([asset], output: .none).stop()
                let error = await #expect(throws: RoomError.self) {
                    try await GroupClient.connect(to: group.address, timeout: .seconds(5))
                }
                #expect(error?.code == .unreachable)
                #expect(error?.description.contains("\(group.address)") == true)
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `a server that takes the connection and is silent is an error in time`()
            async throws
        {
            let server = try await RawConnection.silentServer()
            let address = HostPort(host: "127.0.0.1", port: server.localAddress?.port ?? 0)
            let error = await #expect(throws: RoomError.self) {
                try await GroupClient.connect(to: address, timeout: .milliseconds(300))
            }
            #expect(error?.code == .timedOut)
            try await server.close()
        }

        @Test(.timeLimit(.minutes(1)))
        func `a room name that cannot be is an error of leader and room alike`() async throws {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 1, seed: 35, as: "a.wav")
                let leader = LeaderNode(
                    group.configuration(""), assets: [asset], roomsToWaitFor: 1, loops: false)
                let error = await #expect(throws: RoomError.self) { try await leader.run() }
                #expect(error?.code == .badName)
                let room = FollowerNode(group.configuration(""), leader: group.address)
                let other = await #expect(throws: RoomError.self) { try await room.run() }
                #expect(other?.code == .badName)
            }
        }
    }
}
