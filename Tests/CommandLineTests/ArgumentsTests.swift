import ArgumentParser
import Testing
import TuttiGroupControl
import TuttiRoom

@testable import tutti

/// What the parser makes of the words of a command line, before anything runs.
@Suite struct ArgumentsTests {
    private func complaint(_ words: [String]) -> String {
        do {
            _ = try Tutti.parseAsRoot(words)
            return ""
        } catch {
            return Tutti.fullMessage(for: error)
        }
    }

    @Test(arguments: [
        ["simulate", "join", "--seed"], ["simulate", "clocks", "--seeds"],
        ["simulate", "cards", "--seeds"], ["simulate", "cards", "--seconds"],
        ["demo", "--rooms"], ["demo", "--seconds"], ["bench", "--seconds"],
    ])
    func `a negative number of an option is refused as such`(words: [String]) {
        let text = complaint(words + ["-1"])
        #expect(text.contains("-1") && !text.contains("Missing value"), "\(text)")
        // What is missing is still called so.
        #expect(complaint(words).contains("Missing value"))
    }

    @Test(arguments: [
        (["bedroom", "soon"], "a latency offset is microseconds, such as"),
        (["bedroom", "600000"], "a latency offset is −500000 to 500000 µs, not 600000"),
        (["bedroom"], "write tutti offset ROOM 1500"),
    ])
    func `an offset that cannot be is answered in a sentence`(words: [String], text: String) {
        let answer = complaint(["offset"] + words)
        #expect(answer.contains(text), "\(answer)")
        // Both words are needed, and the usage says so.
        #expect(answer.contains("tutti offset <room> <µs[±µs]>"), "\(answer)")
    }

    @Test func `an invite by an address names one that others reach`() {
        let here = HostPort(host: "127.0.0.1", port: 7431)
        #expect(HouseholdInviting.option(for: here, at: "10.0.0.5") == " --leader 10.0.0.5:7431")
        #expect(HouseholdInviting.option(for: here, at: nil) == " --leader 127.0.0.1:7431")
        let there = HostPort(host: "nas.local", port: 7430)
        #expect(HouseholdInviting.option(for: there, at: "10.0.0.5") == " --leader nas.local:7430")
    }

    @Test func `an offset takes a negative number and an uncertainty`() throws {
        for (text, offset) in [
            ("-300", try LatencyOffset(microseconds: -300)),
            ("1500±50", try LatencyOffset(microseconds: 1_500, uncertaintyMicroseconds: 50)),
        ] {
            let command = try Tutti.parseAsRoot(["offset", "bedroom", text])
            #expect(try (command as? Offset)?.parsed().offset == offset)
        }
    }

    @Test func `a volume and a seek take relative forms where a flag could stand`() throws {
        let bedroom = try RoomID("bedroom")
        for (words, command) in [
            (["volume", "bedroom", "+5"], GroupCommand.volumeBy(room: bedroom, percent: 5)),
            (["volume", "bedroom", "-5"], .volumeBy(room: bedroom, percent: -5)),
            (["volume", "-5", "--leader", "host"], .volumeBy(room: nil, percent: -5)),
            (["volume", "40"], .volume(room: nil, percent: 40)),
        ] {
            #expect(try (Tutti.parseAsRoot(words) as? Volume)?.parsed() == command)
        }
        for (word, command) in [
            ("+10", GroupCommand.seekBy(seconds: 10)), ("-1:30", .seekBy(seconds: -90)),
            ("50%", .seekTo(share: 0.5)), ("50 %", .seekTo(share: 0.5)),
            (".5", .seek(seconds: 0.5)), ("83.5", .seek(seconds: 83.5)),
        ] {
            #expect(try (Tutti.parseAsRoot(["seek", word]) as? Seek)?.parsed() == command)
        }
        for (word, rate) in [("1.25", 1.25), ("1", 1), ("0.25", 0.25)] {
            #expect(try (Tutti.parseAsRoot(["rate", word]) as? Rate)?.parsed() == .rate(rate))
        }
    }

    @Test(arguments: [
        (["volume", "loud"], "is no volume"), (["volume", "a", "b", "3"], "is no volume"),
        (["volume", "--ledaer", "x", "3"], "--ledaer"), (["seek", "soon"], "is no place"),
        (["seek"], "is no place"), (["volume"], "how loud"),
        (["rate", "5"], "is no rate"), (["rate", "quick"], "is no rate"),
    ])
    func `words that say nothing are answered with what may stand there`(
        words: [String], text: String
    ) {
        let answer = complaint(words)
        #expect(answer.contains(text), "\(answer)")
    }

    @Test(arguments: [
        (["stauts"], "did you mean \"status\"?"), (["help", "nonsense"], "\"nonsense\""),
        (["paly"], "did you mean \"play\"?"), (["vol", "3"], "did you mean \"volume\"?"),
        (["help", "sek"], "did you mean \"seek\"?"),
        (["queue", "shufle"], "did you mean \"shuffle\"?"),
        (["queue", "repat", "all"], "did you mean \"repeat\"?"),
        (["help", "queue", "nonsense"], "\"nonsense\""), (["help", "lead", "x"], "no commands"),
        // Where a command that takes no words is meant without its name.
        (["queue", "foo"], "no command \"foo\" (tutti help queue lists them)"),
        (["household", "482913"], "tutti help household"),
        (["scene", "evening"], "tutti help scene"),
        (["help", "simulate", "clcks"], "did you mean \"clocks\"?"),
    ])
    func `a command that there is not is named, and the nearest one`(
        words: [String], text: String
    ) {
        let complaint = unknownCommand(in: ["tutti"] + words)
        #expect(complaint?.contains(text) == true, "\(complaint ?? "none")")
    }

    @Test(arguments: [
        [], ["--help"], ["help"], ["help", "lead"], ["help", "simulate", "clocks"],
        ["simulate", "join", "--seed", "3"], ["lead", "song.flac"], ["status", "--watch"],
        ["queue"], ["queue", "--json"], ["queue", "add", "shufle"], ["simulate", "--seed", "3"],
    ])
    func `a command that there is is left to the parser`(words: [String]) {
        #expect(unknownCommand(in: ["tutti"] + words) == nil)
    }

    @Test(arguments: [
        ["queue", "remove", "-1"], ["queue", "remove", "2", "0"], ["queue", "play", "-1"],
        ["queue", "play", "0"], ["queue", "move", "-1", "2"], ["queue", "move", "1", "0"],
        ["queue", "add", "x.flac", "--at", "-1"], ["queue", "remove", "first"],
    ])
    func `what is no position is answered with what positions are`(words: [String]) {
        let answer = complaint(words)
        #expect(
            answer.contains("is no position: they go from 1 to the number of items"), "\(answer)")
    }

    @Test(arguments: [
        (["queue", "remove", "--laeder", "x", "1"], "there is no option \"--laeder\""),
        (["queue", "remove"], "Missing expected argument"),
        (["queue", "move", "1"], "tutti queue move 7 2"),
        (["queue", "play", "1", "2"], "tutti queue play 4"),
        (["add", "http://"], "names no machine"),
        (["add", "a.flac", "https:///x"], "names no machine"),
    ])
    func `what a queue cannot do is said in a sentence`(words: [String], text: String) {
        let answer = complaint(words)
        #expect(answer.contains(text), "\(answer)")
    }

    @Test func `positions are read beside options`() throws {
        let remove = try Tutti.parseAsRoot(["queue", "remove", "3", "--leader", "host", "5"])
        #expect((remove as? QueueRemove)?.positions == ["3", "5"])
        let all = try Tutti.parseAsRoot(["queue", "remove", "all"])
        #expect((all as? QueueRemove)?.positions == ["all"])
        let move = try Tutti.parseAsRoot(["queue", "move", "7", "2", "--group", "attic"])
        #expect((move as? QueueMove)?.positions == ["7", "2"])
    }
}
