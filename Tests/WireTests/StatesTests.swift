import Testing
import TuttiGroupControl

@testable import TuttiWire

@Suite struct `States that people read cross as numbers` {
    @Test func `every state comes back as it was, and has a number of its own`() {
        #expect(StampKind.allCases.allSatisfy { PBStamps($0).kind == $0 })
        #expect(CardKind.allCases.allSatisfy { PBCardClass($0).kind == $0 })
        #expect(ClockState.allCases.allSatisfy { PBQuality($0).state == $0 })
        #expect(BroadcastState.allCases.allSatisfy { PBBroadcastState($0).state == $0 })
    }

    /// A room of a newer version is shown by an older leader and an older client.
    @Test func `a number that this version does not know is unknown, and no error`() throws {
        var report = PBReport(RoomReport(activity: .playing, stamps: .kernel))
        report.stamps = .UNRECOGNIZED(99)
        report.sync.ownStamps = .UNRECOGNIZED(6)
        report.sync.leaderStamps = .UNRECOGNIZED(.max)
        report.sync.cardClass = .UNRECOGNIZED(7)
        report.sync.broadcasts.state = .UNRECOGNIZED(11)
        let read = try report.checked("report")
        #expect(read.stamps == .unknown)
        #expect(read.sync.ownStamps == .unknown && read.sync.leaderStamps == .unknown)
        #expect(read.sync.cardClass == .unknown && read.sync.broadcasts.state == .unknown)
        // The leader tells its clients what it was told.
        #expect(try PBReport(read).checked("report") == read)
        var status = PBSyncStatus(SyncStatus())
        status.clock = .UNRECOGNIZED(5)
        #expect(try status.checked("status").clock == .unknown)
    }

    @Test func `a number of a newer version does not spoil the message it is in`() throws {
        // Field 40 as a varint: the tag takes two bytes.
        #expect(try Self.report([0xC0, 0x02, 99]).stamps == .unknown)
        #expect(try Self.report([0xC0, 0x02, 5]).stamps == .kernel)
    }

    /// These were words once. What an older version says there is passed over, not misread.
    @Test func `the words of an older version are no numbers`() throws {
        #expect(try Self.report([6 << 3 | 2, 6] + Array("kernel".utf8)).stamps == .absent)
    }

    /// Of a room that plays, with `field` in its report, read as a leader reads it.
    private static func report(_ field: [UInt8]) throws -> RoomReport {
        let sync: [UInt8] = [13 << 3 | 2, 2, 1 << 3, 4]
        let report: [UInt8] = [1 << 3, 5] + sync + field
        let toLeader: [UInt8] = [4 << 3 | 2, UInt8(report.count)] + report
        let bytes: [UInt8] = [1 << 3, 1, 2 << 3 | 2, UInt8(toLeader.count)] + toLeader
        guard case .toLeader(.report(let read)) = try MessageCodec.decode(bytes) else {
            throw WireError(.malformed, "report", "another message")
        }
        return read
    }
}
