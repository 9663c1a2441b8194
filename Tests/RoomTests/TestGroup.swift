import Foundation
import Logging
import TuttiDeviceOutput
import TuttiGroupControl

import Synchronization
import Testing

@testable import TuttiRoom

/// Rooms of one group in this process: real sockets on loopback, virtual cards, no Avahi.
///
/// Used through ``withGroup(_:)``, which ends every node before it returns.
final class TestGroup: Sendable {
    let folder: TemporaryFolder
    private let nodes = Mutex<[RunningNode]>([])
    /// Where each node leads; `nil` while it does not.
    private let leading = Mutex<[String: @Sendable () -> HostPort?]>([:])
    private let controls = Mutex<[String: @Sendable () -> (any GroupControlling)?]>([:])
    private let listening = Mutex(HostPort(host: "127.0.0.1", port: 1))

    /// Where the leader listens, once there is one.
    var address: HostPort { listening.withLock { $0 } }

    /// Whether only members of a household are let in.
    private let isHousehold: Bool
    /// Asks about pairing at the leader's own terminal.
    let leader = Mutex<LeaderNode?>(nil)

    init(isHousehold: Bool) throws {
        folder = try TemporaryFolder()
        self.isHousehold = isHousehold
    }

    /// What a program on the machine of this node shows.
    func credentials(of node: String = "leader") throws -> Credentials {
        isHousehold
            ? try .household(in: folder.path("state-\(node)"), name: node, logger: quiet)
            : .open
    }

    /// Makes these nodes members without a person; before they begin.
    func prepareHousehold(_ nodes: [String]) throws {
        try HouseholdAccess.prepare(nodes.map { (folder.path("state-\($0)"), $0) })
    }

    var quiet: Logger {
        var logger = Logger(label: "quiet")
        logger.logLevel = .critical
        return logger
    }

    /// Starts a leader and waits until it listens.
    @discardableResult
    func lead(
        _ assets: [String], port: Int = 0, roomsToWaitFor: Int = 1,
        output: OutputSpecification = .virtual(VirtualCardOptions()),
        _ change: (inout NodeConfiguration) -> Void = { _ in }
    ) async throws -> RunningNode {
        var configuration = configuration("leader", output, port: port)
        change(&configuration)
        let node = LeaderNode(
            configuration, assets: assets, roomsToWaitFor: roomsToWaitFor, loops: false)
        leader.withLock { $0 = node }
        let running = RunningNode { try await node.run() }
        nodes.withLock { $0.append(running) }
        leading.withLock { $0["leader"] = { node.leadingAddress } }
        controls.withLock { $0["leader"] = { node.control } }
        try await until("the leader listens") {
            try running.throwIfFailed()
            return node.address != nil
        }
        let address = try #require(node.address)
        listening.withLock { $0 = address }
        return running
    }

    /// Starts a room that follows the leader's address of this moment.
    @discardableResult
    func follow(
        _ name: String, of leader: HostPort? = nil,
        output: OutputSpecification = .virtual(VirtualCardOptions()),
        _ change: (inout NodeConfiguration) -> Void = { _ in }
    ) -> RunningNode {
        var configuration = configuration(name, output)
        change(&configuration)
        let node = FollowerNode(configuration, leader: leader ?? address)
        let running = RunningNode { try await node.run() }
        nodes.withLock { $0.append(running) }
        leading.withLock { $0[name] = { node.leadingAddress } }
        controls.withLock { $0[name] = { node.control } }
        return running
    }

    /// Waits until this node leads; from then on it is asked.
    func goOver(to name: String) async throws {
        let address = leading.withLock { $0[name] }
        try await until("\(name) leads") { address?() != nil }
        if let address = address?() { listening.withLock { $0 = address } }
    }

    /// Who leads at this moment, by name.
    var leaders: [String] {
        leading.withLock { $0 }.filter { $0.value() != nil }.map(\.key).sorted()
    }

    func configuration(
        _ name: String, _ output: OutputSpecification = .none, port: Int = 0
    ) -> NodeConfiguration {
        var logger = Logger(label: name)
        let isLoud = ProcessInfo.processInfo.environment["ROOM_TESTS_LOG"] != nil
        logger.logLevel = isLoud ? .debug : .critical
        // The card holds more than a busy machine ever makes it wait.
        return NodeConfiguration(
            name: name, output: output, port: port, cacheFolder: folder.path("cache-\(name)"),
            stateFolder: folder.path("state-\(name)"), isOpen: !isHousehold, usesAvahi: false,
            realTimePriority: 0,
            bufferMilliseconds: 200,
            sampleRate: TemporaryFolder.sampleRate, logger: logger)
    }

    /// Noise behind addresses, as a web server has it.
    ///
    /// - Parameter firstSeed: of the first file; the others follow.
    func serveNoise(
        _ count: Int, seconds: Double, firstSeed: UInt64
    ) async throws -> (addresses: [String], server: RunningNode) {
        let service = MediaService(logger: Logger(label: "media"))
        let hashes = try (0..<count).map { number in
            let hash = String(repeating: "\(number)", count: 64)
            let path = try folder.writeNoise(
                seconds: seconds, seed: firstSeed + UInt64(number), as: "\(number).wav")
            service.share(hash: hash, path: path)
            return hash
        }
        let (port, server) = try await service.open()
        return (hashes.map { "http://127.0.0.1:\(port)/asset/\($0)" }, server)
    }

    // MARK: As a person sees it

    /// As a program that runs this node steers the group.
    func control(in node: String) -> (any GroupControlling)? {
        controls.withLock { $0[node] }?()
    }

    func client() async throws -> GroupClient {
        try await GroupClient.connect(
            to: address, timeout: .seconds(10), credentials: credentials())
    }

    func perform(_ command: GroupCommand) async throws {
        try await GroupClient(
            address: address, timeout: .seconds(10), credentials: credentials()
        ).perform(command)
    }

    /// Waits until the status is as described; returns that status.
    @discardableResult
    func untilStatus(
        _ what: String, sourceLocation: SourceLocation = #_sourceLocation,
        _ condition: (GroupStatus) -> Bool
    ) async throws -> GroupStatus {
        let client = try await client()
        var last: GroupStatus?
        do {
            try await until(what) {
                let status = try await client.status()
                last = status
                return condition(status)
            }
        } catch let error as WaitedInVain {
            Issue.record(
                "\(error); last status: \(String(describing: last))",
                sourceLocation: sourceLocation)
            throw error
        }
        return try #require(last)
    }

    /// Waits until these rooms play, and no others are there.
    @discardableResult
    func untilPlaying(
        _ rooms: [String], sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> GroupStatus {
        try await untilStatus("\(rooms) play", sourceLocation: sourceLocation) {
            $0.phase == .playing && $0.rooms.map(\.name) == rooms
                && $0.rooms.allSatisfy { $0.state == .playing }
        }
    }

    func stop() async {
        await stopNodes()
        folder.remove()
    }

    func stopNodes() async {
        for node in nodes.withLock({ $0 }).reversed() { _ = await node.stop() }
    }
}

/// Runs `body` with an empty group and ends what it started, whatever happens.
func withGroup(
    isHousehold: Bool = false, _ body: (TestGroup) async throws -> Void
) async throws {
    let group = try TestGroup(isHousehold: isHousehold)
    do {
        try await body(group)
    } catch {
        await group.stop()
        throw error
    }
    await group.stop()
}

/// A node whose `run()` is under way; whoever starts one stops it.
final class RunningNode: Sendable {
    private let task: Task<Void, any Error>
    private let end: End

    /// How `run()` ended; `nil` while it runs.
    private final class End: Sendable {
        let result = Mutex<Result<Void, any Error>?>(nil)
    }

    init(_ run: @escaping @Sendable () async throws -> Void) {
        let end = End()
        self.end = end
        task = Task {
            do {
                try await run()
                end.result.withLock { $0 = .success(()) }
            } catch {
                end.result.withLock { $0 = .failure(error) }
                throw error
            }
        }
    }

    var hasEnded: Bool { end.result.withLock { $0 != nil } }

    func throwIfFailed() throws {
        try end.result.withLock { try $0?.get() }
    }

    /// Cancels and waits for the end.
    func stop() async -> Result<Void, any Error> {
        task.cancel()
        return await task.result
    }
}

// MARK: Waiting

struct WaitedInVain: Error, CustomStringConvertible {
    var description: String
}

/// Looks again and again until a condition holds: nothing here depends on how long things take.
func until(_ what: String, _ condition: () async throws -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(30)
    while try await !condition() {
        guard ContinuousClock.now < deadline else {
            throw WaitedInVain(description: "waited in vain until \(what)")
        }
        try await Task.sleep(for: .milliseconds(20))
    }
}
