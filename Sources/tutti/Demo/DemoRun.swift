import Glibc
import TuttiDeviceOutput
import TuttiGroupControl
import TuttiRoom
import TuttiTiming

/// What a demo found out.
struct DemoResult: Sendable {
    var rooms: [DemoRoom]
    var lockstep: Lockstep
    var discovery: DiscoveryMode
    var title: String
    var folder: String?
    /// One for each room; `nil` where the room plays too short a time to measure.
    var costs: [RoomCost?] = []
}

/// Starts the rooms, watches them play, ends them, and compares their recordings.
struct DemoRun {
    /// Rooms that are not ready by then never will be.
    private static let startLimit = Duration.seconds(25)
    /// Seconds beyond the wanted length after which the demo ends, whatever the leader says.
    private static let overtime = 3.0
    private static let endLimit = Duration.seconds(4)

    private let options: Demo
    private let rooms: [DemoRoom]
    private let tag: String
    private var children: [ChildProcess] = []
    private var credentials = Credentials.open
    private var screen = LiveScreen(.error)
    private var meter = CostMeter()

    init(_ options: Demo) {
        self.options = options
        tag = "\(getpid())"
        rooms = DemoRoom.all(options.rooms, tag: tag)
    }

    func run() async throws -> DemoResult {
        var demo = self
        return try await demo.play()
    }

    private mutating func play() async throws -> DemoResult {
        let folder = try TemporaryFolder()
        if let record = options.record { try makeFolder(record) }
        let (path, reference) = try item(folder)
        let (mode, avahi) = await findDiscovery(folder)
        let port = try freePort()
        defer { screen.close() }
        do {
            try startRooms(path, port: port, mode: mode, folder: folder)
            try await watch(port: port, folder: folder)
        } catch {
            await end(avahi)
            showLogs(folder)
            throw error
        }
        await end(avahi)
        showLogs(folder)
        screen.close()
        screen.note("measuring what left the cards …")
        return try analyse(folder, reference: reference, mode: mode, path: path)
    }

    // MARK: - Before

    /// The file to play and what it should sound like.
    private func item(_ folder: TemporaryFolder) throws -> (path: String, reference: Reference?) {
        guard let file = options.file else {
            var piece = DemoPiece()
            let samples = piece.samples(seconds: options.seconds)
            let path = "\(folder.path)/Plucked strings.wav"
            try WaveFile.write(samples, sampleRate: DemoPiece.sampleRate, to: path)
            let mono = stride(from: 0, to: samples.count, by: 2).map {
                (samples[$0] + samples[$0 + 1]) / 2
            }
            return (path, Reference(sampleRate: Double(DemoPiece.sampleRate), samples: mono))
        }
        // Decoding here first also says in one sentence what is wrong with the file.
        return (file, try Reference.decode(file, seconds: options.seconds + Self.overtime))
    }

    private mutating func findDiscovery(
        _ folder: TemporaryFolder
    ) async -> (DiscoveryMode, PrivateAvahi?) {
        if options.noAvahi { return (.direct, nil) }
        if PrivateAvahi.systemDaemonRuns { return (.avahi, nil) }
        do {
            let avahi = try await PrivateAvahi(folder: folder.path)
            screen.note("No avahi-daemon runs here: started a private one for the demo.")
            return (.privateAvahi, avahi)
        } catch {
            screen.note("\(error). The rooms are told the leader's address instead.")
            return (.direct, nil)
        }
    }

    private mutating func startRooms(
        _ path: String, port: Int, mode: DiscoveryMode, folder: TemporaryFolder
    ) throws {
        let program = ownProgram()
        // A household of its own, for as long as it runs.
        let nodes = rooms.enumerated().map { (stateFolder($0, folder), $1.fullName) }
        try HouseholdAccess.prepare(nodes)
        credentials = try .household(in: stateFolder(0, folder), name: rooms[0].fullName)
        for (number, room) in rooms.enumerated() {
            let output = OutputSpecification.virtual(
                VirtualCardOptions(
                    partsPerMillion: room.partsPerMillion, wander: room.wander,
                    seed: UInt64(number + 1), record: recording(number, folder)))
            var words = [program]
            if number == 0 {
                words += ["lead", path, "--port", "\(port)", "--wait-for", "\(rooms.count)"]
            } else if mode == .direct {
                words += ["follow", "--leader", "127.0.0.1:\(port)"]
            } else {
                words += ["follow", "--group", rooms[0].fullName]
            }
            if mode == .direct { words += ["--no-avahi"] }
            words += [
                "--name", room.fullName, "--output", "\(output)", "--cache-folder",
                "\(folder.path)/cache-\(number)", "--state-folder",
                stateFolder(number, folder), "--die-with-parent", "--log-level",
                options.verbose ? "debug" : "warning",
            ]
            children.append(try ChildProcess(words, log: log(number, folder)))
        }
    }

    private func recording(_ room: Int, _ folder: TemporaryFolder) -> String {
        "\(folder.path)/card-\(room)"
    }

    private func stateFolder(_ room: Int, _ folder: TemporaryFolder) -> String {
        "\(folder.path)/state-\(room)"
    }

    private func log(_ room: Int, _ folder: TemporaryFolder) -> String {
        "\(folder.path)/room-\(room).log"
    }

    // MARK: - While it plays

    /// Shows the rooms until the leader is done or time is up.
    private mutating func watch(port: Int, folder: TemporaryFolder) async throws {
        let leader = HostPort(host: "127.0.0.1", port: port)
        let started = ContinuousClock.now
        var playing: ContinuousClock.Instant?
        var noted = ContinuousClock.now - .seconds(10)
        while true {
            try Task.checkCancellation()
            for number in children.indices.dropFirst() where !children[number].isRunning {
                throw failure(of: number, folder)
            }
            if !children[0].isRunning {
                // The queue has been played: the leader ends by itself, with success.
                if playing != nil, children[0].status == 0 { return }
                throw failure(of: 0, folder)
            }
            if let status = try? await status(leader) {
                show(status, since: &noted)
                if status.phase == .playing, playing == nil { playing = ContinuousClock.now }
                if status.phase == .playing, let playing { measureCosts(since: playing) }
                if status.phase == .ended { return }
                if playing != nil, status.positionSeconds >= options.seconds {
                    return await pause(leader)
                }
            }
            if let playing {
                guard playing.duration(to: .now) < .seconds(options.seconds + Self.overtime) else {
                    return await pause(leader)
                }
            } else if started.duration(to: .now) > Self.startLimit {
                throw CommandError(
                    "the rooms were not ready within 25 s: \(reasons(folder)); run again with --verbose"
                )
            }
            try await Task.sleep(for: .milliseconds(200))
        }
    }

    private mutating func measureCosts(since playing: ContinuousClock.Instant) {
        guard playing.duration(to: .now) > CostMeter.settling else { return }
        for (room, child) in children.enumerated() {
            if let reading = CostMeter.Reading(process: child.pid) {
                meter.note(reading, room: room)
            }
        }
    }

    private func status(_ leader: HostPort) async throws -> GroupStatus {
        let client = try await GroupClient.connect(
            to: leader, timeout: .seconds(1), credentials: credentials)
        let status = try await client.status()
        return status
    }

    /// All rooms stop at one instant; then there is no ragged end to be measured.
    private func pause(_ leader: HostPort) async {
        guard
            let client = try? await GroupClient.connect(
                to: leader, timeout: .seconds(1), credentials: credentials)
        else { return }
        _ = try? await client.perform(.pause)
        try? await Task.sleep(for: .milliseconds(600))
    }

    private mutating func show(_ status: GroupStatus, since noted: inout ContinuousClock.Instant) {
        let suffix = " \(tag)"
        let name: (String) -> String = {
            $0.hasSuffix(suffix) ? String($0.dropLast(suffix.count)) : $0
        }
        if screen.isLive {
            screen.draw(
                StatusView(
                    status: status, width: screen.width, showsColour: screen.showsColour,
                    roomName: name
                ).lines)
        } else if noted.duration(to: .now) > .seconds(2) {
            noted = .now
            var plain = status
            for index in plain.rooms.indices {
                plain.rooms[index].name = name(plain.rooms[index].name)
            }
            screen.note(Status.plainLine(plain))
        }
    }

    private func failure(of room: Int, _ folder: TemporaryFolder) -> CommandError {
        let ending = children[room].ending ?? "?"
        let line = lastLine(ofFile: log(room, folder)) ?? "it said nothing"
        return CommandError("room \(rooms[room].name) ended early (\(ending)): \(line)")
    }

    private func reasons(_ folder: TemporaryFolder) -> String {
        let lines = rooms.indices.compactMap { number in
            lastLine(ofFile: log(number, folder)).map { "\(rooms[number].name): \($0)" }
        }
        return lines.isEmpty ? "none of them said why" : lines.joined(separator: "; ")
    }

    // MARK: - After

    /// Followers first, so that no room sees its leader vanish; recordings are closed on the way.
    private mutating func end(_ avahi: PrivateAvahi?) async {
        for child in children.reversed() { child.terminate() }
        await ChildProcess.reap(children, limit: Self.endLimit)
        await avahi?.stop()
    }

    private func showLogs(_ folder: TemporaryFolder) {
        guard options.verbose else { return }
        for number in rooms.indices {
            guard let text = try? readFile(log(number, folder)) else { continue }
            for line in text.split(whereSeparator: \.isNewline) {
                Terminal.error.write("\(rooms[number].name): \(line)\n")
            }
        }
    }

    private func analyse(
        _ folder: TemporaryFolder, reference: Reference?, mode: DiscoveryMode, path: String
    ) throws -> DemoResult {
        let recordings = try rooms.indices.map { number in
            try CardRecording.load(path: recording(number, folder))
        }
        guard let base = recordings.compactMap(\.firstInstant).min() else {
            throw CommandError("no card recorded anything: see what the rooms say with --verbose")
        }
        let takes = rooms.indices.map {
            Take(recordings[$0], name: rooms[$0].name, base: base)
        }
        guard let lockstep = Lockstep.measure(takes, reference: reference) else {
            throw CommandError("no room ever sounded: see what the rooms say with --verbose")
        }
        let title =
            options.file.map { String($0.split(separator: "/").last ?? "") }
            ?? "built-in piece"
        let result = DemoResult(
            rooms: rooms, lockstep: lockstep, discovery: mode, title: title,
            folder: options.record, costs: rooms.indices.map { meter.cost(ofRoom: $0) })
        if let record = options.record {
            try save(result, recordings: recordings, in: record, from: folder)
        }
        return result
    }

    private func save(
        _ result: DemoResult, recordings: [CardRecording], in record: String,
        from folder: TemporaryFolder
    ) throws {
        for (number, recording) in recordings.enumerated() {
            let name = rooms[number].name.replacing(" ", with: "-")
            try writeFile(
                WaveFile.floatBytes(
                    recording.samples, channels: recording.channelCount,
                    sampleRate: recording.sampleRate), to: "\(record)/\(name).wav")
            try writeFile(
                Array(try readFile("\(self.recording(number, folder)).times").utf8),
                to: "\(record)/\(name).times")
        }
        let report = DemoReport(result)
        try writeFile(Array(report.csv.utf8), to: "\(record)/skew.csv")
        let chart = SkewChart(result: result.lockstep, title: report.headline)
        try writeFile(chart.image().bytes, to: "\(record)/skew.png")
    }
}
