public import Timing

/// One room's side of the group: its link, its preparations and the lines it plays.
public struct RoomMachine: Sendable {
    public let configuration: RoomConfiguration

    public init(_ configuration: RoomConfiguration, at now: LocalInstant) {
        self.configuration = configuration
    }

    public mutating func receive(_ input: RoomInput, at now: LocalInstant) -> [RoomEffect] { [] }

    public mutating func advance(to now: LocalInstant) -> [RoomEffect] { [] }

    /// When ``advance(to:)`` is due next.
    public var nextDeadline: LocalInstant? { nil }
}
