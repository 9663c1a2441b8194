import TuttiGroupControl
import TuttiTiming

// The lead may go to another node at any time.

extension GroupClient {
    /// Between two attempts while a room is about to lead.
    private static let pause = Duration.milliseconds(100)
    /// Leaders that send on in a row: people hand over no more often than that within a command.
    private static let mostSteps = 4

    /// Does something with whoever leads the group: waits while the lead goes over, and asks the next
    /// leader where this one leads no more.
    ///
    /// - Parameter work: may be done again after it was refused.
    public func whoeverLeads<Value>(
        _ work: (GroupClient) async throws -> Value
    ) async throws -> Value {
        let deadline = ContinuousClock.now + .nanoseconds(LeaderMachine.handoverLimit.count)
        var client = self
        var steps = 0
        while true {
            do {
                return try await work(client)
            } catch let error as RoomError where error.code == .refused {
                if NextLeader.isSoon(error.description), ContinuousClock.now < deadline {
                    try await Task.sleep(for: Self.pause)
                    continue
                }
                guard steps < Self.mostSteps, let next = NextLeader(refusal: error.description)
                else {
                    throw error
                }
                steps += 1
                let host = next.host(toldBy: client.address.host)
                client = GroupClient(
                    address: HostPort(host: host, port: Int(next.port)), timeout: timeout,
                    credentials: credentials)
            }
        }
    }
}
