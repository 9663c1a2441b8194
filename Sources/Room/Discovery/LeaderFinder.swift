import Logging
import Synchronization
import TuttiGroupControl
import TuttiLinuxHost
import TuttiTiming

/// Which leader to follow: the one given, or one that Avahi announces and that answers.
final class LeaderFinder: Sendable {
    /// A leader that answers.
    struct Found: Equatable, Sendable {
        var address: HostPort
        /// Since when this room knows of it.
        var at: LocalInstant
        /// What Avahi calls it; `nil`: its address was given.
        var label: String?
        var name: String?
    }

    /// What became of a question, or what else happened meanwhile.
    private enum Happening: Sendable {
        case answered(RollCall.Trial)
        case silent(RollCall.Trial)
        case changed
        case timePassed
    }

    private struct State {
        var list: LeaderList
        /// Leaders that this node has nothing to do with, as long as it belongs where it does.
        var elsewhere: [String: DiscoveredRoom] = [:]
        /// Avahi has told all that answered when it was asked first.
        var isComplete = false
        var current: Found?
        /// The search that counts: an older one ends.
        var search = 0
        /// This node leads, or ends.
        var hasEnded = false
        /// Since when one is looked for; `nil` while connected.
        var wantedAt: LocalInstant?
        /// Said to the user, since then.
        var saysItLooks = false
        /// Whom it was said that this room follows, of several.
        var saidChoice: String?
        /// What the leader at the given address is called, where another name was given and that
        /// was said.
        var saidOtherName: String?
        /// Where the leader before said that the next one is, and how often it was tried since it
        /// was there.
        var next: (found: Found, attempts: Int)?
    }

    /// So often a next leader is tried that was named; then one is looked for as at first.
    private static let mostAttempts = 5
    /// A leader that was not ready when it was asked is asked again.
    private static let retryPause = Nanoseconds.milliseconds(400)

    private let fixed: HostPort?
    private let name: String?
    private let logger: Logger
    private let ask: LeaderProbe.Ask
    private let credentials: Credentials
    private let keep: @Sendable (String) -> Void
    private let state: Mutex<State>
    /// Rings when leaders come, go or move, and when another search begins.
    private let bell = Bell()

    /// - Parameters:
    ///   - name: of those that are announced, only the one of this name counts.
    ///   - preferred: name of the leader that was followed last.
    ///   - keep: remembers that name.
    init(
        fixed: HostPort?, name: String?, preferred: String? = nil,
        credentials: Credentials = .open, logger: Logger, ask: LeaderProbe.Ask? = nil,
        keep: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.fixed = fixed
        self.name = name
        self.logger = logger
        self.ask = ask ?? LeaderProbe.ask(with: credentials)
        self.credentials = credentials
        self.keep = keep
        state = Mutex(State(list: LeaderList(name: name, preferred: preferred)))
    }

    /// Takes in what is heard of the LAN.
    func take(_ sighting: RoomSighting) {
        let now = HostClock.now()
        let isNews = state.withLock { state in
            switch sighting {
            case .found(let room):
                // Another household's would not let this node in.
                guard credentials.concerns(room.household) else {
                    if state.elsewhere.count < LeaderList.most
                        || state.elsewhere[room.label] != nil
                    {
                        state.elsewhere[room.label] = room
                    }
                    return state.list.remove(room.label)
                }
                state.elsewhere[room.label] = nil
                return state.list.take(room, at: now)
            case .gone(let label):
                state.elsewhere[label] = nil
                return state.list.remove(label)
            case .answersTold:
                state.isComplete = true
                return true
            case .daemonLost:
                logger.warning("avahi-daemon went away; waiting for it")
                return false
            case .knownTold: return false
            }
        }
        if isNews { bell.ring() }
    }

    /// This node belongs to another household than before, or to none: others count.
    func householdChanged() {
        let now = HostClock.now()
        let isNews = state.withLock { state in
            let known = state.list.entries.values.map(\.room) + state.elsewhere.values
            state.elsewhere = [:]
            var isNews = false
            for room in known {
                if credentials.concerns(room.household) {
                    isNews = state.list.take(room, at: now) || isNews
                } else {
                    state.elsewhere[room.label] = room
                    isNews = state.list.remove(room.label) || isNews
                }
            }
            return isNews
        }
        if isNews { bell.ring() }
    }

    // MARK: Looking

    /// A leader that answers; waits until there is one. An older search ends.
    ///
    /// - Throws: `RoomError`, code `unreachable`, when all that are announced are silent.
    func next() async throws -> Found {
        let (search, wantedAt) = state.withLock { state in
            state.search += 1
            let wantedAt = state.wantedAt ?? HostClock.now()
            state.wantedAt = wantedAt
            return (state.search, wantedAt)
        }
        bell.ring()
        if let next = nextLeader() { return next }
        if let fixed { return Found(address: fixed, at: wantedAt) }
        while true {
            let change = bell.changes
            if !state.withLock({ $0.list.ranked.isEmpty }) {
                return try await callTheRoll(search, wantedAt)
            }
            if isFirstLook() { logger.notice("looking for a leader") }
            await bell.wait(after: change)
            try check(search)
        }
    }

    /// Whoever waits for a leader does not any more.
    func end() {
        state.withLock {
            $0.search += 1
            $0.hasEnded = true
        }
        bell.ring()
    }

    var hasEnded: Bool { state.withLock { $0.hasEnded } }

    /// The leader says that another leads now.
    ///
    /// - Parameter teller: host of the leader that says so; `nil`: it is the one that is followed,
    ///   or was this node.
    func follow(_ next: NextLeader, toldBy teller: String? = nil) {
        state.withLock { state in
            let teller = teller ?? state.current?.address.host ?? "127.0.0.1"
            let found = Found(
                address: HostPort(host: next.host(toldBy: teller), port: Int(next.port)),
                at: HostClock.now(),
                label: nil, name: next.name.name)
            state.next = (found, 0)
        }
        bell.ring()
    }

    private func nextLeader() -> Found? {
        state.withLock { state in
            guard let next = state.next else { return nil }
            guard next.attempts < Self.mostAttempts else {
                state.next = nil
                return nil
            }
            state.next?.attempts += 1
            return next.found
        }
    }

    private func check(_ search: Int) throws {
        guard !Task.isCancelled, state.withLock({ $0.search == search }) else {
            throw CancellationError()
        }
    }

    private func callTheRoll(_ search: Int, _ wantedAt: LocalInstant) async throws -> Found {
        try check(search)
        return try await withThrowingTaskGroup(of: Happening.self) { group in
            defer { group.cancelAll() }
            var call = RollCall()
            waitForChange(in: &group)
            for trial in call.start(list) { group.addTask { await self.question(trial) } }
            while let happening = try await group.next() {
                try check(search)
                take(happening, into: &call, of: &group)
                // Who was announced just now may be better than who answered before.
                for trial in call.start(list) { group.addTask { await self.question(trial) } }
                if let found = choice(of: call, wantedAt) { return found }
                guard !call.isOver else { throw silence() }
            }
            throw CancellationError()
        }
    }

    private func take(
        _ happening: Happening, into call: inout RollCall,
        of group: inout ThrowingTaskGroup<Happening, any Error>
    ) {
        switch happening {
        case .answered(let trial):
            call.answered(trial, at: HostClock.now())
            for span in [RollCall.patience, RollCall.patienceForKnown] {
                group.addTask {
                    await LoopExecutor.shared.sleep(for: span)
                    return .timePassed
                }
            }
        case .silent(let trial):
            if call.wasSilent(trial) { state.withLock { $0.list.wasSilent(trial.label) } }
        case .changed: waitForChange(in: &group)
        case .timePassed: break
        }
    }

    private func waitForChange(in group: inout ThrowingTaskGroup<Happening, any Error>) {
        let change = bell.changes
        group.addTask {
            await self.bell.wait(after: change)
            return .changed
        }
    }

    private func question(_ trial: RollCall.Trial) async -> Happening {
        await LoopExecutor.shared.sleep(for: trial.delay)
        let deadline = HostClock.now() + RollCall.limit
        while !Task.isCancelled, case let left = deadline - HostClock.now(), left > .zero {
            if let name = await ask(trial.address, left) {
                // Somebody else has that address now.
                return name.foldedName == trial.name.foldedName ? .answered(trial) : .silent(trial)
            }
            await LoopExecutor.shared.sleep(for: min(left, Self.retryPause))
        }
        return .silent(trial)
    }

    private func choice(of call: RollCall, _ wantedAt: LocalInstant) -> Found? {
        let now = HostClock.now()
        let (found, others) = state.withLock { state -> (Found?, Int) in
            guard
                let (label, address) = call.choice(
                    in: state.list, isComplete: state.isComplete, at: now),
                let entry = state.list.entries[label]
            else { return (nil, 0) }
            let isSaid = state.saidChoice == entry.room.name
            state.saidChoice = entry.room.name
            let found = Found(
                address: address, at: max(entry.since, wantedAt), label: label,
                name: entry.room.name)
            return (found, isSaid ? 0 : state.list.entries.count - 1)
        }
        if let found, others > 0 {
            logger.warning(
                "more than one leader is announced on this LAN; choose one with --group NAME or --leader HOST:PORT",
                metadata: ["count": "\(others + 1)", "following": "\(found.name ?? "")"])
        }
        return found
    }

    private func silence() -> RoomError {
        let names = list.entries.values.map { "\"\($0.room.name)\" at \($0.room.address)" }
        return RoomError(
            .unreachable,
            names.count == 1
                ? "the leader \(names[0]) is announced, and does not answer"
                : "\(names.count) leaders are announced, and none answers")
    }

    /// Once until a leader is connected to, however many attempts that takes.
    private func isFirstLook() -> Bool {
        state.withLock { state in
            defer { state.saysItLooks = true }
            return !state.saysItLooks
        }
    }

    private var list: LeaderList { state.withLock { $0.list } }

    /// One is announced, and answers as far as is known, or was named.
    var knowsLeaders: Bool {
        state.withLock { state in
            fixed != nil || state.next != nil
                || state.list.entries.values.contains { $0.silences == 0 }
        }
    }

    // MARK: The one that is followed

    /// The leader connected to last.
    var currentAddress: HostPort? { state.withLock { $0.current?.address } }

    var currentHost: String? { currentAddress?.host }

    /// … and where else it is announced.
    var currentHosts: [String] {
        guard let current = state.withLock({ $0.current }) else { return [] }
        let others = addresses(of: current).map(\.host).filter { $0 != current.address.host }
        return [current.address.host] + others.prefix(Self.mostHosts)
    }

    /// Addresses of the leader that are asked besides the one that was used.
    private static let mostHosts = 3

    /// There is a connection; whether the leader wants this room is still to be heard.
    func connected(to found: Found) {
        state.withLock {
            $0.current = found
            $0.wantedAt = nil
            $0.saysItLooks = false
        }
        bell.ring()
    }

    /// The leader wants this room.
    ///
    /// - Parameter leader: its own word for its name.
    func welcomed(by found: Found, called leader: String) {
        state.withLock { if $0.next?.found == found { $0.next?.attempts = 0 } }
        // A next leader has another name than the one that was given.
        if found.name == nil { compareName(of: leader) }
        // Where a room was sent, it comes back to.
        if found.label == nil, found.name != nil { keep(leader) }
        guard let label = found.label, let name = found.name else { return }
        let isNews = state.withLock { state in
            let before = state.list.preferred
            state.list.welcomed(label)
            return before != name
        }
        if isNews { keep(name) }
    }

    /// Where its address is given, nothing else says which leader is meant.
    private func compareName(of leader: String) {
        guard let fixed, let name, name.foldedName != leader.foldedName else { return }
        let isSaid = state.withLock { state in
            defer { state.saidOtherName = leader }
            return state.saidOtherName == leader
        }
        if !isSaid {
            logger.warning("\(GroupClient.otherName(leader, at: fixed, insteadOf: name))")
        }
    }

    /// It was connected to, and did not welcome this room.
    func refused(by found: Found) {
        guard let label = found.label else { return }
        state.withLock { $0.list.refused(label) }
    }

    /// Where Avahi says that it is. A leader that is announced no more has none; that says nothing
    /// of whether it is there.
    func addresses(of found: Found) -> [HostPort] {
        guard let label = found.label else { return [] }
        return state.withLock { $0.list.entries[label]?.room.addresses ?? [] }
    }

    /// The address at which the leader answers: the one that is used, when it does there.
    func answeringAddress(of found: Found, within limit: Nanoseconds) async -> HostPort? {
        return await LeaderProbe.first(
            of: [found.address] + addresses(of: found).filter { $0 != found.address },
            named: found.name,
            within: limit, ask: ask)
    }

    /// Returns when something has changed, or after a while.
    func change(after number: Int, within span: Nanoseconds) async {
        await bell.wait(after: number, within: span)
    }

    var changes: Int { bell.changes }

    /// Runs `body` until the leader is connected to at another host, or nobody looks any more.
    ///
    /// - Returns: `nil` when that came first.
    func whileItStays<Value: Sendable>(
        at host: String, _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value? {
        try await withThrowingTaskGroup(of: Value?.self) { group in
            defer { group.cancelAll() }
            group.addTask { try await body() }
            group.addTask {
                while !Task.isCancelled {
                    let change = self.bell.changes
                    if self.hasEnded { return nil }
                    if let current = self.currentHost, current != host { return nil }
                    await self.bell.wait(after: change)
                }
                throw CancellationError()
            }
            return try await group.next() ?? nil
        }
    }
}
