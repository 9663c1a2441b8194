import Foundation
import Testing
import TuttiGroupControl

@Suite struct `Words of states in JSON` {
    private func words<State: ReportedState>(_ states: State.Type) -> [String] {
        State.allCases.map(\.rawValue)
    }

    /// Scripts compare these words.
    @Test func `are what they always were`() {
        #expect(
            words(StampKind.self)
                == ["", "own", "program", "kernel receive", "kernel", "unknown"])
        #expect(
            words(CardKind.self) == ["", "fine", "batch", "coarse", "unreadable", "unknown"])
        #expect(
            words(ClockState.self) == ["none", "acquiring", "locked", "holdover", "unknown"])
        #expect(
            words(BroadcastState.self) == [
                "", "off", "no multicast", "alone", "not heard", "gathering", "scattered",
                "standing offset", "in use", "not needed", "unknown",
            ])
    }

    @Test func `stand where they stood in a status`() throws {
        var status = SyncStatus()
        status.clock = .holdover
        (status.ownStamps, status.leaderStamps) = (.kernelReceive, .program)
        status.cardClass = .batch
        status.broadcasts.state = .standingOffset
        let json = try #require(
            try JSONSerialization.jsonObject(with: JSONEncoder().encode(status))
                as? [String: Any])
        #expect(json["clock"] as? String == "holdover")
        #expect(json["ownStamps"] as? String == "kernel receive")
        #expect(json["leaderStamps"] as? String == "program")
        #expect(json["cardClass"] as? String == "batch")
        let broadcasts = json["broadcasts"] as? [String: Any]
        #expect(broadcasts?["state"] as? String == "standing offset")
    }

    @Test func `of a newer version are unknown, and do not spoil the rest`() throws {
        let states = try JSONDecoder().decode(
            [StampKind].self, from: Data(#"["kernel", "hardware", ""]"#.utf8))
        #expect(states == [.kernel, .unknown, .absent])
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode([CardKind].self, from: Data("[1]".utf8))
        }
    }
}
