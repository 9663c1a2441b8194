import TuttiClockSync
import TuttiLinuxHost
import TuttiTiming

extension Judgement {
    // MARK: - Interfaces

    static func interfaces(_ all: [InterfaceFacts]) -> [Finding] {
        let outward = all.filter { !$0.isLoopback }
        guard outward.contains(where: { $0.isUp && ($0.hasIPv6 || !$0.addresses.isEmpty) }) else {
            return [
                .warning(
                    "interfaces",
                    "no network interface is up with an address: only this machine "
                        + "can be reached", advice: "ip link and ip address show what there is")
            ]
        }
        // That no interface is wireless is a finding too: silence could mean that nobody looked.
        return outward.flatMap(interface)
            + (outward.contains { $0.powerSave != nil }
                ? [] : [.ok("wifi", "no interface is wireless, so none saves power")])
    }

    private static func interface(_ facts: InterfaceFacts) -> [Finding] {
        let area = "interface \(facts.name)"
        guard facts.isUp else { return [.note(area, "is switched on, but has no link")] }
        guard facts.hasIPv6 || !facts.addresses.isEmpty else {
            return [.note(area, "has no address")]
        }
        var all = [stamping(facts, area)]
        if !facts.hasMulticast {
            all.append(
                .warning(
                    area, "does not carry multicast: Avahi finds nobody there",
                    advice: "as root: ip link set \(facts.name) multicast on"))
        }
        if let powerSave = facts.powerSave { all.append(wireless(facts.name, powerSave, area)) }
        return all
    }

    private static func stamping(_ facts: InterfaceFacts, _ area: String) -> Finding {
        let address = facts.addresses.first ?? "IPv6 only"
        guard let can = facts.stamping else {
            return .note(area, "\(address); its driver does not tell whether it stamps packets")
        }
        let clock = can.hardware ? "; it also has a hardware clock, which is not used" : ""
        switch (can.softwareTransmit, can.softwareReceive) {
        case (true, true):
            return .ok(
                area, "\(address); its driver stamps packets both ways in the kernel\(clock)")
        case (false, true):
            return .note(
                area,
                "\(address); its driver stamps only what arrives, so exchanges scatter by "
                    + "some 10 µs\(clock)",
                advice: "a newer kernel may stamp what leaves as well: ethtool -T \(facts.name)")
        default:
            return .warning(
                area, "\(address); its driver stamps nothing, so exchanges scatter by some 40 µs",
                advice: "ethtool -T \(facts.name) says more; another adapter may do better")
        }
    }

    private static func wireless(
        _ name: String, _ powerSave: InterfaceFacts.PowerSave, _ area: String
    ) -> Finding {
        switch powerSave {
        case .off: .ok(area, "is wireless, and its power saving is off")
        case .on:
            .warning(
                area, "is wireless and saves power: packets to it wait for up to 100 ms or more",
                advice: "as root: iw dev \(name) set power_save off (for good: wifi.powersave=2 in "
                    + "NetworkManager, or a unit that runs this)")
        case .unknown:
            .note(
                area, "is wireless; whether it saves power cannot be seen without nl80211",
                advice: "iw dev \(name) get power_save tells; as root: iw dev \(name) set "
                    + "power_save off")
        }
    }

    // MARK: - Stamps

    /// On a path inside one kernel the stamps of most exchanges agree this well.
    static let loopbackJitterMax = Nanoseconds.microseconds(50)
    /// Jitter of a cable is far below this; a radio that is busy or asleep is above.
    static let lanJitterMax = Nanoseconds.milliseconds(5)

    static func loopback(_ facts: ExchangeFacts) -> [Finding] {
        let area = "kernel stamps"
        guard facts.answered * 2 > facts.sent else {
            return [
                .problem(
                    area,
                    "only \(facts.answered) of \(facts.sent) packets came back over the "
                        + "loopback interface",
                    advice: "look for a firewall that drops UDP on lo: nft list ruleset")
            ]
        }
        let found =
            "over the loopback interface the stamps are of class \"\(facts.stamps)\", "
            + "\(micro(facts.roundTripFloor)) stamp to stamp at best and most within "
            + "\(micro(facts.jitter)) of that"
        switch facts.stamps {
        case .program:
            return [
                .warning(
                    area, "\(found): the kernel stamps nothing here",
                    advice: "SO_TIMESTAMPING must be allowed: gVisor and some sandboxes refuse it; "
                        + "run on the host's kernel")
            ]
        case .kernelReceive:
            return [
                .note(
                    area, "\(found): what leaves is not stamped",
                    advice: "another kernel or container runtime may stamp it")
            ]
        case .kernel:
            guard facts.jitter > loopbackJitterMax else { return [.ok(area, found)] }
            return [
                .note(
                    area, "\(found), which is much for a path inside one machine",
                    advice: "see wake-ups and clock source above")
            ]
        }
    }

    static func leader(_ facts: ExchangeFacts) -> [Finding] {
        let area = "leader"
        guard facts.answered > 0, let peer = facts.peerStamps else {
            return [
                .problem(
                    area, "\(facts.peer) answered none of \(facts.sent) time requests",
                    advice: "start it there (tutti lead FILE), and let "
                        + portsThrough(of: facts.peer))
            ]
        }
        let share = 100 * facts.answered / max(1, facts.sent)
        let found =
            "\(facts.peer) answered \(share) % of \(facts.sent) time requests; round trip "
            + "\(micro(facts.roundTripFloor)) at best, \(micro(facts.roundTripMedian)) in the "
            + "middle, 90 of 100 within \(micro(facts.jitter)) of the best; stamps here "
            + "\"\(facts.stamps)\", there \"\(peer)\""
        if share < 80 {
            return [
                .warning(
                    area, "\(found): the network loses packets",
                    advice: "on wifi move nearer to the access point or use 5 GHz; on a cable, try "
                        + "another one")
            ]
        }
        if facts.jitter > lanJitterMax {
            return [
                .warning(
                    area, "\(found): the path is busy or asleep",
                    advice: "switch wifi power saving off at both ends, and see what else uses the "
                        + "link")
            ]
        }
        if min(facts.stamps, peer) < .kernel {
            return [
                .note(
                    area, found,
                    advice: "run tutti doctor on the end whose class is not \"kernel\"")
            ]
        }
        return [.ok(area, found)]
    }

    /// What a firewall on the way to a leader must do, to end the sentence "let …".
    ///
    /// - Parameter address: ends with the port after a colon.
    static func portsThrough(of address: String) -> String {
        let port = address[(address.lastIndex(of: ":") ?? address.startIndex)...].dropFirst()
        return "UDP and TCP of port \(port) through any firewall there: ufw allow \(port), or nft"
    }

    // MARK: - Multicast, ports

    static func multicast(_ all: [MulticastFacts]) -> [Finding] {
        guard !all.isEmpty else {
            return [
                .note("multicast", "no interface has both multicast and IPv4: nothing was tested")
            ]
        }
        return all.flatMap { facts in
            [reach(facts), departure(facts), beacons(facts)].compactMap(\.self)
        }
    }

    /// What a packet of ours showed about stamps; `nil` where none could be sent.
    private static func departure(_ facts: MulticastFacts) -> Finding? {
        guard facts.failure == nil else { return nil }
        let area = "stamps \(facts.interface)"
        guard facts.stampsDeparture else {
            return .note(
                area,
                "tried: the kernel did not say when a packet of ours left by it, so exchanges "
                    + "scatter by some 10 µs",
                advice: "another kernel or adapter may do better: ethtool -T \(facts.interface)")
        }
        return .ok(area, "tried: the kernel stamped a packet of ours as it left")
    }

    /// How far multicast goes.
    private static func reach(_ facts: MulticastFacts) -> Finding {
        let area = "multicast \(facts.interface)"
        if let failure = facts.failure {
            return .warning(
                area, "a group cannot be joined or sent to (\(failure))",
                advice: "as root: ip route add 224.0.0.0/4 dev \(facts.interface), and see "
                    + "nft list ruleset")
        }
        if facts.reached.isEmpty, facts.heard.isEmpty {
            let back =
                facts.comesBack
                ? "our own packets come back from this kernel"
                : "not even our own packets came back"
            let found =
                "\(back), and no other host answered an mDNS question within "
                + "\(MulticastFacts.patience.seconds.text(1)) s: whether multicast reaches this network "
                + "is not known"
            let advice =
                "run tutti doctor on a second machine with avahi-daemon running on both; if "
                + "that changes nothing, look for \"IGMP snooping\" or \"multicast\" in the "
                + "settings of switch and access point"
            return facts.comesBack
                ? .note(area, found, advice: advice) : .warning(area, found, advice: advice)
        }
        let reached =
            facts.reached.isEmpty
            ? "none answered us" : "our question reached \(hosts(facts.reached))"
        let heard =
            facts.heard.isEmpty
            ? "nobody's multicast was heard here" : "\(hosts(facts.heard)) was heard here"
        let honest =
            "; whether an access point turns it into unicast shows only with several rooms"
        let found = "\(reached), and \(heard)\(honest)"
        guard !facts.reached.isEmpty, !facts.heard.isEmpty else {
            return .note(
                area, found,
                advice:
                    "one way only: look for \"IGMP snooping\" in the settings of the switch, "
                    + "and let UDP 5353 through the firewall")
        }
        return .ok(area, found)
    }

    /// Whether a room here could hear reference broadcasts; `nil` where there is no multicast.
    private static func beacons(_ facts: MulticastFacts) -> Finding? {
        guard facts.failure == nil else { return nil }
        let area = "broadcasts \(facts.interface)"
        let port = MulticastFacts.beaconPort
        let without = "rooms on wifi keep together by exchanges with their leader alone"
        if let failure = facts.beaconFailure {
            let advice =
                failure.kind == .portTaken
                ? "ss -ulpn 'sport = :\(port)' says which program has the port for itself"
                : "ip link show \(facts.interface), ip route and nft list ruleset say more"
            return .note(
                area, "reference broadcasts cannot be heard (\(failure)): \(without)",
                advice: advice)
        }
        guard facts.beaconsComeBack else {
            return .note(
                area,
                "a packet of ours to the group of the reference broadcasts did not come back: "
                    + without,
                advice: "let UDP \(port) in: ufw allow \(port)/udp, or nft list ruleset")
        }
        return .ok(area, "this kernel lets in reference broadcasts (IPv4, UDP port \(port))")
    }

    private static func hosts(_ list: [String]) -> String {
        let shown = list.prefix(3).joined(separator: ", ")
        return list.count > 3 ? "\(shown) and \(list.count - 3) more" : shown
    }

    static func ports(_ facts: PortFacts) -> [Finding] {
        var all: [Finding] = []
        let area = "port \(facts.port)"
        let taken = [facts.tcp == nil ? nil : "TCP", facts.udp == nil ? nil : "UDP"]
            .compactMap { $0 }.joined(separator: " and ")
        if facts.port == 0 {
            all.append(.note(area, "a leader here takes any free port: it is told by Avahi alone"))
        } else if taken.isEmpty {
            all.append(.ok(area, "free for a leader, TCP and UDP"))
        } else if facts.isLeader {
            all.append(.ok(area, "a leader runs here and answers"))
        } else if let error = facts.tcp ?? facts.udp, error.kind == .notPermitted {
            all.append(
                .warning(
                    area, "\(taken) is not permitted to this user",
                    advice: "ports below 1024 are for root: --port 7430"))
        } else {
            all.append(
                .warning(
                    area, "\(taken) is taken by another program",
                    advice:
                        "ss -tulpn 'sport = :\(facts.port)' says by which; a leader takes another "
                        + "with --port N; a room that only follows needs none"))
        }
        all.append(
            facts.takesExpeditedForwarding
                ? .ok("packet marks", "time packets are marked Expedited Forwarding (DSCP 46)")
                : .note(
                    "packet marks",
                    "the kernel refuses the mark for Expedited Forwarding: time packets wait in line "
                        + "with all others"))
        return all
    }
}
