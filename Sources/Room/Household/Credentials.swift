public import Logging
import TuttiSecureLinks
import TuttiTrust

/// What a node or a control client shows of itself to others: the key of a member of a household, or
/// nothing.
///
/// Without a household everybody on the network may steer a group, feed it files and read what it
/// plays. Groups and clients of the one kind do not understand the other.
public struct Credentials: Sendable {
    enum Kind: Sendable {
        case open
        case household(HouseholdKeeper)
    }
    let kind: Kind

    /// For groups that are open to everybody (`tutti lead --open`): no keys, nothing encrypted.
    public static let open = Credentials(kind: .open)

    /// With the key that a state folder holds; made where there is none yet.
    ///
    /// - Parameters:
    ///   - folder: `nil`: key and household end with the process, and the next one is a stranger.
    ///   - name: what the node is called where it founds or joins a household.
    /// - Throws: `RoomError`, code `badState`, where the folder cannot be used, or a newer version of
    ///   Tutti has written it.
    public static func household(
        in folder: String?, name: String, logger: Logger = Logger(label: "tutti")
    ) throws(RoomError) -> Credentials {
        Credentials(
            kind: .household(
                try HouseholdKeeper(
                    folder.map(StateFolder.init(path:)), name: name, logger: logger)))
    }

    var keeper: HouseholdKeeper? { if case .household(let keeper) = kind { keeper } else { nil } }

    /// Whether this node may lead others and follow them: not one that was removed, or has left.
    var isSeated: Bool { keeper?.isSeated ?? true }

    /// What a leader of the same household announces; `nil` for an open group, and for who belongs to
    /// nobody.
    var announcedHousehold: String? { keeper?.seatedHousehold.map(Self.announced) }

    /// Whether somebody who announces this household, or an open group, is of this node's kind.
    func concerns(_ announced: String?) -> Bool { isSeated && announced == announcedHousehold }

    /// The first 8 bytes of the founding's number, in hexadecimal: enough to tell the households of a
    /// neighbourhood apart, and no proof of anything.
    static func announced(_ household: Household) -> String {
        hexText(household.number.bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) })
    }
}
