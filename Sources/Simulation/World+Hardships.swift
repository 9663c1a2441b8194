import TuttiGroupControl
import TuttiTiming

// What befalls a room for a while, and how it gets over it.

extension World {
    func suffer(_ hardship: Hardship, at place: Int, for seconds: Double) {
        guard place != leaderPlace, rooms[place] != nil, !isSuffering(place) else { return }
        switch hardship {
        case .freeze, .sleep:
            hosts[place].frozenUntil = now + Nanoseconds(seconds: seconds)
            hosts[place].isAsleep = hardship == .sleep
        case .slowness(let times): hosts[place].slowness = times
        case .fullDisk: hosts[place].isDiskFull = true
        }
        queue.schedule(
            .relief(room: place, hardship, seconds: seconds),
            at: now + Nanoseconds(seconds: seconds))
    }

    private func isSuffering(_ place: Int) -> Bool {
        let host = hosts[place]
        return host.frozenUntil > now || host.slowness > 1 || host.isDiskFull
    }

    func relieve(_ place: Int, of hardship: Hardship, after seconds: Double) {
        switch hardship {
        case .freeze: break
        case .sleep:
            hosts[place].isAsleep = false
            hosts[place].crystal.stoodStill(for: Nanoseconds(seconds: seconds))
            // What is due by its clock is due that much later.
            if let room = rooms[place] { rearm(room) }
        case .slowness: hosts[place].slowness = 1
        case .fullDisk: hosts[place].isDiskFull = false
        }
    }

    private func rearm(_ room: SimulatedRoom) {
        room.machineAlarm = nil
        room.clockAlarm = nil
        step(room) { $0.advance(to: $1) }
        advanceClock(room)
    }

    /// Until when the process stands still that something happens to; `nil` where it does not. What comes
    /// over the network waits in the kernel, unless that sleeps too.
    func standstill(for event: Event) -> TrueInstant? {
        let place: Int
        switch event {
        case .roomTimer(let life), .clockTimer(let life), .period(let life), .upkeep(let life),
            .fetched(let life, _), .prepared(let life, _, _), .sights(let life, _, _),
            .linkUp(let life, _), .notice(let life, _), .requestStamp(let life, _, _),
            .replyRead(let life, _, _):
            place = life.room
        case .segment(let link, false, _), .linkDown(let link, false):
            place = links[link].room.room
        case .script, .look, .leaderTimer, .asked, .segment, .linkDown, .relief, .request,
            .leaderWakes, .reply, .replyStamp:
            return nil
        }
        let end = hosts[place].frozenUntil
        return end > now ? end : nil
    }
}
