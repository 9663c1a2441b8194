/// What each target may import: the arrows of the architecture, in the order of the data flow.
///
/// A new arrow is a decision: it is made here, in `Package.swift` and in the table of
/// `Room.docc/Room.md` at once.
enum Arrows {
    struct Target: Sendable {
        var name: String
        /// Other targets of this package and modules of other packages.
        var mayImport: Set<String>
        /// Values only: no Foundation, no Dispatch, no clock, no task, no random source.
        var isPure = false

        var folder: String { Arrows.folder(of: name) }
    }

    /// Modules begin with `Tutti`, so that an application may have a `Playback` of its own; their
    /// folders do not.
    static func folder(of target: String) -> String {
        let name = target == "Tutti" ? target : target.replacing(/^(C?)Tutti/) { $0.output.1 }
        return "Sources/\(name)"
    }

    /// Everybody may import these.
    static let standard: Set<String> = ["Swift", "Synchronization", "Observation"]
    /// What the machine gives; adapters and everything above them may import these.
    static let system: Set<String> = ["Glibc", "Foundation", "FoundationEssentials", "Dispatch"]

    /// The order is that of `Package.swift`.
    static let targets: [Target] = [
        Target(name: "TuttiTiming", mayImport: [], isPure: true),
        Target(name: "TuttiChance", mayImport: [], isPure: true),
        Target(name: "TuttiClockSync", mayImport: ["TuttiTiming", "TuttiChance"], isPure: true),
        Target(name: "TuttiGroupControl", mayImport: ["TuttiTiming", "TuttiChance"], isPure: true),
        Target(
            name: "TuttiWire",
            mayImport: ["TuttiTiming", "TuttiClockSync", "TuttiGroupControl", "SwiftProtobuf"],
            isPure: true),
        // Of `Crypto` it takes values: keys, hashes and codes, which have no clock, file or socket.
        // ECDSA mixes the library's own chance into a signature, which no verdict depends on.
        Target(name: "TuttiTrust", mayImport: ["TuttiTiming", "Crypto"], isPure: true),
        Target(name: "TuttiRealTime", mayImport: [], isPure: true),
        Target(
            name: "TuttiPlayout",
            mayImport: ["TuttiTiming", "TuttiChance", "TuttiRealTime", "CTuttiVector"], isPure: true
        ),
        Target(
            name: "TuttiSimulation",
            mayImport: [
                "TuttiTiming", "TuttiChance", "TuttiClockSync", "TuttiGroupControl", "TuttiWire",
                "TuttiTrust", "TuttiRealTime", "TuttiPlayout",
            ],
            isPure: true),
        Target(
            name: "TuttiFFmpegMedia",
            mayImport: ["TuttiTiming", "TuttiPlayout", "CTuttiFFmpeg", "Crypto"]),
        Target(
            name: "TuttiLinuxHost",
            mayImport: [
                "TuttiTiming", "TuttiClockSync", "TuttiWire", "TuttiTrust", "TuttiRealTime",
                "CTuttiLinux",
            ]),
        Target(
            name: "TuttiDeviceOutput",
            mayImport: [
                "TuttiTiming", "TuttiRealTime", "TuttiPlayout", "TuttiLinuxHost", "CTuttiALSA",
            ]),
        Target(name: "TuttiAvahiDiscovery", mayImport: ["CTuttiAvahi"]),
        Target(
            name: "TuttiSecureLinks",
            mayImport: [
                "TuttiTrust", "Crypto", "SwiftASN1", "X509", "NIOCore", "NIOTLS", "NIOSSL",
            ]),
        Target(name: "TuttiPlayback", mayImport: ["TuttiTiming", "TuttiRealTime", "TuttiPlayout"]),
        Target(
            name: "Tutti",
            mayImport: [
                "TuttiTiming", "TuttiClockSync", "TuttiRealTime", "TuttiPlayout",
                "TuttiFFmpegMedia", "TuttiLinuxHost",
                "TuttiDeviceOutput", "TuttiPlayback",
            ]),
        Target(
            name: "TuttiRoom",
            mayImport: [
                "TuttiTiming", "TuttiClockSync", "TuttiGroupControl", "TuttiWire", "TuttiTrust",
                "TuttiRealTime", "TuttiPlayout",
                "TuttiFFmpegMedia", "TuttiLinuxHost", "TuttiDeviceOutput", "TuttiAvahiDiscovery",
                "TuttiTrust", "TuttiSecureLinks", "Crypto",
                "TuttiPlayback",
                "Logging", "NIOCore", "NIOPosix", "NIOHTTP1",
            ]),
        Target(
            name: "tutti",
            mayImport: [
                "TuttiTiming", "TuttiClockSync", "TuttiGroupControl", "TuttiWire", "TuttiRealTime",
                "TuttiPlayout", "TuttiFFmpegMedia",
                "TuttiDeviceOutput", "TuttiAvahiDiscovery", "TuttiLinuxHost", "TuttiSimulation",
                "TuttiPlayback", "Tutti",
                "TuttiTrust", "TuttiRoom",
                "ArgumentParser", "Configuration", "Logging",
            ]),
    ]

    /// A pure target may take single functions of mathematics, one file each: they have no state.
    static let pureFunctions: Set<String> = [
        "sin", "cos", "tan", "sqrt", "exp", "exp2", "log", "log2", "log10", "pow", "floor", "ceil",
        "round", "rint", "fabs", "hypot", "atan2", "sinf", "cosf", "sqrtf", "lround", "erf",
        "fmod", "trunc", "cosh", "sinh", "log1p", "expm1", "cbrt", "atan", "tgamma", "lgamma",
        "j0", "remainder", "fma",
    ]

    /// Names that bring in time, tasks, chance or the machine without an import.
    static let impureNames = [
        "ContinuousClock", "SuspendingClock", "SystemRandomNumberGenerator", "Task.", "Task {",
        "Task(", "TaskGroup", "async ", "await ", ".random(", ".randomElement(", ".shuffle",
        "print(", "CommandLine.",
    ]
}
