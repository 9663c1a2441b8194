import Foundation
import Testing
import TuttiDeviceOutput
import TuttiGroupControl
import TuttiTiming

@testable import tutti

@Suite struct SettingsTests {
    static func load(
        flags: [SettingKey: String] = [:], environment: [String: String] = [:], file: String? = nil
    ) async throws -> Settings {
        var path: String?
        if let file {
            let url = FileManager.default.temporaryDirectory
                .appending(path: "tutti-settings-\(UUID().uuidString).yaml")
            try file.write(to: url, atomically: true, encoding: .utf8)
            path = url.path
        }
        defer { if let path { try? FileManager.default.removeItem(atPath: path) } }
        // A home of its own: the tester's settings must not matter.
        let home = ["XDG_CONFIG_HOME": "/nonexistent", "XDG_CACHE_HOME": "/nonexistent/cache"]
        return try await Settings.load(
            flags: flags, file: path, environment: environment.merging(home) { own, _ in own })
    }

    static func complaint(
        flags: [SettingKey: String] = [:], environment: [String: String] = [:], file: String? = nil
    ) async throws -> SettingsError {
        try #require(
            await #expect(throws: SettingsError.self) {
                try await load(flags: flags, environment: environment, file: file)
            })
    }

    @Test func `an interface for Avahi is not used without it, and that is said once it is meant`()
        async throws
    {
        for (flags, file, isSaid) in [
            ([.interface: "eth7", .avahi: "false"], nil, true),
            ([.avahi: "false"], "interface: eth7\n", false),
            ([.interface: "eth7"], "avahi: false\n", true),
            ([:], "interface: eth7\navahi: false\n", true), ([.interface: "eth7"], nil, false),
        ] as [([SettingKey: String], String?, Bool)] {
            let warnings = try await Self.load(flags: flags, file: file).warnings
            #expect(warnings.contains { $0.contains("eth7 is not used") } == isSaid)
        }
    }

    @Test func `a web address is no leader, and a port has its range`() async throws {
        let web = try await Self.complaint(flags: [.leader: "http://nas.local:7430"])
        #expect(web.description.contains("it is a web address; allowed: HOST, HOST:PORT"))
        let port = try await Self.complaint(flags: [.leader: "nas.local:99999"])
        #expect(port.description.contains("1 to 65535"))
    }

    @Test func `flags win over the environment, that over the file, and that over the default`()
        async throws
    {
        let file = "port: 1003\nbuffer-ms: 103\ncache:\n  limit-mb: 503\n"
        let environment = ["TUTTI_PORT": "1002", "TUTTI_BUFFER_MS": "102"]
        let all = try await Self.load(
            flags: [.port: "1001"], environment: environment, file: file)
        #expect(all.port == 1001)
        #expect(all.bufferMilliseconds == 102)
        #expect(all.cacheLimitMegabytes == 503)
        #expect(all.sampleRate == nil)
        #expect(try await Self.load().port == 7430)
    }

    @Test func `an impossible value names place, key and what is allowed`() async throws {
        let inFile = try await Self.complaint(file: "port: 70000\n")
        #expect(inFile.description.contains(".yaml: key port: \"70000\""))
        #expect(inFile.description.contains("0 (any free port) to 65535"))
        #expect(!inFile.isUsage)
        let inVariable = try await Self.complaint(environment: ["TUTTI_CACHE_LIMIT_MB": "0"])
        #expect(inVariable.description.contains("environment variable TUTTI_CACHE_LIMIT_MB: \"0\""))
        let inFlag = try await Self.complaint(flags: [.output: "tape"])
        #expect(inFlag.description.contains("--output: \"tape\""))
        #expect(inFlag.isUsage)
    }

    @Test func `an impossible value is an error even where a flag wins over it`() async throws {
        let error = try await Self.complaint(
            flags: [.port: "1001"], environment: ["TUTTI_PORT": "1002"], file: "port: 70000\n")
        #expect(error.description.contains(".yaml: key port: \"70000\""))
        #expect(error.description.contains("0 (any free port) to 65535"))
        #expect(!error.isUsage)
    }

    @Test func `what a room remembers is where systemd, the user or the system keeps such things`()
    {
        let all = ["STATE_DIRECTORY": "/s:/t", "XDG_STATE_HOME": "/x", "HOME": "/h"]
        #expect(Settings.usualStateFolder(all) == "/s")
        #expect(Settings.usualStateFolder(["XDG_STATE_HOME": "/x", "HOME": "/h"]) == "/x/tutti")
        #expect(Settings.usualStateFolder(["HOME": "/h"]) == "/h/.local/state/tutti")
        #expect(Settings.usualStateFolder([:]) == "/var/lib/tutti")
    }

    @Test func `a card follows its items unless a rate is given, and is kept unless it is not`()
        async throws
    {
        func manner(_ file: String) async throws -> OutputManner {
            try await Self.load(file: file).outputManner
        }
        #expect(try await manner("") == OutputManner(followsItems: true))
        #expect(try await manner("sample-rate: auto\n") == OutputManner(followsItems: true))
        #expect(try await manner("sample-rate: 44100\n") == OutputManner())
        #expect(
            try await manner("output-idle: release\n")
                == OutputManner(followsItems: true, releasesWhenIdle: true))
        let error = try await Self.complaint(file: "sample-rate: native\n")
        #expect(error.description.contains("auto, or a whole number of hertz"))
    }

    @Test func `an offset that is not given is not zero`() async throws {
        #expect(try await Self.load().latencyOffset == nil)
        #expect(try await Self.load(file: "latency-offset-us: 0\n").latencyOffset == .zero)
        let measured = try await Self.load(file: "latency-offset-us: -1500±20\n").latencyOffset
        #expect(measured?.uncertainty == .microseconds(20))
        let error = try await Self.complaint(flags: [.syncTarget: "0"])
        #expect(error.description.contains("--sync-target-us"))
    }

    @Test(arguments: ["stereo", "left", "right", "mono"])
    func `the part of the asset that sounds here has a name`(part: String) async throws {
        let settings = try await Self.load(file: "channel: \(part)\n")
        #expect("\(settings.channel)" == part)
        let error = try await Self.complaint(flags: [.channel: part.uppercased()])
        #expect(error.description.contains("--channel"))
        #expect(error.description.contains("stereo, left, right or mono"))
    }

    @Test(arguments: [
        "prot: 7430\n", "cache:\n  size: 5\n", "cache: 5\n", "Name: kitchen\n",
    ])
    func `an unknown key is an error that lists the known ones`(file: String) async throws {
        let error = try await Self.complaint(file: file)
        #expect(error.description.contains("unknown key"))
        #expect(error.description.contains("latency-offset-us"))
    }

    @Test func `what containers say of a service named tutti is no setting`() async throws {
        let linked = [
            "TUTTI_PORT": "tcp://10.0.0.7:7430", "TUTTI_PORT_7430_TCP": "tcp://10.0.0.7:7430",
            "TUTTI_PORT_7430_TCP_ADDR": "10.0.0.7", "TUTTI_PORT_7430_TCP_PORT": "7430",
            "TUTTI_PORT_7430_UDP_PROTO": "udp", "TUTTI_SERVICE_HOST": "10.0.0.7",
            "TUTTI_SERVICE_PORT": "7430", "TUTTI_SERVICE_PORT_CONTROL": "7430",
            "TUTTI_NAME": "/player/tutti", "TUTTI_ENV_HOME": "/root",
        ]
        let settings = try await Settings.load(flags: [:], file: nil, environment: linked)
        #expect(settings.port == 7_430)
        #expect(settings.name != "/player/tutti")
        // What has the name of a setting is said, once each; the others nobody takes for one.
        #expect(settings.warnings.count == 2)
        for (name, value) in [
            ("TUTTI_PORT", "tcp://10.0.0.7:7430"), ("TUTTI_NAME", "/player/tutti"),
        ] {
            let warning = settings.warnings.first { $0.contains("environment variable \(name)") }
            #expect(warning?.contains("\"\(value)\" is ignored") == true)
            #expect(warning?.contains("tutti.yaml") == true, "what to do")
        }
        #expect(try await Self.load(environment: ["TUTTI_PORT": "7500"]).warnings.isEmpty)
        // Of a service that is called otherwise, from the same word on.
        let other = [
            "TUTTI_LEADER_PORT": "tcp://10.0.0.7:7430", "TUTTI_LEADER_SERVICE_HOST": "10.0.0.7",
            "TUTTI_LEADER_PORT_7430_TCP_ADDR": "10.0.0.7", "TUTTI_LEADER_SERVICE_PORT": "7430",
        ]
        #expect(try await Self.load(environment: other).warnings.isEmpty)
        // What is meant as a setting is one, and still has to be possible.
        #expect(
            try await Settings.load(flags: [:], file: nil, environment: ["TUTTI_PORT": "7500"])
                .port == 7_500)
        await #expect(throws: SettingsError.self) {
            try await Settings.load(flags: [:], file: nil, environment: ["TUTTI_PORT": "tcp"])
        }
    }

    /// What was written, and what is asked back.
    @Test(arguments: [
        (SettingKey.output, "virtaul", "virtual"), (.output, "ALSA", "alsa"),
        (.output, "fiel:/tmp/a.wav", "file:/tmp/a.wav"), (.output, "/tmp/a.wav", "file:/tmp/a.wav"),
        (.output, "virtual:pmp=3", "virtual:ppm=3"), (.output, "default", "alsa:default"),
        (.output, "defualt", "alsa:default"), (.output, "plughw:1,0", "alsa:plughw:1,0"),
        (.channel, "lfet", "left"), (.logLevel, "wraning", "warning"),
        (.outputIdle, "relase", "release"), (.sampleRate, "atuo", "auto"),
    ])
    func `a mistyped value is asked about`(key: SettingKey, text: String, meant: String)
        async throws
    {
        let error = try await Self.complaint(flags: [key: text])
        #expect(error.description.hasSuffix("did you mean \"\(meant)\"?"), "\(error)")
        #expect(error.description.contains(key.allowed))
    }

    @Test func `further rooms have names and outputs of their own`() async throws {
        let rooms = try await Self.load(
            flags: [.also: "shelf=alsa:hw:2,0; terrace=virtual:ppm=3"]
        ).furtherRooms
        #expect(rooms.map(\.name) == ["shelf", "terrace"])
        #expect(rooms.map { "\($0.output)" } == ["alsa:hw:2,0", "virtual:ppm=3"])
        for wrong in ["shelf", "=alsa", "a=none", "a=alsa;A=virtual", "a=nonsense:", ""] {
            await #expect(throws: SettingsError.self, "\(wrong)") {
                try await Self.load(flags: [.also: wrong])
            }
        }
    }

    @Test func `a card without its kind is told what cards there are`() async throws {
        let error = try await Self.complaint(flags: [.output: "hw:31"]).description
        #expect(error.contains("needs alsa: before it"))
        #expect(error.contains("there is no such card"))
        #expect(error.contains("There are: ") || error.contains("No card is there now"))
        #expect(error.hasSuffix("did you mean \"alsa:hw:31\"?"))
        let key = try await Self.complaint(file: "ouput: none\n").description
        #expect(key.hasSuffix("did you mean \"output\"?"))
    }

    @Test func `Avahi is asked for by who says so, or names a leader without its address`()
        async throws
    {
        #expect(try await Self.load().asksForAvahi == false)
        #expect(try await Self.load(file: "avahi: true\n").asksForAvahi)
        #expect(try await Self.load(flags: [.group: "attic"]).asksForAvahi)
        #expect(
            try await Self.load(flags: [.group: "attic", .leader: "a:1"]).asksForAvahi == false)
    }

    @Test func `an unknown variable is an error too, others are none of our business`() async throws
    {
        let error = try await Self.complaint(environment: ["TUTTI_PROT": "1"])
        #expect(error.description.contains("\"TUTTI_PROT\""))
        _ = try await Self.load(environment: ["TUT": "1", "PATH": "/bin"])
    }

    @Test func `a list, a text that is no YAML and a missing file are told apart`() async throws {
        #expect(try await Self.complaint(file: "port: [1, 2]\n").description.contains("one value"))
        let broken = try await Self.complaint(file: "port: [1, 2\n").description
        #expect(broken.contains("not a YAML file") && !broken.contains("\n"))
        await #expect(throws: SettingsError.self) {
            try await Settings.load(flags: [:], file: "/nonexistent/tutti.yaml", environment: [:])
        }
    }

    @Test func `a file of comments only is fine`() async throws {
        #expect(try await Self.load(file: "# nothing\n\n---\n").port == 7430)
    }

    @Test func `the annotated file explains every key, and its examples are possible`() async throws
    {
        let text = try String(
            contentsOf: URL(filePath: #filePath).deletingLastPathComponent()
                .deletingLastPathComponent().deletingLastPathComponent()
                .appending(path: "Config/tutti.yaml"), encoding: .utf8)
        // As it is, it changes nothing.
        let untouched = try await Self.load(file: text)
        #expect(untouched == (try await Self.load()))
        // With every example taken, all keys are there and valid.
        let lines = text.split(separator: "\n").compactMap { line -> String? in
            let trimmed = line.drop(while: \.isWhitespace)
            guard trimmed.hasPrefix("#"), !trimmed.hasPrefix("# "), trimmed.count > 1 else {
                return nil
            }
            return String(line.prefix(line.count - trimmed.count) + trimmed.dropFirst())
        }
        let settings = try await Self.load(file: lines.joined(separator: "\n"))
        #expect(settings.leader.map { "\($0)" } == "192.168.1.20:7430")
        #expect(settings.name == "kitchen")
        #expect(settings.latencyOffset?.delay == .microseconds(1_500))
        #expect(settings.syncTargetMicroseconds == 1_000)
        let keys = lines.map { line in
            (line.hasPrefix(" ") ? "cache." : "")
                + line.drop(while: \.isWhitespace).prefix { $0 != ":" }
        }
        #expect(Set(keys).subtracting(["cache"]) == Set(SettingKey.allCases.map(\.rawValue)))
    }
}
