import NIOCore
import Synchronization
import TuttiLinuxHost
import TuttiTiming
import TuttiTrust

/// Which members have a link to this node, and when the others had one last.
///
/// Who is removed loses all of its links at once.
final class Attendance: Sendable {
    private struct Entry {
        var links: [Int: any Channel] = [:]
        var leftAt: LocalInstant?
    }
    private struct State {
        var entries: [Fingerprint: Entry] = [:]
        var last = 0
    }
    private let state = Mutex(State())

    /// A link, from its handshake to ``leave(_:)``.
    struct Presence: Sendable {
        fileprivate var fingerprint: Fingerprint
        fileprivate var number: Int
    }

    func enter(_ fingerprint: Fingerprint, _ channel: any Channel) -> Presence {
        state.withLock { state in
            state.last += 1
            state.entries[fingerprint, default: Entry()].links[state.last] = channel
            return Presence(fingerprint: fingerprint, number: state.last)
        }
    }

    func leave(_ presence: Presence) {
        state.withLock { state in
            state.entries[presence.fingerprint]?.links[presence.number] = nil
            state.entries[presence.fingerprint]?.leftAt = HostClock.now()
        }
    }

    /// Closes the links of all who are no members, and forgets them.
    func close(except isMember: (Fingerprint) -> Bool) {
        let gone = state.withLock { state in
            let strangers = state.entries.filter { !isMember($0.key) }
            for fingerprint in strangers.keys { state.entries[fingerprint] = nil }
            return strangers.values.flatMap(\.links.values)
        }
        for channel in gone { channel.close(promise: nil) }
    }

    /// By fingerprint; at most as many as a household has members.
    var presences: [HouseholdMessage.Presence] {
        let now = HostClock.now()
        return state.withLock { $0.entries }.sorted { $0.key < $1.key }
            .prefix(Household.mostMembers).map { fingerprint, entry in
                let gone = entry.links.isEmpty ? entry.leftAt.map { now - $0 } ?? .zero : .zero
                return HouseholdMessage.Presence(
                    fingerprint: fingerprint,
                    secondsAgo: UInt32(clamping: gone.count / 1_000_000_000))
            }
    }
}
