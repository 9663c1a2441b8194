public import Timing

/// Runs a session: who takes part, what plays, and the common instants of every change.
public struct LeaderMachine: Sendable {
    public let configuration: LeaderConfiguration
    public internal(set) var session: SessionState

    public init(_ configuration: LeaderConfiguration) {
        self.configuration = configuration
        session = SessionState(
            term: configuration.term, sequence: 1, queue: configuration.queue, index: 0,
            change: nil, phase: .waiting)
    }

    public mutating func receive(_ input: LeaderInput, at now: GroupInstant) -> [LeaderEffect] {
        []
    }

    public mutating func perform(
        _ command: GroupCommand, at now: GroupInstant
    ) -> (outcome: CommandOutcome, effects: [LeaderEffect]) {
        (.accepted, [])
    }

    public mutating func advance(to now: GroupInstant) -> [LeaderEffect] { [] }

    /// When ``advance(to:)`` is due next.
    public var nextDeadline: GroupInstant? { nil }

    /// Tells every room that the leader leaves.
    public mutating func leave(at now: GroupInstant) -> [LeaderEffect] { [] }

    public func status(at now: GroupInstant) -> GroupStatus {
        GroupStatus(
            leader: configuration.name, phase: session.phase, title: "", index: session.index,
            count: session.queue.count, positionSeconds: 0, durationSeconds: 0, rate: 0, rooms: [])
    }
}
