import TuttiGroupControl

extension Scenario {
    static let all: [Scenario] = [
        Scenario(
            name: "join", summary: "three rooms on a switch, cards +80, −120 and +20 ppm",
            rooms: threeRooms(.wired), seconds: 40),
        Scenario(
            name: "wifi", summary: "the same, two rooms on wifi",
            rooms: threeRooms(.wifi), seconds: 40),
        Scenario(
            name: "busy-wifi", summary: "the same, and the air is full",
            rooms: threeRooms(.busyWiFi), seconds: 40),
        Scenario(
            name: "pause", summary: "pause and play again, twice",
            rooms: threeRooms(.wired),
            script: [.at(5, .pause), .at(7, .play), .at(10, .pause), .at(10.5, .play)],
            seconds: 15),
        Scenario(
            name: "seek", summary: "seeks forwards, backwards and while paused",
            rooms: threeRooms(.wired),
            script: [
                .at(5, .seek(seconds: 60)), .at(8, .seek(seconds: 10.25)), .at(11, .pause),
                .at(11.5, .seek(seconds: 42)), .at(12, .play),
            ],
            seconds: 15),
        Scenario(
            name: "late-join", summary: "two rooms play, a third comes after ten seconds",
            rooms: threeRooms(.wired, lastStartsAt: 10), seconds: 20),
        Scenario(
            name: "restart", summary: "a room is killed and comes back two seconds later",
            rooms: threeRooms(.wired),
            script: [.at(8, .kill(room: 1)), .at(10, .start(room: 1))], seconds: 20),
        Scenario(
            name: "leader-lost",
            summary: "the leader loses power; another goes on, and all play to the end",
            rooms: threeRooms(.wired), items: [25],
            script: [.at(10, .powerOff(room: 0))], seconds: 30),
        Scenario(
            name: "succession",
            summary: "leaders are killed twice, and each time another goes on and is steered",
            rooms: threeRooms(.wired) + [RoomPlan(name: "den", card: -40)],
            script: [
                .at(10, .killLeader), .at(12, .pause), .at(13, .play), .at(18, .killLeader),
                .at(20, .seek(seconds: 60)),
            ],
            seconds: 26),
        Scenario(
            name: "two-leave",
            summary: "the leader and the room that would go on are lost in one instant",
            rooms: threeRooms(.wired) + [RoomPlan(name: "den", card: -40)],
            script: [.at(10, .powerOff(room: 0)), .at(10, .powerOff(room: 1)), .at(14, .pause)],
            seconds: 16),
        Scenario(
            name: "fresh-heir",
            summary:
                "the leader is lost while a room that was there first comes back, silent still",
            rooms: threeRooms(.wired),
            script: [
                .at(10, .kill(room: 1)), .at(11, .start(room: 1)), .at(11.05, .powerOff(room: 0)),
            ],
            seconds: 20),
        Scenario(
            name: "leader-returns", summary: "the leader is killed, and comes back as a room",
            rooms: threeRooms(.wired),
            script: [.at(10, .killLeader), .at(13, .start(room: 0)), .at(18, .seek(seconds: 90))],
            seconds: 24),
        Scenario(
            name: "handover", summary: "a second room takes over the lead, and gives it back",
            rooms: threeRooms(.wired),
            script: [.at(24, .handOver(to: 1)), .at(34, .handOver(to: 0))], seconds: 45),
        Scenario(
            name: "short-items", summary: "two hundred items of 30 ms, one after the other",
            rooms: threeRooms(.wired), items: Array(repeating: 0.03, count: 200), seconds: 12),
        Scenario(
            name: "crystals", summary: "cards of ±300 ppm on hosts of ±100 ppm",
            rooms: [
                RoomPlan(name: "attic", card: 300, host: 100),
                RoomPlan(name: "bath", card: -300, host: -100),
                RoomPlan(name: "cellar", card: 300, host: -100),
                RoomPlan(name: "den", card: -300, host: 100),
            ],
            seconds: 30),
        Scenario(
            name: "storm",
            summary: "hardships, commands and strangers of chance for 42 s, then calm",
            rooms: [
                RoomPlan(name: "attic", card: 80),
                RoomPlan(name: "bath", card: -120, network: .wifi),
                RoomPlan(name: "cellar", card: 20),
                RoomPlan(name: "den", card: -40, network: .wifi),
                RoomPlan(name: "entrance", card: 45),
            ],
            items: Array(repeating: 200, count: 12), storm: Storm(), seconds: 90),
        Scenario(
            name: "everything",
            summary: "mixed networks, three items, pause, seek, late room, restart, lost leader",
            rooms: [
                RoomPlan(name: "attic", card: 80),
                RoomPlan(name: "bath", card: -120, network: .wifi),
                RoomPlan(name: "cellar", card: 20),
                RoomPlan(name: "den", card: -300, host: 60, network: .wifi),
                RoomPlan(name: "entrance", card: 45, network: .busyWiFi, startsAt: 18),
            ],
            items: [30, 20, 60],
            script: [
                .at(16, .pause), .at(17, .play), .at(22, .seek(seconds: 25)),
                .at(31, .kill(room: 2)), .at(32, .start(room: 2)), .at(38, .next),
                .at(42, .volume(room: nil, percent: 40)), .at(47, .powerOff(room: 0)),
            ],
            seconds: 60),
    ]

    private static func threeRooms(
        _ network: NetworkProfile, lastStartsAt: Double = 0
    ) -> [RoomPlan] {
        [
            RoomPlan(name: "attic", card: 80),
            RoomPlan(name: "bath", card: -120, network: network),
            RoomPlan(name: "cellar", card: 20, network: network, startsAt: lastStartsAt),
        ]
    }
}
