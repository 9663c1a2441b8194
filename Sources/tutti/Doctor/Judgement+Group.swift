import TuttiGroupControl

extension Judgement {
    /// Whether multicast reaches rooms as one frame, which all hear at once, or as a packet for
    /// each. No access point says so, and one machine cannot see it; rooms that play together
    /// compare when they hear the leader's reference broadcasts, and tell the leader.
    static func conversion(_ group: GroupStatus) -> [Finding] {
        let rooms = group.rooms.compactMap { room in
            room.sync.map { (name: room.name.printable, heard: $0.broadcasts) }
        }
        // A leader's own room hears nobody.
        let states = Dictionary(
            grouping: rooms.filter { $0.heard.state != .absent }, by: \.heard.state)
        guard !states.isEmpty else {
            return [
                .note(
                    conversionArea,
                    "no room follows \(group.leader.printable) yet, and only rooms "
                        + "can hear whether multicast is converted",
                    advice: conversionLater)
            ]
        }
        return states.sorted { $0.key.rawValue < $1.key.rawValue }.map { state, rooms in
            let names = rooms.map(\.name).sorted().joined(separator: ", ")
            let spread = rooms.map(\.heard.spreadMicroseconds).max() ?? 0
            return conversion(state, names, "within \(spread.text(1)) µs")
        }
    }

    static let conversionArea = "multicast conversion"
    private static let conversionLater =
        "play in two rooms on the air besides the leader's for a minute, and run this again"

    private static func conversion(
        _ state: BroadcastState, _ names: String, _ spread: String
    ) -> Finding {
        let area = conversionArea
        let later = conversionLater
        let settings =
            "in the access point's settings, switch off what makes unicast of multicast "
            + "(\"multicast to unicast\", \"multicast enhancement\"; hostapd: "
            + "multicast_to_unicast=0; a Linux bridge: bridge link set dev PORT mcast_to_unicast "
            + "off), and let all rooms use one access point"
        switch state {
        case .inUse:
            return .ok(area, "none: one frame reaches \(names) at one moment (\(spread))")
        case .unneeded:
            return .ok(area, "\(names): exchanges with the leader are sure enough, as on wires")
        case .scattered:
            return .warning(
                area,
                "\(names) hear the same broadcast at different moments: it is made a packet for "
                    + "each, they hang on different access points, or the others are on wires; "
                    + "rooms keep together by exchanges with their leader alone",
                advice: settings)
        case .standingOffset:
            return .note(
                area,
                "\(names) hear the same broadcast at moments that differ by what stays, or has not "
                    + "been compared for long: it may be made a packet for each",
                advice: "\(later); if it stays so: \(settings)")
        case .notHeard:
            return .warning(
                area, "\(names) asked for broadcasts and hear none: multicast does not arrive",
                advice: "\(later); if it stays so, look for \"IGMP snooping\" or \"multicast\" in "
                    + "the settings of switch and access point, and let UDP 7431 through the "
                    + "rooms' firewalls")
        case .off:
            return .note(
                area, "\(names): reference broadcasts are switched off there or at the leader",
                advice: "remove --no-broadcasts, or set broadcasts: true")
        case .noMulticast:
            return .warning(
                area, "\(names): the interface to the leader takes no multicast",
                advice: "run tutti doctor there")
        case .absent, .alone, .gathering, .unknown:
            return .note(
                area,
                "\(names): not known yet (\(state.rawValue)); it takes two rooms on the air "
                    + "besides the leader's, and some seconds", advice: later)
        }
    }
}
