import NIOCore
import TuttiGroupControl
import TuttiTiming

/// Asks an address whether a leader is there, and which.
///
/// Only an answer in our own protocol counts: many things take a connection and say nothing.
enum LeaderProbe {
    /// - Returns: the leader's name; `nil` when nobody answered like a leader in time.
    typealias Ask = @Sendable (HostPort, _ limit: Nanoseconds) async -> String?

    static func ask(with credentials: Credentials) -> Ask {
        { address, limit in
            let client = GroupClient(
                address: address, timeout: .nanoseconds(limit.count), attempts: .few, credentials)
            return try? await client.status().leader
        }
    }

    /// The address at which the leader of this name answers first.
    ///
    /// - Parameters:
    ///   - addresses: the one that is best if it answers first; the others are asked `stagger`
    ///     later.
    static func first(
        of addresses: [HostPort], named name: String?, within limit: Nanoseconds,
        stagger: Nanoseconds = RollCall.stagger, ask: @escaping Ask
    ) async -> HostPort? {
        await withTaskGroup(of: HostPort?.self) { group in
            for (place, address) in addresses.enumerated() {
                group.addTask {
                    if place > 0 { await LoopExecutor.shared.sleep(for: stagger) }
                    guard !Task.isCancelled, let found = await ask(address, limit),
                        name == nil || found.foldedName == name?.foldedName
                    else { return nil }
                    return address
                }
            }
            defer { group.cancelAll() }
            for await address in group where address != nil { return address }
            return nil
        }
    }
}
