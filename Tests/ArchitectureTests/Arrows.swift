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
    }

    /// Everybody may import these.
    static let standard: Set<String> = ["Swift", "Synchronization", "Observation"]
    /// What the machine gives; adapters and everything above them may import these.
    static let system: Set<String> = ["Glibc", "Foundation", "FoundationEssentials", "Dispatch"]

    /// The order is that of `Package.swift`.
    static let targets: [Target] = [
        Target(name: "Timing", mayImport: [], isPure: true),
        Target(name: "Chance", mayImport: [], isPure: true),
        Target(name: "ClockSync", mayImport: ["Timing", "Chance"], isPure: true),
        Target(name: "GroupControl", mayImport: ["Timing", "Chance"], isPure: true),
        Target(
            name: "Wire", mayImport: ["Timing", "ClockSync", "GroupControl", "SwiftProtobuf"],
            isPure: true),
        Target(name: "RealTime", mayImport: [], isPure: true),
        Target(
            name: "Playout", mayImport: ["Timing", "Chance", "RealTime", "CVector"], isPure: true),
        Target(
            name: "Simulation",
            mayImport: [
                "Timing", "Chance", "ClockSync", "GroupControl", "Wire", "RealTime", "Playout",
            ],
            isPure: true),
        Target(name: "FFmpegMedia", mayImport: ["Timing", "Playout", "CFFmpeg", "Crypto"]),
        Target(
            name: "LinuxHost", mayImport: ["Timing", "ClockSync", "Wire", "RealTime", "CLinux"]),
        Target(
            name: "DeviceOutput",
            mayImport: ["Timing", "RealTime", "Playout", "LinuxHost", "CALSA"]),
        Target(name: "AvahiDiscovery", mayImport: ["CAvahi"]),
        Target(name: "Playback", mayImport: ["Timing", "RealTime", "Playout"]),
        Target(
            name: "Tutti",
            mayImport: [
                "Timing", "ClockSync", "RealTime", "Playout", "FFmpegMedia", "LinuxHost",
                "DeviceOutput", "Playback",
            ]),
        Target(
            name: "Room",
            mayImport: [
                "Timing", "ClockSync", "GroupControl", "Wire", "RealTime", "Playout",
                "FFmpegMedia", "LinuxHost", "DeviceOutput", "AvahiDiscovery", "Playback",
                "Logging", "NIOCore", "NIOPosix", "NIOHTTP1",
            ]),
        Target(
            name: "tutti",
            mayImport: [
                "Timing", "ClockSync", "GroupControl", "Wire", "RealTime", "Playout", "FFmpegMedia",
                "DeviceOutput", "AvahiDiscovery", "LinuxHost", "Simulation", "Playback", "Tutti",
                "Room",
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
