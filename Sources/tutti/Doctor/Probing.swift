import Glibc
import Synchronization
import TuttiAvahiDiscovery
import TuttiDeviceOutput
import TuttiFFmpegMedia
import TuttiGroupControl
import TuttiLinuxHost
import TuttiRoom
import TuttiTiming

/// Asks the machine, each question on a thread of its own and with a limit: a hung driver, bus or
/// name server is a finding, not a hang. What a leader says comes as any client's answer does.
enum Probing {
    /// Beyond its limit a probe is left behind; the process ends without waiting for it.
    static func facts(_ settings: Settings) async -> DoctorFacts {
        var facts = DoctorFacts()
        facts.machine = await limited(.seconds(2)) { MachineFacts.read() }
        // Alone, so that no other probe makes it late.
        let priority = settings.realTimePriority
        facts.wakeUps = await limited(.seconds(4)) { try WakeUpFacts.measure(priority: priority) }
        facts.loopback = await limited(.seconds(5)) { try ExchangeFacts.loopback() }
        facts.output = await output(settings)
        facts.interfaces = await limited(.seconds(2)) { try InterfaceFacts.all() }
        let port = settings.port
        let isLeader = await leads(settings)
        facts.ports = await limited(.seconds(3)) {
            PortFacts.probe(port: port, isLeader: isLeader)
        }
        let (cache, state) = (settings.cacheFolder, settings.stateFolder)
        facts.cache = await limited(.seconds(2)) { FolderFacts(examining: cache) }
        facts.state = await limited(.seconds(2)) { FolderFacts(examining: state) }
        facts.codecs = await limited(.seconds(5)) {
            CodecFacts(
                version: InstalledCodecs.version, titles: InstalledCodecs.titles,
                missing: InstalledCodecs.missing(), readsHTTP: InstalledCodecs.readsHTTP())
        }
        // These wait for other hosts, so they wait together.
        async let multicast = multicast(facts.interfaces)
        async let avahi = limited(.seconds(4)) { AvahiFacts.probe() }
        async let leader = leader(settings)
        async let group = group(settings)
        facts.multicast = await multicast
        facts.avahi = await avahi
        facts.leader = await leader
        // One that does not answer at all is a finding already.
        if case .found(let exchange) = facts.leader, exchange.answered > 0 {
            facts.group = await group
        }
        return facts
    }

    private static func output(_ settings: Settings) async -> DoctorFacts.Answer<OutputFacts> {
        switch settings.output {
        case .none, .virtual: return .found(.none("\(settings.output)"))
        case .file(let path):
            return await limited(.seconds(2)) {
                .file(
                    path: path, folder: FolderFacts(examining: FolderFacts.above(path)),
                    place: FilePlace(examining: path))
            }
        case .alsa(let pcm):
            let (rate, buffer) = (
                settings.sampleRate ?? Settings.usualSampleRate, settings.bufferMilliseconds
            )
            // As the output thread has it, or the card would run dry for another reason.
            return await limited(.seconds(6), priority: settings.realTimePriority) {
                .card(
                    try CardProbe.examine(
                        pcm: pcm, preferredSampleRate: rate, bufferMilliseconds: buffer))
            }
        }
    }

    private static func multicast(
        _ interfaces: DoctorFacts.Answer<[InterfaceFacts]>
    ) async -> DoctorFacts.Answer<[MulticastFacts]> {
        guard case .found(let all) = interfaces else { return .skipped }
        let fit = all.filter {
            $0.isUp && !$0.isLoopback && $0.hasMulticast && !$0.addresses.isEmpty
        }
        return await limited(.seconds(4)) { MulticastFacts.probe(fit) }
    }

    private static func leader(
        _ settings: Settings
    ) async -> DoctorFacts.Answer<ExchangeFacts> {
        guard let leader = settings.leader else { return .skipped }
        // Members alone are answered. Where nobody gives a key, that nobody answers says more.
        var client: GroupClient?
        if let credentials = try? settings.credentials() {
            client = try? await GroupClient.connect(to: leader, credentials: credentials)
        }
        let tags = try? await client?.datagramTags()
        return await limited(.seconds(6)) { [client] in
            defer { withExtendedLifetime(client) {} }
            return try ExchangeFacts.measure(host: leader.host, port: leader.port, tags: tags)
        }
    }

    /// Whether a leader answers on this machine.
    private static func leads(_ settings: Settings) async -> Bool {
        let here = HostPort(host: "127.0.0.1", port: settings.port)
        guard let credentials = try? settings.credentials() else { return false }
        let client = try? await GroupClient.connect(
            to: here, timeout: .seconds(1), credentials: credentials)
        return client != nil
    }

    private static func group(_ settings: Settings) async -> DoctorFacts.Answer<GroupStatus> {
        guard let leader = settings.leader else { return .skipped }
        do {
            let client = try await GroupClient.connect(
                to: leader, credentials: settings.credentials())
            return .found(try await client.status())
        } catch {
            return .failed("\(error)")
        }
    }

    /// Runs `probe` on a thread of its own; whichever comes first counts, its end or the limit.
    static func limited<Value: Sendable>(
        _ limit: Duration, priority: Int = 0, _ probe: @escaping @Sendable () throws -> Value
    ) async -> DoctorFacts.Answer<Value> {
        let answer = Once<DoctorFacts.Answer<Value>>()
        return await withCheckedContinuation { continuation in
            answer.arm(continuation)
            do {
                _ = try RealTimeThread.start(name: "tutti-probe", priority: priority) {
                    do {
                        answer.give(.found(try probe()))
                    } catch {
                        answer.give(.failed("\(error)"))
                    }
                }
                _ = try RealTimeThread.start(name: "tutti-limit", priority: 0) {
                    let (seconds, atto) = limit.components
                    HostClock.sleep(
                        until: HostClock.now() + .seconds(seconds)
                            + Nanoseconds(atto / 1_000_000_000))
                    answer.give(.unanswered)
                }
            } catch {
                answer.give(.failed("\(error)"))
            }
        }
    }
}

/// Resumes a continuation with the first value that it is given.
private final class Once<Value: Sendable>: Sendable {
    private let continuation = Mutex<CheckedContinuation<Value, Never>?>(nil)

    func arm(_ waiting: CheckedContinuation<Value, Never>) {
        continuation.withLock { $0 = waiting }
    }

    func give(_ value: Value) {
        let waiting = continuation.withLock { held in
            defer { held = nil }
            return held
        }
        waiting?.resume(returning: value)
    }
}

extension AvahiFacts {
    /// Asks the bus for the daemon, for up to two seconds.
    static func probe() -> AvahiFacts {
        guard let session = try? AvahiSession() else {
            return AvahiFacts(hasBus: false, isRunning: false)
        }
        let end = HostClock.now() + .seconds(2)
        while !session.isConnected, HostClock.now() < end {
            HostClock.sleep(until: HostClock.now() + .milliseconds(20))
        }
        return AvahiFacts(hasBus: true, isRunning: session.isConnected)
    }
}
