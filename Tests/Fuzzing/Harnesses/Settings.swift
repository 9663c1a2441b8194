@testable import tutti

extension Harness {
    static let settings = [settingsFile, environment]

    private static let file = """
        # A room.
        name: küche
        output: "virtual:ppm=80,wander=2"
        channel: left
        port: 7430
        leader: "[fe80::1%3]:7430"
        wait-for: 2
        insecure: nas.local, 192.168.1.4
        avahi: no
        cache: {limit-mb: 500, uploads-mb: 0}
        latency-offset-us: 1500±50
        sample-rate: auto
        log-level: debug

        """

    /// No settings but those of the file.
    private static let nobody = ["XDG_CONFIG_HOME": "/nonexistent", "HOME": "/nonexistent"]

    private static let settingsFile = Harness(
        name: "settings-file",
        seeds: {
            [
                Array(file.utf8), Array("---\n# nothing\n".utf8),
                Array("output: alsa:hw:1,0\nbuffer-ms: 103\ncache:\n  limit-mb: 503\n".utf8),
                Array("a: &a [x, x]\nb: [*a, *a]\n".utf8),
            ]
        },
        check: .waiting { bytes in
            let path = "\(Scratch.folder)/\(try Scratch.write(bytes, as: "tutti.yaml"))"
            do throws(SettingsError) {
                check(try await Settings.load(flags: [:], file: path, environment: nobody))
            } catch {
                try expect(error.description.contains(path), "no file is named: \(error)")
                try expect(!error.isUsage, "a file is no command line: \(error)")
            }
        })

    /// Lines `NAME=VALUE`; every second is one of ours.
    private static let environment = Harness(
        name: "environment",
        seeds: {
            [
                "TUTTI_PORT=7430\nTUTTI_NAME=attic\nTUTTI_AVAHI=off",
                "TUTTI_PORT=tcp://10.0.0.1:7430\nTUTTI_LEADER_PORT_7430_TCP_ADDR=10.0.0.1",
                "TUTTI_NAME=/player/tutti\nTUTTI_ENV_A=b\nTUTTI_SERVICE_HOST=10.0.0.1",
            ].map { Array($0.utf8) }
        },
        longest: 1_024,
        check: .waiting { bytes in
            var variables = nobody
            for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
                let sign = line.firstIndex(of: "=") ?? line.endIndex
                variables[String(line[..<sign])] = String(line[sign...].dropFirst())
            }
            do throws(SettingsError) {
                check(try await Settings.load(flags: [:], file: nil, environment: variables))
            } catch {
                try expect(error.description.contains("environment"), "no place: \(error)")
            }
        })

    private static func check(_ settings: Settings) {
        precondition((0...65_535).contains(settings.port), "port \(settings.port)")
        precondition((0...99).contains(settings.realTimePriority), "\(settings.realTimePriority)")
        precondition((5...1_000).contains(settings.bufferMilliseconds), "no such buffer")
        precondition(!settings.name.isEmpty, "a room without a name")
        precondition(!settings.cacheFolder.isEmpty && !settings.stateFolder.isEmpty, "no folder")
    }
}
