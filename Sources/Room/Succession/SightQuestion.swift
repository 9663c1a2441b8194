import NIOCore
import NIOPosix
import TuttiGroupControl
import TuttiTiming

import let Glibc.ECONNREFUSED

/// Asks nodes who leads.
struct SightQuestion: Sendable {
    let credentials: Credentials
    /// Of a leader that asks.
    var claim: LeadClaim?
    /// For each of those that are asked.
    var limit = Bereavement.answerLimit

    /// Asks all of them at once.
    ///
    /// - Parameter hosts: stand for an empty one, the most likely first: where one machine is.
    /// - Returns: what each has answered, in their order.
    func ask(_ places: [NextLeader], hosts: [String]) async -> [SightAnswer] {
        await withTaskGroup(of: (Int, SightAnswer).self) { group in
            for (number, place) in places.enumerated() {
                let usual = hosts.first.map(place.host(toldBy:)) ?? place.host
                for host in place.host.isEmpty ? hosts : [usual] where !host.isEmpty {
                    group.addTask {
                        (number, await ask(HostPort(host: host, port: Int(place.port))))
                    }
                }
            }
            var answers = Array(repeating: SightAnswer.silent, count: places.count)
            for await (number, answer) in group where answer.weight > answers[number].weight {
                answers[number] = answer
            }
            return answers
        }
    }

    private func ask(_ address: HostPort) async -> SightAnswer {
        let client = GroupClient(
            address: address, timeout: .nanoseconds(limit.count), attempts: .few, credentials)
        do {
            guard case .lead(let sight) = try await client.ask(.lead(claim: claim)) else {
                return .silent
            }
            return .sight(sight)
        } catch {
            return await standing(of: address)
        }
    }

    /// What the machine itself says for its node.
    private func standing(of address: HostPort) async -> SightAnswer {
        let attempt = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connectTimeout(.nanoseconds(limit.count / 4))
            .connect(host: address.host, port: address.port)
        do {
            let channel = try await attempt.get()
            channel.close(promise: nil)
            return .stalled
        } catch let error as NIOConnectionError {
            let isRefused = error.connectionErrors.contains {
                ($0.error as? IOError)?.errnoCode == ECONNREFUSED
            }
            return isRefused ? .refused : .silent
        } catch {
            return (error as? IOError)?.errnoCode == ECONNREFUSED ? .refused : .silent
        }
    }
}

extension SightAnswer {
    /// Of what two addresses of one machine answer the weightier counts.
    fileprivate var weight: Int {
        switch self {
        case .silent: 0
        case .refused: 1
        case .stalled: 2
        case .sight: 3
        }
    }
}
