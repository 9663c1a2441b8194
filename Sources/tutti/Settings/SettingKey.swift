import Logging
import TuttiGroupControl
import TuttiPlayout
import TuttiRoom

/// The keys of `tutti.yaml`, of `TUTTI_*` and of the flags, each with the values it may have.
///
/// A key is here only if it changes something. `Config/tutti.yaml` explains them to people; a test
/// holds the two together.
enum SettingKey: String, CaseIterable, Sendable {
    case name
    case output
    case also
    case channel
    case port
    case leader
    case group
    case waitFor = "wait-for"
    case insecure
    case avahi
    case interface
    case broadcasts
    case succession
    case qos
    case afterRestart = "after-restart"
    case cacheFolder = "cache.folder"
    case cacheLimit = "cache.limit-mb"
    case uploadLimit = "cache.uploads-mb"
    case open
    case latencyOffset = "latency-offset-us"
    case syncTarget = "sync-target-us"
    case volumeLimit = "volume-limit"
    case stateFolder = "state-folder"
    case buffer = "buffer-ms"
    case sampleRate = "sample-rate"
    case outputIdle = "output-idle"
    case leadIn = "lead-in-ms"
    case realTimePriority = "realtime-priority"
    case logLevel = "log-level"

    /// The environment variable: `cache.limit-mb` is `TUTTI_CACHE_LIMIT_MB`.
    var variable: String {
        "TUTTI_"
            + rawValue.uppercased().map { $0.isLetter || $0.isNumber ? String($0) : "_" }.joined()
    }

    /// The flag: `cache.limit-mb` is `--cache-limit-mb`.
    var flag: String {
        switch self {
        case .avahi: "--no-avahi"
        case .broadcasts: "--no-broadcasts"
        case .succession: "--no-succession"
        case .qos: "--no-qos"
        default: "--" + rawValue.split(separator: ".").joined(separator: "-")
        }
    }

    /// What may be written there, to end the sentence "allowed: …".
    var allowed: String {
        switch self {
        case .name: "1 to 64 printable characters"
        case .output: "alsa[:PCM], virtual[:ppm=…,wander=…,record=PATH], file:PATH or none"
        case .also: "NAME=OUTPUT, with semicolons between several, 7 at most"
        case .channel: "stereo, left, right or mono"
        case .port: "a whole number from 0 (any free port) to 65535"
        case .leader: "HOST, HOST:PORT or [IPV6]:PORT, with a port of 1 to 65535"
        case .group: "the name of the leading room"
        case .waitFor: "a whole number of rooms from 0 to 1000"
        case .insecure: "names of hosts, with commas between them"
        case .avahi, .broadcasts, .succession, .qos, .open: "true or false"
        case .interface: "the name of a network interface, as \"ip link\" lists it"
        case .cacheFolder: "the path of a folder"
        case .cacheLimit: "a whole number of megabytes from 1 to 10000000"
        case .uploadLimit: "a whole number of megabytes from 0 (none) to 10000000"
        case .latencyOffset: "microseconds from -500000 to 500000; 1500±50 if measured to 50"
        case .syncTarget: "a whole number of microseconds from 1 to 1000000"
        case .volumeLimit: "a whole number of percent from 1 to 100"
        case .stateFolder: "the path of a folder"
        case .buffer: "a whole number of milliseconds from 5 to 1000"
        case .sampleRate: "auto, or a whole number of hertz from 8000 to 384000"
        case .outputIdle: "keep or release"
        case .afterRestart: "pause or play"
        case .leadIn: "a whole number of milliseconds from 0 to 3000"
        case .realTimePriority: "a whole number from 0 (none) to 99"
        case .logLevel: "trace, debug, info, notice, warning, error or critical"
        }
    }

    /// The words among what is allowed: one of them may be meant by a mistyped one.
    var words: [String] {
        switch self {
        case .channel: ChannelRole.allCases.map { "\($0)" }
        case .avahi, .broadcasts, .succession, .qos, .open: ["true", "false"]
        case .sampleRate: ["auto"]
        case .outputIdle: ["keep", "release"]
        case .afterRestart: ["pause", "play"]
        case .logLevel: Logger.Level.allCases.map(\.rawValue)
        default: []
        }
    }
}

/// A setting that is unknown or impossible: where it stands, which one, and what is allowed.
struct SettingsError: Error, Equatable, CustomStringConvertible {
    var description: String
    /// The command line itself is wrong, not a file behind it.
    var isUsage: Bool

    init(_ description: String, isUsage: Bool = false) {
        self.description = description
        self.isUsage = isUsage
    }

    static func impossible(_ place: String, _ key: SettingKey, _ text: String) -> SettingsError {
        let output = key == .output ? MistypedOutput(text) : nil
        let reason =
            key == .leader && HostPort.isWebAddress(text)
            ? ": it is a web address" : output.map { ": \($0.reason)" } ?? ""
        let question = output?.question ?? Suggestion.question(for: text, among: key.words)
        return SettingsError(
            "\(place): \"\(text)\" is not possible\(reason); allowed: \(key.allowed)\(question)",
            isUsage: place == key.flag)
    }

    static func unknown(_ name: String, in place: String, known: [String]) -> SettingsError {
        SettingsError(
            "\(place): unknown key \"\(name)\"; known keys: \(known.joined(separator: ", "))"
                + Suggestion.question(for: name, among: known))
    }
}
