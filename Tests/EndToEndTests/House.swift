import Foundation
import Glibc

import TuttiRoom

@testable import TuttiSimulation
@testable import tutti

/// Hosts on one machine: a network namespace each, joined by a bridge in another, or by an
/// emulated network.
///
/// The namespaces have no names. Each lives as long as a process in it that waits for the end of
/// its standard input, which the kernel closes when this process ends, whatever it dies of; then
/// the wires between them go too. There is nothing that could be left behind.
final class House {
    /// One host of the house.
    struct Host {
        var address: String
        fileprivate var holder: ChildProcess
    }

    let folder: TemporaryFolder
    private(set) var hosts: [Host]
    /// What joins them; ends with the house.
    private let middle: AnyObject
    private var rooms: [ChildProcess] = []
    private var others: [ChildProcess] = []
    /// Of hosts that have one: where its D-Bus listens, and what ends it.
    private var avahi: [Int: (folder: String, process: ChildProcess)] = [:]
    /// Rooms that do not end as rooms should, because ``kill(room:)`` ended them.
    private var killed: Set<Int> = []
    private var commands = 0

    /// Of the block for documentation (RFC 5737): no real network has it.
    private static let network = "198.51.100"
    /// A local one (RFC 4193).
    private static let network6 = "fd00:c633:6464:"
    private let isIPv6: Bool

    /// The address that a host with this number has.
    func address(_ number: Int) -> String { Self.address(number, isIPv6) }

    private static func address(_ number: Int, _ isIPv6: Bool) -> String {
        isIPv6 ? "\(network6):\(number)" : "\(network).\(number)"
    }

    /// Why there can be no house here, in one sentence; `nil` where there can.
    static let obstacle: String? = {
        guard geteuid() == 0 else { return "network namespaces need root" }
        let script = """
            ip link add br0 type bridge && ip link add v0 type veth peer name v1
            """
        guard let folder = try? TemporaryFolder(),
            let trial = try? ChildProcess(
                ["unshare", "--net", "sh", "-c", script], log: "\(folder.path)/trial")
        else { return "unshare (util-linux) is missing" }
        for _ in 0..<500 where trial.isRunning { usleep(10_000) }
        guard trial.status == 0 else {
            let reason = lastLine(ofFile: "\(folder.path)/trial") ?? "unknown reason"
            return "network namespaces with a bridge cannot be made here: \(reason)"
        }
        return nil
    }()

    /// - Parameters:
    ///   - count: hosts; host k has the address …`.1k`.
    ///   - path: what lies between the first and each of the others; `nil`: a bridge.
    ///   - multicast: what becomes of frames for all on that path.
    ///   - isIPv6: there is no IPv4.
    ///   - households: hosts that are one household already, for each; `nil`: all of them.
    ///   - cards: ALSA's configuration for all of them.
    init(
        hosts count: Int, path: ClockPath? = nil,
        multicast: EmulatedNetwork.Multicast = .together, isIPv6: Bool = false,
        households: [ClosedRange<Int>]? = nil, cards: (_ folder: String) -> String
    ) throws {
        self.isIPv6 = isIPv6
        folder = try TemporaryFolder()
        let files = folder.path
        try writeFile(Array(cards(files).utf8), to: "\(files)/asound.conf")
        try writeFile([], to: "\(files)/tutti.yaml")
        // Who gives commands from elsewhere is a member of the first one.
        for (number, members) in (households ?? [0...count - 1]).enumerated() {
            try HouseholdAccess.prepare(
                ((number == 0 ? [-1] : []) + members).map {
                    (Self.state(of: $0, in: files), "host \($0)")
                })
        }
        hosts = try (0..<count).map {
            Host(
                address: Self.address(10 + $0, isIPv6),
                holder: try Self.namespace(log: "\(files)/host-\($0).log"))
        }
        if let path {
            middle = try EmulatedNetwork(
                path, hosts: hosts.map(\.holder.pid), multicast: multicast)
        } else {
            let bridge = try Self.namespace(log: "\(files)/hub.log")
            middle = bridge
            try join(by: bridge)
        }
        for host in hosts {
            try shell(
                // IPv4 only, as many a home is: and no waiting for addresses that are still
                // tentative.
                (isIPv6
                    ? "echo 0 > /proc/sys/net/ipv6/conf/eth0/accept_dad"
                    : "echo 1 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6")
                    + " && ip link set lo up && ip link set eth0 up"
                    + " && ip addr add \(host.address)/\(prefix) dev eth0",
                in: host.holder)
        }
    }

    /// Where the node of a host keeps its key and its household.
    func state(of host: Int) -> String { Self.state(of: host, in: folder.path) }

    private static func state(of host: Int, in folder: String) -> String {
        "\(folder)/state-\(host)/tutti"
    }

    /// For what the test itself does on a host.
    func network(of host: Int) -> HostNetwork {
        HostNetwork(address: hosts[host].address, process: hosts[host].holder.pid)
    }

    /// What a program that was started by ``start(program:on:)`` has said; by the order of starts.
    func log(ofOther number: Int) -> String {
        (try? readFile("\(folder.path)/other-\(number).log")) ?? ""
    }

    private var prefix: Int { isIPv6 ? 64 : 24 }

    private func join(by bridge: ChildProcess) throws {
        var script = "ip link add br0 type bridge mcast_snooping 0 && ip link set br0 up"
        for (number, host) in hosts.enumerated() {
            script +=
                " && ip link add v\(number) type veth peer name eth0 netns \(host.holder.pid)"
                + " && ip link set v\(number) master br0 up"
        }
        try shell(script, in: bridge)
    }

    /// A process in a network namespace of its own that waits for our end.
    private static func namespace(log: String) throws -> ChildProcess {
        let holder = try ChildProcess(
            ["unshare", "--net", "sh", "-c", "echo ready && exec cat"], log: log)
        try until("a namespace", seconds: 10) {
            lastLine(ofFile: log) == "ready" || !holder.isRunning
        }
        guard holder.isRunning else {
            throw CommandError("no namespace: \(lastLine(ofFile: log) ?? "")")
        }
        return holder
    }

    private func shell(_ script: String, in holder: ChildProcess) throws {
        let result = try run(["sh", "-c", script], in: holder)
        guard result.status == 0 else { throw CommandError("\(script): \(result.output)") }
    }

    // MARK: - Programs

    /// The program under test: built next to the tests.
    static var program: String {
        let own = ownProgram()
        return own.split(separator: "/").dropLast().reduce("") { "\($0)/\($1)" } + "/tutti"
    }

    /// Where the build puts the card that ALSA loads.
    static var cardLibrary: String {
        program.split(separator: "/").dropLast().reduce("") { "\($0)/\($1)" }
            + "/libVirtualALSACard.so"
    }

    /// The words that start the program on a host, with nothing of this machine's settings.
    private func words(_ arguments: [String], in holder: ChildProcess) -> [String] {
        let host = hosts.firstIndex { $0.holder === holder }
        return [
            "nsenter", "--net=/proc/\(holder.pid)/ns/net", "env", "HOME=\(folder.path)",
            "XDG_CONFIG_HOME=\(folder.path)", "XDG_CACHE_HOME=\(folder.path)",
            "XDG_STATE_HOME=\(folder.path)/state-\(host ?? -1)",
            "ALSA_CONFIG_PATH=\(folder.path)/asound.conf",
            // A long queue: other tests load this machine, and a card that runs dry says nothing.
            "TUTTI_BUFFER_MS=200",
        ]
            + (host.flatMap { avahi[$0] }.map {
                ["DBUS_SYSTEM_BUS_ADDRESS=unix:path=\($0.folder)/bus.socket"]
            } ?? []) + arguments
    }

    /// Starts a room that runs until ``end()``; on a host with an Avahi it uses that.
    func start(_ arguments: [String], on host: Int) throws {
        rooms.append(
            try ChildProcess(
                words(
                    [Self.program] + arguments + [
                        "--config", "\(folder.path)/tutti.yaml", "--die-with-parent",
                    ] + (avahi[host] == nil ? ["--no-avahi"] : []), in: hosts[host].holder),
                log: "\(folder.path)/room-\(rooms.count).log"))
    }

    /// Gives a host an avahi-daemon, which ends with the house.
    func startAvahi(on host: Int) throws {
        let files = "\(folder.path)/avahi-\(host)"
        try makeFolder(files)
        try PrivateAvahi.writeConfiguration(
            in: files, hostName: "host-\(host)", interface: "eth0", isIPv6: isIPv6)
        let process = try ChildProcess(
            [
                "nsenter", "--net=/proc/\(hosts[host].holder.pid)/ns/net", "env",
                "DBUS_SYSTEM_BUS_ADDRESS=unix:path=\(files)/bus.socket", "unshare", "-m", "sh",
                "-c", PrivateAvahi.script, "sh", files,
            ], log: "\(files)/avahi.log")
        avahi[host] = (files, process)
        try until("an Avahi on host \(host)", seconds: 20) {
            guard process.isRunning else {
                throw CommandError("no Avahi: \(lastLine(ofFile: "\(files)/avahi.log") ?? "")")
            }
            return try tutti(["rooms", "--seconds", "0.2"], on: host).status == 0
        }
    }

    /// Gives a host another address, as a lease or another wire does; what it had is gone.
    func move(host: Int, to number: Int) throws {
        let (old, new) = (hosts[host].address, "\(Self.network).\(number)")
        try shell(
            // The kernel takes away the second address of a network with the first, if not told.
            "echo 1 > /proc/sys/net/ipv4/conf/eth0/promote_secondaries"
                + " && ip addr add \(new)/24 dev eth0 && ip addr del \(old)/24 dev eth0",
            in: hosts[host].holder)
        hosts[host].address = new
    }

    /// Gives a host one more address.
    func add(address number: Int, to host: Int) throws {
        try shell("ip addr add \(address(number))/\(prefix) dev eth0", in: hosts[host].holder)
    }

    /// Takes one of several addresses away.
    func remove(address number: Int, from host: Int) throws {
        try shell(
            (isIPv6 ? "" : "echo 1 > /proc/sys/net/ipv4/conf/eth0/promote_secondaries && ")
                + "ip addr del \(address(number))/\(prefix) dev eth0", in: hosts[host].holder)
    }

    /// Pulls the cable of a host.
    func unplug(host: Int) throws { try shell("ip link set eth0 down", in: hosts[host].holder) }

    /// Puts it back.
    func plug(host: Int) throws { try shell("ip link set eth0 up", in: hosts[host].holder) }

    /// Lets a room, by the order of starts, stand still for a while.
    func freeze(room: Int, milliseconds: UInt32) {
        rooms[room].signal(SIGSTOP)
        usleep(milliseconds * 1_000)
        rooms[room].signal(SIGCONT)
    }

    /// Rooms started so far.
    var roomCount: Int { rooms.count }

    /// Ends a room, by the order of starts, as its owner does: it closes its card.
    func stop(room: Int) throws {
        killed.insert(room)
        rooms[room].terminate()
        try until("the end of room \(room)", seconds: 10) { !rooms[room].isRunning }
    }

    /// Lets a room, by the order of starts, vanish as a machine does that loses its power.
    func kill(room: Int) throws {
        killed.insert(room)
        rooms[room].signal(SIGKILL)
        try until("the end of room \(room)", seconds: 10) { !rooms[room].isRunning }
    }

    /// Lets something befall an emulated network from now on.
    func begin(_ episode: EmulatedNetwork.Episode) throws {
        guard let network = middle as? EmulatedNetwork else {
            throw CommandError("a bridge has no episodes")
        }
        network.begin(episode)
    }

    /// Lets something befall an emulated network, and waits until it is over.
    func endure(_ episode: EmulatedNetwork.Episode, milliseconds: UInt32) throws {
        try begin(episode)
        usleep(milliseconds * 1_000)
        try begin(.none)
    }

    /// Runs the program on a host to its end.
    func tutti(
        _ arguments: [String], on host: Int
    ) throws -> (status: Int32, output: String) {
        try run([Self.program] + arguments, in: hosts[host].holder)
    }

    /// What a group says of itself, as far as `Status` asks.
    func syncStatus<Status: Decodable>(by leader: String) throws -> Status {
        let result = try tutti(["status", "--sync", "--json", "--leader", leader], on: 0)
        guard result.status == 0 else { throw CommandError("status: \(result.output)") }
        return try JSONDecoder().decode(Status.self, from: Data(result.output.utf8))
    }

    /// Runs another program on a host until the house ends.
    func start(program: [String], on host: Int) throws {
        others.append(
            try ChildProcess(
                words(["nice", "-n", "5"] + program, in: hosts[host].holder),
                log: "\(folder.path)/other-\(others.count).log"))
    }

    /// Ends what ``start(program:on:)`` has started.
    func endOthers() throws {
        // Not asked: what floods has its hands full.
        for other in others { other.signal(SIGKILL) }
        for other in others {
            try until("the end of another program", seconds: 10) { !other.isRunning }
        }
        others = []
    }

    /// Starts the program as on a terminal, where `keys`, a script of the shell, types.
    func type(
        _ keys: String, into arguments: [String], on host: Int, log: String
    ) throws -> ChildProcess {
        let words = ([Self.program] + arguments).joined(separator: " ")
        let script = "{ \(keys); } | TERM=xterm script -qefc '\(words)' /dev/null"
        return try ChildProcess(self.words(["sh", "-c", script], in: hosts[host].holder), log: log)
    }

    private func run(
        _ arguments: [String], in holder: ChildProcess
    ) throws -> (status: Int32, output: String) {
        commands += 1
        let log = "\(folder.path)/command-\(commands).log"
        let child = try ChildProcess(words(arguments, in: holder), log: log)
        try until("the end of \(arguments)", seconds: 30) { !child.isRunning }
        return (child.status.map { $0 >> 8 & 0xFF } ?? -1, (try? readFile(log)) ?? "")
    }

    /// What a house leaves, its recordings and logs, is kept where this folder is named.
    deinit {
        guard let kept = ProcessInfo.processInfo.environment["KEEP_HOUSES"] else { return }
        try? FileManager.default.createDirectory(
            atPath: kept, withIntermediateDirectories: true)
        let name = folder.path.split(separator: "/").last ?? "house"
        try? FileManager.default.copyItem(atPath: folder.path, toPath: "\(kept)/\(name)")
    }

    /// Ends the rooms in order, the last first, so that they close their cards.
    ///
    /// - Throws: when one had ended before, with what it said.
    func end() throws {
        let early = rooms.indices.filter { !killed.contains($0) && !rooms[$0].isRunning }.map {
            "room \($0): " + (lastLine(ofFile: "\(folder.path)/room-\($0).log") ?? "")
        }
        for room in rooms.reversed() { room.terminate() }
        try until("the end of all rooms", seconds: 10) { !rooms.contains(where: \.isRunning) }
        let endings = rooms.indices.filter { !killed.contains($0) }.compactMap { rooms[$0].ending }
        guard early.isEmpty, endings.allSatisfy({ $0 == "exit status 0" }) else {
            throw CommandError("rooms ended early: \(early); all ended with \(endings)")
        }
    }

    /// What the rooms have said, for a failure.
    var logs: String {
        rooms.indices.map {
            "room \($0): " + ((try? readFile("\(folder.path)/room-\($0).log")) ?? "")
        }.joined(separator: "\n")
    }
}

/// Looks again and again until something is so; blocks the thread.
func until(_ what: String, seconds: Double, _ condition: () throws -> Bool) throws {
    let deadline = ContinuousClock.now + .seconds(seconds)
    while try !condition() {
        guard ContinuousClock.now < deadline else {
            throw CommandError("\(what) took longer than \(seconds) s")
        }
        usleep(20_000)
    }
}

/// Runs `body` on a thread of its own and waits for it without one.
///
/// Tests share as many threads as there are cores, and simulations keep them for minutes: what
/// happens in a house must not wait for that.
func onOwnThread<Value: Sendable>(
    _ body: @escaping @Sendable () throws -> Value
) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        Thread { continuation.resume(with: Result { try body() }) }.start()
    }
}
