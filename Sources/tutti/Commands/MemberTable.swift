import TuttiGroupControl
import TuttiRoom

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The members of a household, a line each.
struct MemberTable {
    var lines: [String]

    init(_ members: [HouseholdMember], isFull: Bool) {
        let rows = members.map { member in
            [
                member.name.shown() + (member.isSelf ? " (this machine)" : ""),
                isFull ? member.fingerprint : member.shortFingerprint,
                Self.day(member.since), Self.seen(member),
            ]
        }
        let heads = ["member", "fingerprint", "since", "last seen"]
        let widths = heads.indices.map { column in
            ([heads] + rows).map { $0[column].count }.max() ?? 0
        }
        lines = ([heads] + rows).map { row in
            let cells = zip(row, widths).map { text, width in
                text + String(repeating: " ", count: width - text.count)
            }
            let line = cells.joined(separator: "  ")
            return String(line.reversed().drop { $0 == " " }.reversed())
        }
    }

    private static func day(_ seconds: Int64) -> String {
        let date = Date(timeIntervalSince1970: Double(seconds))
        return String(date.formatted(.iso8601).prefix(10))
    }

    private static func seen(_ member: HouseholdMember) -> String {
        switch member.seenSecondsAgo {
        case nil: "-"
        case 0?: "now"
        case let seconds? where seconds < 120: "\(seconds) s ago"
        case let seconds? where seconds < 7_200: "\(seconds / 60) min ago"
        case let seconds?: "\(seconds / 3_600) h ago"
        }
    }
}
