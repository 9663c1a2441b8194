/// How a simulated run went over time, for a picture.
public struct SimulationHistory: Equatable, Sendable {
    /// A figure of one room at one moment.
    public struct Point: Equatable, Sendable {
        /// Of the run.
        public var seconds: Double
        /// µs.
        public var value: Double
    }

    /// Who leads from a moment on; `nil`: nobody.
    public struct Reign: Equatable, Sendable {
        /// Of the run.
        public var seconds: Double
        /// Place among the rooms.
        public var room: Int?
    }

    /// Between two points of a room, in looks of 10 ms.
    static let every = 5

    /// In the order of the report's rooms.
    public var rooms: [String]
    /// Of each room: what is heard against the line; positive: late.
    public var errors: [[Point]]
    /// Of each room: its clock against the group's; positive: ahead.
    public var clocks: [[Point]]
    /// Between the earliest and the latest room on one line.
    public var skew: [Point] = []
    /// In order.
    public var reigns: [Reign] = []
    /// When lines began to sound.
    public var begins: [Double] = []

    init(rooms: [String]) {
        self.rooms = rooms
        errors = rooms.map { _ in [] }
        clocks = rooms.map { _ in [] }
    }
}
