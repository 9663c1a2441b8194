import Logging
import TuttiDeviceOutput
import TuttiGroupControl
import TuttiLinuxHost
import TuttiPlayout
import TuttiRoom
import TuttiTiming

/// What a command works with, after flags, environment, file and defaults have been asked in turn.
struct Settings: Equatable, Sendable {
    var name: String
    var output = OutputSpecification.alsa(pcm: "default")
    /// Rooms of this machine beside the first, each with an output of its own.
    var furtherRooms: [FurtherRoom] = []
    var channel = ChannelRole.stereo
    var port = HostPort.defaultPort
    var leader: HostPort?
    var group: String?
    var waitFor = 1
    var insecureHosts: Set<String> = []
    var avahi = true
    /// On which alone Avahi is used.
    var networkInterface: String?
    var broadcasts = true
    var succession = true
    var qos = true
    var playsAfterRestart = false
    var cacheFolder: String
    var cacheLimitMegabytes = 2_000
    var uploadLimitMegabytes = 2_000
    /// `nil`: as said by command and remembered.
    var latencyOffset: LatencyOffset?
    var syncTargetMicroseconds = 1_000
    var volumeLimit = 100
    var leadInMilliseconds = 0
    var stateFolder: String
    var isOpen = false
    var bufferMilliseconds = OutputThread.standardBufferMilliseconds
    /// `nil`: as the item.
    var sampleRate: Int?
    var releasesOutput = false
    var realTimePriority = RealTimeThread.usualPriority
    var logLevel = Logger.Level.notice
    /// Avahi, or a leader that only Avahi can find, is asked for by name.
    var asksForAvahi = false
    /// What was given and is not used: sentences for the owner.
    var warnings: [String] = []

    /// - Parameter sources: the first that has a key wins; what it hides must be possible too.
    /// - Throws: ``SettingsError`` for the first value that is not possible.
    init(
        sources: [SettingSource], hostName: String, cacheFolder: String, stateFolder: String
    ) throws(SettingsError) {
        name = hostName
        self.cacheFolder = cacheFolder
        self.stateFolder = stateFolder
        func set<Value>(
            _ value: inout Value, _ key: SettingKey, _ parse: (String) -> Value?
        ) throws(SettingsError) {
            var winner: Value?
            for source in sources {
                guard let (text, place) = try source.text(key) else { continue }
                guard let parsed = parse(text) else { throw .impossible(place, key, text) }
                winner = winner ?? parsed
            }
            if let winner { value = winner }
        }
        func number(_ range: ClosedRange<Int>) -> (String) -> Int? {
            { text in Int(text).flatMap { range.contains($0) ? $0 : nil } }
        }
        try set(&name, .name) { Self.roomName($0) }
        try set(&output, .output) { try? OutputSpecification(parsing: $0) }
        try set(&furtherRooms, .also, FurtherRoom.parse)
        try set(&channel, .channel, Self.role)
        try set(&port, .port, number(0...65_535))
        try set(&leader, .leader) { try? HostPort(parsing: $0) }
        try set(&group, .group) { Self.roomName($0) }
        try set(&waitFor, .waitFor, number(0...1_000))
        try set(&insecureHosts, .insecure, Self.hosts)
        try set(&avahi, .avahi, Self.truth)
        try set(&networkInterface, .interface) { Self.networkInterface($0).map { .some($0) } }
        try set(&broadcasts, .broadcasts, Self.truth)
        try set(&succession, .succession, Self.truth)
        try set(&qos, .qos, Self.truth)
        try set(&playsAfterRestart, .afterRestart) { ["pause": false, "play": true][$0] }
        try set(&self.cacheFolder, .cacheFolder) { $0.isEmpty ? nil : $0 }
        try set(&cacheLimitMegabytes, .cacheLimit, number(1...10_000_000))
        try set(&uploadLimitMegabytes, .uploadLimit, number(0...10_000_000))
        try set(&latencyOffset, .latencyOffset) { try? LatencyOffset(parsing: $0) }
        try set(&syncTargetMicroseconds, .syncTarget, number(1...1_000_000))
        try set(&volumeLimit, .volumeLimit, number(1...100))
        try set(&leadInMilliseconds, .leadIn, number(0...3_000))
        try set(&self.stateFolder, .stateFolder) { $0.isEmpty ? nil : $0 }
        try set(&isOpen, .open, Self.truth)
        try set(&bufferMilliseconds, .buffer, number(5...1_000))
        try set(&sampleRate, .sampleRate) { text -> Int?? in
            if text == "auto" { return .some(nil) }
            return number(8_000...384_000)(text).map { .some($0) }
        }
        try set(&releasesOutput, .outputIdle) { ["keep": false, "release": true][$0] }
        try set(&realTimePriority, .realTimePriority, number(0...99))
        try set(&logLevel, .logLevel, Logger.Level.init(rawValue:))
        var avahiAsGiven: Bool?
        try set(&avahiAsGiven, .avahi) { Self.truth($0).map { .some($0) } }
        asksForAvahi = avahiAsGiven == true || group != nil && leader == nil
        warnings = sources.flatMap(\.warnings)
        if let unused = try unusedInterface(sources) { warnings.append(unused) }
    }

    /// Who turns Avahi off for once may have a file that says where it works otherwise.
    private func unusedInterface(_ sources: [SettingSource]) throws(SettingsError) -> String? {
        guard !avahi, let networkInterface else { return nil }
        for source in sources {
            if try source.text(.interface) != nil {
                return
                    "the interface \(networkInterface) is not used: it says where Avahi works, and Avahi is off"
            }
            if try source.text(.avahi) != nil { return nil }
        }
        return nil
    }

    var outputManner: OutputManner {
        OutputManner(followsItems: sampleRate == nil, releasesWhenIdle: releasesOutput)
    }

    /// Frames per second of a card while there is no item, and for items whose rate it cannot take.
    static let usualSampleRate = 48_000

    static func truth(_ text: String) -> Bool? {
        switch text.lowercased() {
        case "true", "yes", "on", "1": true
        case "false", "no", "off", "0": false
        default: nil
        }
    }

    static func role(_ text: String) -> ChannelRole? {
        ChannelRole.allCases.first { "\($0)" == text }
    }

    /// What Linux takes for one: 15 bytes at most, no slash and no blank (dev_valid_name).
    private static func networkInterface(_ text: String) -> String? {
        let isValid =
            (1...15).contains(text.utf8.count) && text != "." && text != ".."
            && text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x2F && $0 != 0x3A }
        return isValid ? text : nil
    }

    /// `nas.local, 192.168.1.4`: no addresses with a scheme or a path.
    private static func hosts(_ text: String) -> Set<String>? {
        let names = text.split(separator: ",").map { $0.filter { !$0.isWhitespace } }
        let isPlain = names.allSatisfy { name in
            !name.isEmpty
                && name.allSatisfy {
                    $0.isASCII && ($0.isLetter || $0.isNumber || "-.:_".contains($0))
                }
        }
        return names.isEmpty || !isPlain ? nil : Set(names)
    }

    /// What this machine shows of itself to leaders.
    ///
    /// - Throws: `RoomError`, code `badState`.
    func credentials() throws(RoomError) -> Credentials {
        isOpen
            ? .open
            : try .household(in: stateFolder, name: name, logger: makeLogger(level: logLevel))
    }

    /// - Parameter overwritesFiles: what `--force` says; no setting, since it is about one start.
    func nodeConfiguration(logger: Logger, overwritesFiles: Bool) -> NodeConfiguration {
        NodeConfiguration(
            name: name, output: output, role: channel, port: port, cacheFolder: cacheFolder,
            cacheLimitBytes: Int64(cacheLimitMegabytes) * 1_000_000,
            uploadLimitBytes: Int64(uploadLimitMegabytes) * 1_000_000,
            latencyOffset: latencyOffset, stateFolder: stateFolder, isOpen: isOpen,
            syncTarget: .microseconds(Int64(syncTargetMicroseconds)),
            usesAvahi: avahi, networkInterface: networkInterface, usesBroadcasts: broadcasts,
            succeeds: succession,
            volumeLimit: volumeLimit, leadIn: .milliseconds(Int64(leadInMilliseconds)),
            marksPackets: qos, playsAfterRestart: playsAfterRestart,
            realTimePriority: realTimePriority, bufferMilliseconds: bufferMilliseconds,
            sampleRate: sampleRate ?? Self.usualSampleRate,
            outputManner: outputManner, overwritesFiles: overwritesFiles,
            insecureHosts: insecureHosts, logger: logger)
    }
}
