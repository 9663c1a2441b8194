import Foundation
import Glibc
import Testing
import TuttiChance
import TuttiDeviceOutput
import TuttiLinuxHost
import TuttiTiming

@testable import TuttiSimulation
@testable import tutti

/// A house under commands of chance, judged by what left its cards and never by what it reports.
@Suite(.timeLimit(.minutes(10))) struct CommandsTests {
    /// What a person did last, and what must be heard of it some time later.
    struct Step: Sendable {
        enum Expected: Sendable {
            case silence
            /// The item runs from there, since some instant after the command.
            case begun(item: Int, seconds: Double)
            /// It runs on as before the command, or as before the pause.
            case goesOn
        }
        var words: [String]
        var expected: Expected
        var sent: LocalInstant
        /// When it is judged: some seconds later, and before the next.
        var judged: LocalInstant
    }

    /// One process of a room, and what its card played.
    struct Stay: Sendable {
        var card: Int
        /// From here on it must sound with the others.
        var from: LocalInstant
        var until: LocalInstant
    }

    struct Session: Sendable {
        var steps: [Step] = []
        var stays: [Stay] = []
        var recordings: [CardRecording] = []
        /// What any room said of a line that it does not play.
        var alarms: [String] = []
        var logs = ""
    }

    private static let itemSeconds = 30
    private static let items = 3
    private static let stepCount = 26
    /// The lead goes to the other of the two rooms that stay; back and forth, between commands
    /// and edits.
    private static let handovers = [3, 11, 16, 21]

    @Test(.enabled(if: EndToEndTests.canHouse, EndToEndTests.obstacle), arguments: [4 as UInt64])
    func `under commands of chance every room plays what was asked for`(seed: UInt64) async throws {
        let noise = PlaceNoise(count: Self.items, seconds: Self.itemSeconds, seed: seed)
        let session = try await onOwnThread {
            try undisturbed { try Self.perform(noise, seed: seed) }
        }
        let judge = try #require(Judge(session, noise), "no card recorded anything")
        var seen: [String] = []
        var before: Judge.Place?
        for step in session.steps {
            let heard = session.stays.indices.filter {
                session.stays[$0].from <= step.judged && step.judged <= session.stays[$0].until
            }.map { (stay: $0, place: judge.place(of: $0, at: step.judged)) }
            let text =
                "\(step.words) at \(judge.seconds(step.judged)) s: "
                + heard.map { "\($0.stay): \($0.place.map { "\($0)" } ?? "silence")" }
                .joined(separator: ", ")
            seen.append(text)
            #expect(heard.count >= 2, "\(text)")
            if case .silence = step.expected {
                #expect(heard.allSatisfy { judge.isSilent($0.stay, at: step.judged) }, "\(text)")
                continue
            }
            guard let first = heard.first?.place, heard.allSatisfy({ $0.place != nil }) else {
                Issue.record("silence, or what is no place of any item: \(text)")
                continue
            }
            for (_, place) in heard {
                guard let place else { continue }
                #expect(place.item == first.item, "\(text)")
                // All at one place, to a fraction of what is an echo.
                #expect(abs(place.seconds - first.seconds) < 500e-6, "\(text)")
            }
            let (begun, base): (ClosedRange<Double>, Judge.Place)
            switch step.expected {
            case .silence: continue
            case .begun(let item, let seconds):
                base = Judge.Place(item: item, seconds: seconds)
                // From the command on, and not much later.
                let sent = judge.seconds(step.sent)
                begun = sent...(sent + Self.mostDelay)
            case .goesOn:
                guard let earlier = before else { continue }
                base = Judge.Place(item: earlier.item, seconds: earlier.seconds)
                let since = earlier.at + judge.silence(from: earlier.at, to: step.judged)
                begun = since - 0.02...since + 0.02
            }
            let start = judge.seconds(step.judged) - judge.distance(from: base, to: first)
            #expect(
                begun.contains(start),
                "expected \(base) since \(begun), heard since \(start): \(text)")
            before = Judge.Place(
                item: first.item, seconds: first.seconds, at: judge.seconds(step.judged))
        }
        #expect(session.alarms.isEmpty, "\(session.alarms)\n\(session.logs)")
        #expect(session.steps.count == Self.stepCount)
        // At least one room came back while the others played.
        #expect(session.stays.count == 4, "\(seen.joined(separator: "\n"))")
    }

    /// From a command to its sound, with all that a busy machine takes; a step waits longer.
    private static let mostDelay = 3.0

    // MARK: - The house

    private static func perform(_ noise: PlaceNoise, seed: UInt64) throws -> Session {
        let house = try House(hosts: 3, cards: EndToEndTests.cards([80, -120, 20, -60]))
        let files = (0..<items).map { "\(house.folder.path)/item\($0).wav" }
        for (file, item) in zip(files, noise.items) { try item.write(to: file) }
        var session = Session()
        do {
            try perform(house, files, seed, &session)
        } catch {
            throw CommandError("\(error)\n\(house.logs)")
        }
        session.logs = house.logs
        session.recordings = try session.stays.map {
            try CardRecording.load(path: "\(house.folder.path)/card\($0.card)")
        }
        return session
    }

    private static func perform(
        _ house: House, _ files: [String], _ seed: UInt64, _ session: inout Session
    ) throws {
        func address(_ host: Int) -> String { "\(house.hosts[host].address):7430" }
        // Who begins to lead knows who leads later.
        let leader = address(0)
        func follow(_ name: String, card: Int, on host: Int) throws -> Int {
            try house.start(
                ["follow", "--leader", leader, "--name", name, "--output", "alsa:card\(card)"],
                on: host)
            return house.roomCount - 1
        }
        var words: [String] = []
        var sent = HostClock.now()
        var expected = Step.Expected.begun(item: 0, seconds: 0)
        _ = try follow("bedroom", card: 1, on: 1)
        let bath = try follow("bath", card: 2, on: 2)
        try house.start(
            ["lead"] + files + [
                "--wait-for", "3", "--loop", "--name", "kitchen", "--output", "alsa:card0",
            ], on: 0)
        try settle(house, leader, rooms: 3, phase: "playing", &session)
        let begin = HostClock.now()
        // It is told to play when its rooms are ready, just before they say that they do.
        sent = begin - .seconds(2)
        for card in 0...2 {
            session.stays.append(Stay(card: card, from: begin, until: .init(nanoseconds: .max)))
        }
        var random = SplitMix64(seed: seed)
        var rooms = 3
        var model = Model(files: files, begun: begin)
        for number in 0..<stepCount {
            usleep(1_700_000 + UInt32(random.next() % 300_000))
            session.steps.append(
                Step(words: words, expected: expected, sent: sent, judged: HostClock.now()))
            // The window around what is judged ends before the next command.
            usleep(500_000)
            guard number < stepCount - 1 else { break }
            if number == 5 {
                session.stays[2].until = HostClock.now() - .milliseconds(100)
                try house.stop(room: bath)
                rooms -= 1
            }
            if number == 8 {
                _ = try follow("bath", card: 3, on: 2)
                rooms += 1
            }
            sent = HostClock.now()
            let asked = address(model.leads)
            (words, expected) =
                handovers.contains(number)
                ? model.handOver(at: sent) : model.next(at: sent, &random)
            // Always the same machine: it has the leader on itself, or sends it the file.
            let result = try house.tutti(words + ["--leader", asked], on: 0)
            guard result.status == 0 else { throw CommandError("\(words): \(result.output)") }
            try settle(
                house, address(model.leads), rooms: rooms, phase: model.phase, &session)
            if number == 8 {
                let joined = HostClock.now() + .seconds(1)
                session.stays.append(
                    Stay(card: 3, from: joined, until: .init(nanoseconds: .max)))
            }
        }
        try house.end()
    }

    /// A session as whoever commands it knows it.
    private struct Model {
        let files: [String]
        var phase = "playing"
        /// The host whose room leads.
        var leads = 0
        /// Items in their order; each entry is told apart by its number.
        var queue: [(entry: Int, item: Int)]
        var current = 0
        var entries: Int
        /// Seconds of the item when it began to run, and when that was.
        var begun: (seconds: Double, at: LocalInstant)

        init(files: [String], begun: LocalInstant) {
            self.files = files
            queue = files.indices.map { ($0, $0) }
            entries = files.count
            self.begun = (0, begun)
        }

        private var place: Int { queue.firstIndex { $0.entry == current } ?? 0 }

        private mutating func begin(at place: Int, _ now: LocalInstant) -> Step.Expected {
            current = queue[place].entry
            begun = (0, now)
            return .begun(item: queue[place].item, seconds: 0)
        }

        /// The lead goes to the other room that is there all the time. A group that does not play is
        /// made to.
        mutating func handOver(at now: LocalInstant) -> ([String], Step.Expected) {
            switch phase {
            case "playing":
                leads = 1 - leads
                return (["handover", ["kitchen", "bedroom"][leads]], .goesOn)
            case "paused":
                phase = "playing"
                return (["play"], .goesOn)
            default:
                phase = "playing"
                return (["play"], begin(at: place, now))
            }
        }

        /// A command of chance, and what it does.
        mutating func next(
            at now: LocalInstant, _ random: inout SplitMix64
        ) -> ([String], Step.Expected) {
            func below(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }
            let seconds = below(10)
            let choice = below(15)
            // Nothing ends by itself here: what follows is another test's business.
            let isLate = begun.seconds + (now - begun.at).seconds > 20
            switch (phase, isLate ? 0 : choice) {
            case ("playing", 0...2):
                begun = (Double(seconds), now)
                return (
                    ["seek", "\(seconds)"],
                    .begun(item: queue[place].item, seconds: Double(seconds))
                )
            case ("playing", 3...4): return (["next"], begin(at: (place + 1) % queue.count, now))
            case ("playing", 5...6):
                phase = "paused"
                return (["pause"], .silence)
            case ("playing", 7):
                phase = "stopped"
                return (["stop"], .silence)
            case ("playing", 8...9):
                let (from, to) = (below(queue.count), below(queue.count))
                queue.insert(queue.remove(at: from), at: to)
                return (["queue", "move", "\(from + 1)", "\(to + 1)"], .goesOn)
            case ("playing", 10):
                let item = below(files.count)
                queue.insert((entries, item), at: place + 1)
                entries += 1
                return (["add", files[item], "--next"], .goesOn)
            case ("playing", 11):
                let target = below(queue.count)
                return (["queue", "play", "\(target + 1)"], begin(at: target, now))
            case ("playing", 12) where queue.count > 2:
                let gone = (place + 1 + below(queue.count - 1)) % queue.count
                queue.remove(at: gone)
                return (["queue", "remove", "\(gone + 1)"], .goesOn)
            case ("playing", 13) where queue.count > 1:
                // What plays goes, and the next begins.
                let gone = place
                queue.remove(at: gone)
                return (
                    ["queue", "remove", "\(gone + 1)"], begin(at: gone % queue.count, now)
                )
            case ("playing", _): return (["play"], .goesOn)
            case ("paused", _):
                phase = "playing"
                return (["play"], .goesOn)
            default:
                phase = "playing"
                return (["play"], begin(at: place, now))
            }
        }
    }

    /// Waits until the leader says that it is so, and notes what rooms complain of.
    private static func settle(
        _ house: House, _ leader: String, rooms: Int, phase: String, _ session: inout Session
    ) throws {
        struct Status: Decodable {
            struct Sync: Decodable {
                var line: String
                var lineAlarm: Bool
            }
            struct Room: Decodable {
                var name: String
                var state: String
                var sync: Sync?
            }
            var phase: String
            var rooms: [Room]
        }
        var alarms: [String] = []
        try until("\(rooms) rooms, \(phase)", seconds: 30) {
            let result = try house.tutti(["status", "--json", "--leader", leader], on: 0)
            guard result.status == 0 else { return false }
            let status = try JSONDecoder().decode(Status.self, from: Data(result.output.utf8))
            alarms += status.rooms.filter { $0.sync?.lineAlarm == true }
                .map { "\($0.name) \($0.sync?.line ?? "")" }
            return status.phase == phase && status.rooms.count == rooms
                && (phase != "playing" || status.rooms.allSatisfy { $0.state == "playing" })
        }
        session.alarms += alarms
    }

    // MARK: - What was heard

    struct Judge {
        struct Place: CustomStringConvertible {
            var item: Int
            var seconds: Double
            /// Since the first sound of all.
            var at = 0.0

            var description: String { "item \(item) at \(seconds.text(4)) s" }
        }

        private let hearing: Hearing
        private let noise: PlaceNoise

        init?(_ session: Session, _ noise: PlaceNoise) {
            let names = session.stays.map { "card\($0.card)" }
            guard let hearing = Hearing(session.recordings, names: names) else { return nil }
            self.hearing = hearing
            self.noise = noise
        }

        func seconds(_ instant: LocalInstant) -> Double {
            Double((instant - hearing.base).count) * 1e-9
        }

        private func sound(_ room: Int, at time: Double) -> [Float]? {
            let rate = Double(PlaceNoise.sampleRate)
            guard
                let segment = hearing.takes[room].segments.first(where: {
                    $0.start <= time && time <= $0.end
                })
            else { return nil }
            let first = Int(segment.frame(at: time - Double(PlaceNoise.window) / 2 / rate * 1e9))
            let frames = first..<first + PlaceNoise.window
            guard frames.lowerBound >= 0, frames.upperBound <= segment.samples.count else {
                return nil
            }
            return Array(segment.samples[frames])
        }

        func isSilent(_ room: Int, at instant: LocalInstant) -> Bool {
            guard let sound = sound(room, at: Double((instant - hearing.base).count)) else {
                return false
            }
            return sound.allSatisfy { abs($0) <= Take.audible }
        }

        /// The item and the place that left the card at an instant; `nil`: silence, or none.
        func place(of room: Int, at instant: LocalInstant) -> Place? {
            let time = Double((instant - hearing.base).count)
            guard let sound = sound(room, at: time), let found = noise.place(of: sound) else {
                return nil
            }
            let asset = noise.items[found.item]
            let start = time - found.frame / Double(asset.sampleRate) * 1e9
            guard let skew = hearing.skew(room, against: asset, from: start, at: time) else {
                return nil
            }
            let seconds = found.frame / Double(asset.sampleRate) - skew * 1e-6
            return Place(item: found.item, seconds: seconds, at: time * 1e-9)
        }

        /// From one place to a later one, seconds of playing.
        func distance(from: Place, to: Place) -> Double {
            let ahead = (to.item - from.item + CommandsTests.items) % CommandsTests.items
            return Double(ahead * CommandsTests.itemSeconds) + to.seconds - from.seconds
        }

        /// Of the first room.
        func silence(from: Double, to instant: LocalInstant) -> Double {
            let to = seconds(instant)
            return hearing.gaps[0].filter {
                $0.lowerBound * 1e-9 > from && $0.upperBound * 1e-9 < to
            }
            .reduce(0) { $0 + ($1.upperBound - $1.lowerBound) * 1e-9 }
        }
    }
}
