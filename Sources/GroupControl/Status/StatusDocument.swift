/// What `tutti status --json` prints: the status as the leader tells it, and what is concluded from
/// it: of the group and of each room, why there is no promise where there is none.
public struct StatusDocument: Encodable, Sendable {
    /// The status as the leader tells it.
    public let status: GroupStatus
    /// Of the event that brought it; `nil` for a single answer.
    public let sequence: UInt64?
    /// Whether everybody on the network may steer the group.
    public let isOpen: Bool

    /// A document about `status`, which may have come as an event.
    public init(status: GroupStatus, sequence: UInt64? = nil, isOpen: Bool = false) {
        self.isOpen = isOpen
        self.status = status
        self.sequence = sequence
    }

    private enum CodingKeys: CodingKey {
        case rooms, sequence, isOpen, promisedMicroseconds, expectedMicroseconds, promiseObstacle
    }

    public func encode(to encoder: any Encoder) throws {
        try status.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(sequence, forKey: .sequence)
        if isOpen { try container.encode(true, forKey: .isOpen) }
        try container.encode(status.rooms.map(Room.init), forKey: .rooms)
        switch status.promise {
        case .within(let promised, let expected):
            try container.encode(promised, forKey: .promisedMicroseconds)
            try container.encode(expected, forKey: .expectedMicroseconds)
        case .nothing(let reason):
            try container.encode(reason, forKey: .promiseObstacle)
        }
    }

    private struct Room: Encodable {
        let status: RoomStatus

        private enum CodingKeys: CodingKey {
            case promiseObstacle
        }

        func encode(to encoder: any Encoder) throws {
            try status.encode(to: encoder)
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encodeIfPresent(status.promiseObstacle, forKey: .promiseObstacle)
        }
    }
}
