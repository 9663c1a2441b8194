import Foundation
import Testing

@testable import tutti

// Machines that belong to nobody come together.

extension EndToEndTests {
    private struct Group: Decodable {
        struct Room: Decodable { var name: String }
        var leader: String
        var rooms: [Room]
    }

    /// The first evening: three machines are switched on, two of them ask to be let in, and the person
    /// does what the lines say. One is put out, and comes back.
    @Test(.enabled(if: canHouse, obstacle))
    func `machines that are switched on together become one household`() async throws {
        try await onOwnThread {
            let house = try House(hosts: 3, households: []) { _ in "" }
            do {
                try Self.settleIn(house)
            } catch {
                throw CommandError("\(error)\n\(house.logs)")
            }
        }
    }

    /// A machine with bridges of containers or a VPN: what its owner names is used, and nothing
    /// else.
    @Test(.enabled(if: canHouse, obstacle))
    func `a room is announced on the interface that its owner names`() async throws {
        try await onOwnThread {
            let house = try House(hosts: 2) { _ in "" }
            do {
                for host in 0...1 { try house.startAvahi(on: host) }
                for (host, interface) in ["eth0", "eth7"].enumerated() {
                    try house.start(
                        [
                            "node", "--name", Self.names[host], "--output", "virtual",
                            "--interface",
                            interface,
                        ], on: host)
                }
                func listed() throws -> String {
                    try house.tutti(["rooms", "--seconds", "1"], on: 1).output
                }
                func warning() -> Bool {
                    let log = try? readFile("\(house.folder.path)/room-1.log")
                    return log?.contains("no network interface \"eth7\"") ?? false
                }
                try until("it is seen, and the other one waits", seconds: 30) {
                    try listed().contains(Self.names[0]) && warning()
                }
                #expect(try !listed().contains(Self.names[1]))
                try house.endOthers()
                try house.end()
            } catch {
                throw CommandError("\(error)\n\(house.logs)")
            }
        }
    }

    private static func settleIn(_ house: House) throws {
        func run(_ words: [String], on host: Int) throws -> String {
            let result = try house.tutti(words, on: host)
            guard result.status == 0 else { throw CommandError("\(words): \(result.output)") }
            return result.output
        }
        func rooms(by host: Int) -> Set<String> {
            guard let result = try? house.tutti(["status", "--json"], on: host),
                result.status == 0,
                let group = try? JSONDecoder().decode(Group.self, from: Data(result.output.utf8))
            else { return [] }
            return Set(group.rooms.map(\.name))
        }
        func log(_ host: Int) -> String {
            (try? readFile("\(house.folder.path)/room-\(host).log")) ?? ""
        }
        /// Whoever shows digits is let in by them.
        func acceptAll(on host: Int) throws {
            for word in try run(["household"], on: host).split(whereSeparator: \.isWhitespace)
            where word.hasSuffix(":") && word.dropLast().allSatisfy(\.isNumber) {
                _ = try? run(["household", "accept", String(word.dropLast())], on: host)
            }
        }
        for host in 0...2 { try house.startAvahi(on: host) }
        for host in 0...2 {
            try house.start(["node", "--name", names[host], "--output", "virtual"], on: host)
        }
        var founder: Int?
        try until("somebody leads", seconds: 40) {
            founder = (0...2).first { log($0).contains("this node founds one") }
            return founder != nil
        }
        guard let founder else { return }
        let others = (0...2).filter { $0 != founder }
        try until("one group", seconds: 60) {
            try acceptAll(on: founder)
            return (0...2).allSatisfy { rooms(by: $0) == Set(names) }
        }
        #expect((0...2).count { log($0).contains("this node founds one") } == 1)

        let (out, left) = (others[0], others[1])
        _ = try run(["household", "remove", names[out]], on: left)
        let remaining = Set([founder, left].map { names[$0] })
        try until("the group without it", seconds: 20) { rooms(by: left) == remaining }
        // Longer than it takes to miss a leader, and to lead where nobody does.
        sleep(8)
        #expect(rooms(by: out).isEmpty)
        #expect(!log(out).contains("leading"))
        #expect(rooms(by: left) == remaining)

        try house.start(program: [House.program, "join", "--name", names[out]], on: out)
        try until("one group again", seconds: 60) {
            try acceptAll(on: left)
            return (0...2).allSatisfy { rooms(by: $0) == Set(names) }
        }
        try house.endOthers()
        try house.end()
    }
}
