import Logging
import NIOCore
import Synchronization
import TuttiGroupControl
import TuttiLinuxHost
import TuttiTiming
import TuttiWire

/// A following room's link to its leader: made, and ended when the leader is somewhere else.
struct Uplink: Sendable {
    /// Longest silence while a TCP connection is made.
    static let connectLimit = TimeAmount.seconds(3)
    /// Until there is a link. A little less than the time after which a room's machine gives the
    /// attempt up: by then there is a reason to be told.
    static let linkLimit = TimeAmount.nanoseconds(
        (RoomMachine.answerLimit - .milliseconds(200)).count)

    let finder: LeaderFinder
    let clock: RemoteClock
    let credentials: Credentials

    /// One link from its beginning to its end.
    ///
    /// - Returns: why it ended, or could not be made.
    func run(_ member: Member, _ attempt: Int) async -> String {
        do {
            return try await link(member, attempt)
        } catch {
            return (try? await link(member, attempt)) ?? "the leader closed the connection"
        }
    }

    /// - Throws: where the leader had not heard that this node is a member, and has now.
    private func link(
        _ member: Member, _ attempt: Int
    ) async throws(IntroducedError) -> String {
        let watch = LinkWatch()
        do {
            let found = try await finder.next()
            clock.approach(found.address)
            let channel = try await introduced(to: found.address, credentials) {
                try await TuttiRoom.connect(
                    to: found.address, timeout: Self.connectLimit, patience: Self.linkLimit,
                    limit: FrameDecoder.roomLimit,
                    credentials)
            }
            finder.connected(to: found)
            clock.setHost(found.address.host)
            defer { if !watch.isWelcome { finder.refused(by: found) } }
            return try await channel.executeThenClose { inbound, outbound in
                let outbox = Outbox<RoomToLeader>()
                channel.cut(after: outbox)
                return try await withThrowingTaskGroup { group in
                    group.addTask { try await channel.say(outbox, on: outbound) { .toLeader($0) } }
                    group.addTask {
                        await watch.run(found, finder)
                        channel.channel.close(promise: nil)
                    }
                    group.addTask {
                        await HouseholdLink.keep(with: found.address, credentials) {
                            channel.channel.close(promise: nil)
                        }
                    }
                    await member.linkUp(outbox, attempt, foundAt: found.at)
                    for try await envelope in inbound {
                        guard case .toRoom(let message) = envelope else { continue }
                        if watch.hears(message), case .welcome(let welcome) = message {
                            finder.welcomed(by: found, called: welcome.leaderName)
                        }
                        await member.receive(message, attempt)
                    }
                    outbox.finish()
                    group.cancelAll()
                    if !watch.isWelcome, watch.verdict == nil,
                        let reason = await HouseholdLink.reasonForRefusal(
                            by: found.address, credentials)
                    {
                        throw reason
                    }
                    return watch.verdict ?? "the leader closed the connection"
                }
            }
        } catch let error as IntroducedError {
            throw error
        } catch let error as RoomError {
            return error.description
        } catch {
            return watch.verdict ?? reason(of: error)
        }
    }
}

/// Notices when a link leads nowhere any more: the leader answers, but not on it.
///
/// An address that goes takes its connections with it, and neither end is told. A leader that is
/// silent altogether is not ours to judge: the room's machine waits for it.
final class LinkWatch: Sendable {
    /// The leader gives a sign of life every 0.4 s.
    static let doubt = Nanoseconds.milliseconds(900)
    /// A new connection to the same address was answered, and the link is still silent.
    static let limit = Nanoseconds.milliseconds(2_500)
    /// For an answer while there is doubt: a connection, a handshake and a question, on a wifi that
    /// loses the first packet of one, and a busy machine.
    static let answerLimit = Nanoseconds.milliseconds(900)
    /// Between two questions.
    static let pause = Nanoseconds.milliseconds(250)

    private struct State {
        var heardAt = HostClock.now()
        var isWelcome = false
        var verdict: String?
    }
    private let state = Mutex(State())

    /// Why the link was given up; `nil` when it was not.
    var verdict: String? { state.withLock { $0.verdict } }
    var isWelcome: Bool { state.withLock { $0.isWelcome } }

    /// - Returns: whether this is the welcome.
    func hears(_ message: LeaderToRoom) -> Bool {
        state.withLock { state in
            state.heardAt = HostClock.now()
            guard case .welcome = message else { return false }
            defer { state.isWelcome = true }
            return !state.isWelcome
        }
    }

    /// Returns when the link is to be ended, or with the task.
    func run(_ found: LeaderFinder.Found, _ finder: LeaderFinder) async {
        state.withLock { $0.heardAt = HostClock.now() }
        // With these announced, the leader has answered where it is connected to.
        var examined = finder.addresses(of: found)
        if !examined.contains(found.address) { examined = [] }
        while !Task.isCancelled {
            let change = finder.changes
            let announced = finder.addresses(of: found)
            let isMoved = announced != examined
            guard silence >= Self.doubt || isMoved else {
                await finder.change(after: change, within: Self.doubt - silence)
                continue
            }
            let answering = await answer(of: found, announcedAt: announced, finder)
            if Task.isCancelled { return }
            if answering == found.address {
                examined = announced
                if silence >= Self.limit {
                    return conclude("the link is dead, though the leader answers")
                }
            } else if let answering, isMoved || silence >= Self.doubt {
                // It has not spoken meanwhile.
                return conclude("the leader answers at \(answering) now")
            }
            // Another address may be announced while this one is asked.
            await finder.change(after: change, within: Self.pause)
        }
    }

    /// The address at which the leader answers; `nil` when there is none, or others are announced
    /// meanwhile: those that are gone would be waited for.
    private func answer(
        of found: LeaderFinder.Found, announcedAt addresses: [HostPort], _ finder: LeaderFinder
    ) async -> HostPort? {
        await withTaskGroup(of: HostPort?.self) { group in
            group.addTask {
                await finder.answeringAddress(of: found, within: Self.answerLimit)
            }
            group.addTask {
                while !Task.isCancelled, finder.addresses(of: found) == addresses {
                    await finder.change(after: finder.changes, within: Self.answerLimit)
                }
                return nil
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
    }

    private var silence: Nanoseconds { HostClock.now() - state.withLock { $0.heardAt } }

    private func conclude(_ verdict: String) { state.withLock { $0.verdict = verdict } }
}
