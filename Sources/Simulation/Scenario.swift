import TuttiGroupControl

/// A world to be: who is there, how they are connected, what happens when.
struct Scenario: Sendable {
    var name: String
    var summary: String
    /// The first leads, until it hands over.
    var rooms: [RoomPlan]
    /// Lengths of the items in the queue, seconds.
    var items: [Double] = [200]
    /// Rooms that the first start waits for; default: those that are there from the beginning.
    var roomsToWaitFor: Int?
    var script: [ScriptLine] = []
    /// What chance does to it besides, drawn from the seed; `nil`: nothing.
    var storm: Storm?
    var seconds: Double

    static let itemSampleRate = 48_000
}

/// One host with one card.
struct RoomPlan: Sendable {
    var name: String
    /// The card's crystal against the host's, ppm.
    var card: Double
    /// The host's crystal against true time, ppm; `nil`: drawn from ±20.
    var host: Double?
    var network = NetworkProfile.wired
    /// When the process starts, seconds.
    var startsAt = 0.0
}

struct ScriptLine: Sendable {
    var at: Double
    var step: Step

    enum Step: Sendable {
        case command(GroupCommand)
        /// The process ends at once; its host closes the connections.
        case kill(room: Int)
        /// The process of whoever leads ends at once.
        case killLeader
        /// The host vanishes from the network without a word.
        case powerOff(room: Int)
        case start(room: Int)
        /// This room's node leads from now on, by command.
        case handOver(to: Int)
        /// Passed over where the room leads, is not there, or has one already.
        case hardship(Hardship, room: Int, seconds: Double)
    }
}

/// What befalls a room for a while.
enum Hardship: Equatable, Sendable {
    /// The process stands still; the machine does not, and its kernel keeps what comes.
    case freeze
    /// The machine sleeps, and its clock with it.
    case sleep
    /// Getting ready takes so many times as long.
    case slowness(times: Double)
    /// What is fetched finds no room.
    case fullDisk
}

extension ScriptLine {
    static func at(_ seconds: Double, _ command: GroupCommand) -> ScriptLine {
        ScriptLine(at: seconds, step: .command(command))
    }

    static func at(_ seconds: Double, _ step: Step) -> ScriptLine {
        ScriptLine(at: seconds, step: step)
    }
}
