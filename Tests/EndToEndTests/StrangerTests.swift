import Foundation
import Testing
import TuttiDeviceOutput
import TuttiRoom

@testable import TuttiSimulation
@testable import tutti

/// What somebody does who is on the network and in no household, or in another one. What counts is
/// what left the cards.
extension EndToEndTests {
    /// Every datagram once more, up to a second late, and once more with another byte in it: the clock
    /// does not move, no commit is done twice, and what was not let in is counted.
    @Test(.enabled(if: EmulatedNetwork.obstacle == nil, "\(EmulatedNetwork.obstacle ?? "")"))
    func `what is captured and sent again, or changed, moves nothing`() async throws {
        let recordings = try await onOwnThread {
            try Self.record(NoiseAsset(seconds: 40), hosts: 2, path: ClockPath.named("wired")) {
                house, file in
                let leader = "\(house.hosts[0].address):7430"
                try house.start(["lead", file, "--wait-for", "2"] + Self.room(0), on: 0)
                try house.start(["follow", "--leader", leader] + Self.room(1), on: 1)
                try Self.playing(house, leader, rooms: 2)
                sleep(2)
                try house.begin(.stranger)
                sleep(4)
                try Self.command(house, ["seek", "20"], leader)
                sleep(4)
                try Self.playing(house, leader, rooms: 2)
                let status = try house.tutti(["status", "--sync", "--leader", leader], on: 1)
                guard status.output.contains("datagrams dropped") else {
                    throw CommandError("nothing was dropped: \(status.output)")
                }
                try house.begin(.none)
                sleep(1)
                try house.end()
            }
        }
        let hearing = try #require(Hearing(recordings, names: Self.names), "a room never sounded")
        #expect(hearing.ranDry().isEmpty)
        checkStep(hearing)
    }

    /// Commands with another household's key and with none, a room of the same name, connections that
    /// say nothing or nonsense, handshakes without end, and floods on each port.
    @Test(.enabled(if: canHouse, obstacle))
    func `a stranger changes nothing and disturbs nothing`() async throws {
        let recordings = try await onOwnThread {
            try Self.record(NoiseAsset(seconds: 60), hosts: 3, rooms: 0...1) { house, file in
                let leader = "\(house.hosts[0].address):7430"
                try house.start(["follow", "--leader", leader] + Self.room(1), on: 1)
                try house.start(["lead", file, "--wait-for", "2"] + Self.room(0), on: 0)
                try Self.playing(house, leader, rooms: 2)
                sleep(2)
                let stranger = "\(house.folder.path)/stranger"
                try HouseholdAccess.prepare([(stranger, "bedroom")])
                // At the leader and at the room, whose door says who leads.
                for host in house.hosts[0...1] {
                    for script in [Self.silence, Self.nonsense, Self.flood] {
                        try house.start(
                            program: ["perl", "-e", script, host.address, "7430"], on: 2)
                    }
                }
                for command in [
                    ["pause"], ["stop"], ["seek", "1"], ["next"], ["volume", "0"],
                    ["offset", "bedroom", "500000"], ["status"], ["queue"], ["add", file],
                    ["household", "accept", "000000"], ["handover", "bedroom"],
                ] {
                    for key in [["--state-folder", stranger], ["--open"]] {
                        let result = try house.tutti(command + key + ["--leader", leader], on: 2)
                        guard result.status == 1, !result.output.contains("noise") else {
                            throw CommandError("\(command) of a stranger: \(result.output)")
                        }
                    }
                }
                // A room that says that it is another one.
                try house.start(
                    program: [
                        House.program, "follow", "--leader", leader, "--name", "bedroom",
                        "--output", "virtual", "--no-avahi", "--state-folder", stranger,
                    ], on: 2)
                sleep(3)
                guard try Self.states(house, leader) == ["playing", "playing"] else {
                    throw CommandError("the group is not as it was")
                }
                try Self.command(house, ["seek", "30"], leader)
                sleep(3)
                try house.endOthers()
                try house.end()
            }
        }
        let hearing = try #require(Hearing(recordings, names: Self.names), "a room never sounded")
        #expect(hearing.ranDry().isEmpty)
        checkStep(hearing)
    }

    /// Two rooms sounded in step from the first common sound to the last; a seek is a short dip.
    private func checkStep(_ hearing: Hearing) {
        let begin = (hearing.audible.map(\.lowerBound).max() ?? 0) + Self.settled
        let end = (hearing.audible.map(\.upperBound).min() ?? 0) - Self.settled
        let skews = stride(from: begin, to: end, by: 0.4e9).map {
            hearing.skew(0, 1, at: $0).map(abs) ?? .infinity
        }
        #expect(skews.count >= 20)
        // The window in which they seek may hold two places.
        let steady = skews.sorted().dropLast(1)
        #expect((steady.last ?? .infinity) < Self.period / 20, "\(skews) µs")
        #expect(hearing.gaps.map(\.count) == [0, 0], "\(hearing.gaps)")
    }

    /// 200 connections that say a byte now and then, or nothing.
    private static let silence = """
        use Socket; my ($host, $port) = @ARGV; my @open; $SIG{PIPE} = 'IGNORE';
        while (1) {
          if (@open < 200) {
            socket(my $s, PF_INET, SOCK_STREAM, 0);
            push @open, $s if connect($s, sockaddr_in($port, inet_aton($host)));
          }
          my $s = $open[int(rand(@open))];
          syswrite($s, "\\x16") if $s && rand() < 0.5;
          select(undef, undef, undef, 0.01);
        }
        """

    /// Connections that begin as TLS, as HTTP and as a link of an open group, and go on with chance.
    private static let nonsense = """
        use Socket; my ($host, $port) = @ARGV; $SIG{PIPE} = 'IGNORE';
        my @begin = ("\\x16\\x03\\x01\\x02\\x00\\x01\\x00\\x01\\xfc", "GET /asset/", "\\0\\0\\0\\x10");
        while (1) {
          socket(my $s, PF_INET, SOCK_STREAM, 0);
          if (connect($s, sockaddr_in($port, inet_aton($host)))) {
            my $text = $begin[int(rand(@begin))];
            $text .= chr(int(rand(256))) for 1..512;
            syswrite($s, $text);
          }
          close($s);
          select(undef, undef, undef, 0.005);
        }
        """

    /// Thousands of datagrams a second: of chance, and such as begin like ours.
    private static let flood = """
        use Socket; my ($host, $port) = @ARGV;
        socket(my $s, PF_INET, SOCK_DGRAM, 0); my $to = sockaddr_in($port, inet_aton($host));
        my @texts = map { my $t = ''; $t .= chr(int(rand(256))) for 1..96 + $_; $t } 0..63;
        push @texts, map { "\\xd1\\x81" . substr($_, 2) } @texts;
        while (1) {
          send($s, $texts[int(rand(@texts))], 0, $to) for 1..20;
          select(undef, undef, undef, 0.002);
        }
        """
}
