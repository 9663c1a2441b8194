import TuttiChance

/// Something that goes wrong with a clock or a path in the middle of a run.
enum ClockEvent: String, Sendable, CaseIterable {
    case suspend
    case jump
    case detour
    case oneWayDetour = "one-way detour"
    case queue
    case thermalStep = "thermal step"
    case frequencyStep = "frequency step"
    case outage

    var summary: String {
        switch self {
        case .suspend: "the room slept for 5 s"
        case .jump: "the leader's clock jumps by 2 ms"
        case .detour: "300 µs more in both directions, for good"
        case .oneWayDetour: "300 µs more towards the room, for good"
        case .queue: "a queue of 50 ms towards the room, for 5 s"
        case .thermalStep: "a crystal warms up by 3 ppm with 40 s"
        case .frequencyStep: "a clock goes 5 ppm faster from now on"
        case .outage: "nothing arrives for 5 s"
        }
    }

    /// Applies the event to what a world is made of.
    func apply(at time: Double, to parts: inout ClockParts) {
        let forGood = time..<Double.infinity
        switch self {
        // Seen from the room, a clock that stood still is a leader that went ahead.
        case .suspend: parts.leaderJumps.append((time, 5))
        case .jump: parts.leaderJumps.append((time, 2e-3))
        case .detour:
            parts.network.toLeader.episodes.append(.init(times: forGood, delay: 300))
            parts.network.toRoom.episodes.append(.init(times: forGood, delay: 300))
        case .oneWayDetour:
            parts.network.toRoom.episodes.append(.init(times: forGood, delay: 300))
        case .queue:
            parts.network.toRoom.episodes.append(.init(times: time..<time + 5, delay: 50_000))
        case .thermalStep:
            parts.crystal.thermalSteps.append(.init(at: time, partsPerMillion: 3, time: 40))
        case .frequencyStep:
            parts.crystal.frequencySteps.append(.init(at: time, partsPerMillion: 5))
        case .outage:
            parts.network.toLeader.outages.append(time..<time + 5)
            parts.network.toRoom.outages.append(time..<time + 5)
        }
    }
}
