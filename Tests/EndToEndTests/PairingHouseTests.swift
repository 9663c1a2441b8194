import Foundation
import Testing

@testable import tutti

extension EndToEndTests {
    /// A machine that belongs to nobody is told a wrong address for the leader, as whoever answers
    /// for another's address can do. The person types what the machine shows, sees that it is not
    /// what the member shows, and sends it away.
    @Test(.enabled(if: canHouse, obstacle), arguments: PairingBetween.PassedOn.allCases)
    func `somebody between two machines that are paired is seen by the digits`(
        passed: PairingBetween.PassedOn
    ) async throws {
        try await onOwnThread {
            let house = try House(hosts: 3, households: [0...0]) { _ in "" }
            do {
                try Self.pair(house, passed)
            } catch {
                throw CommandError("\(error)\n\(house.logs)\n\(house.log(ofOther: 0))")
            }
        }
    }

    private static func pair(_ house: House, _ passed: PairingBetween.PassedOn) throws {
        let leader = "\(house.hosts[0].address):7430"
        func household(_ words: [String] = [], on host: Int = 0) throws -> (Int32, String) {
            let result = try house.tutti(["household"] + words + ["--leader", leader], on: host)
            return (result.status, result.output)
        }
        try house.start(["lead", "--name", "kitchen", "--output", "none"], on: 0)
        try until("a leader", seconds: 30) {
            try house.tutti(["status", "--leader", leader], on: 0).status == 0
        }
        let before = try members(household().1)
        let between = try PairingBetween(
            on: house.network(of: 2), before: house.hosts[0].address, called: "kitchen",
            passing: passed)
        try house.start(
            program: [
                House.program, "join", "--name", "bedroom", "--leader",
                "\(house.hosts[2].address):7430",
            ], on: 1)
        // Each in its own words: "482 913: …", and "… household accept 482913".
        var shown: (candidate: String, member: String)?
        try until("digits on both sides", seconds: 20) {
            guard let own = digits(house.log(ofOther: 0)), let theirs = digits(try household().1)
            else { return false }
            shown = (own, theirs)
            return true
        }
        guard let shown else { return }
        #expect(shown.candidate != shown.member)

        let accepted = try household(["accept", shown.candidate])
        #expect(accepted.0 == 1)
        #expect(accepted.1.contains("no machine that is being paired shows these digits"))
        #expect(try members(household().1) == before)
        #expect(try household(["decline", shown.member]).0 == 0)
        try between.end()
        try until("the word of the machine", seconds: 10) {
            house.log(ofOther: 0).contains("was declined there")
        }
        #expect(house.log(ofOther: 0).contains("If it shows others, somebody is in between"))

        #expect(try members(household().1) == before)
        let own = try house.tutti(["household", "--leader", leader], on: 1)
        #expect(own.status == 1 && own.output.contains("belongs to no household"), "\(own.output)")
        try house.endOthers()
        try house.end()
    }

    /// The digits that a text tells to accept.
    private static func digits(_ text: String) -> String? {
        text.firstMatch(of: /household accept (\d{6})/).map { String($0.output.1) }
    }

    /// How the fingerprints of the members in a list begin.
    private static func members(_ list: String) -> Set<String> {
        Set(list.matches(of: /[0-9A-Z]{4}-[0-9A-Z]{4}/).map { String($0.output) })
    }
}
