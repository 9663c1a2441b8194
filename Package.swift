// swift-tools-version: 6.2
import PackageDescription

/// What every Swift target is built with.
let everywhere: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),  // SE-0335: `any` marks what costs an existential
    .enableUpcomingFeature("MemberImportVisibility"),  // SE-0444: a file imports what it uses
    .enableUpcomingFeature("InternalImportsByDefault"),  // SE-0409: imports stay out of the API
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),  // SE-0461: async stays on its caller
]

/// For targets that touch pointers: each use says `unsafe` (SE-0458).
let withPointers = everywhere + [.strictMemorySafety()]

/// What only computes takes a tenth of the time with the optimiser; `deploy/test` asks for it. Not
/// always: a package that sets such flags cannot be depended on. The name does not begin with
/// `TUTTI_`, which are settings of the program.
let optimised: [SwiftSetting] =
    Context.environment["OPTIMISE_PURE_TARGETS"] == nil ? [] : [.unsafeFlags(["-O"])]
let pure = everywhere + optimised
let pureWithPointers = withPointers + optimised

/// What applications import beside `Room`, so that the samples of the documentation compile with
/// the product alone. What only our own targets need there has `package` access.
let besidesRoom = [
    "Timing", "ClockSync", "GroupControl", "RealTime", "Playout", "Playback", "FFmpegMedia",
    "LinuxHost", "DeviceOutput",
]

let package = Package(
    name: "tutti",
    products: [
        .executable(name: "tutti", targets: ["tutti"]),
        .library(name: "Tutti", targets: ["Tutti", "Room"] + besidesRoom),
        // For tests: ALSA loads it as a sound card.
        .library(name: "VirtualALSACard", type: .dynamic, targets: ["VirtualALSACard"]),
        // Without the adapters: what Tests/ResamplerComparison measures beside other libraries.
        .library(name: "Playout", targets: ["Playout"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
        .package(
            url: "https://github.com/apple/swift-configuration", from: "1.4.0", traits: ["YAML"]),
        // SHA-256 by the processor's instructions: 3.5 times as fast as libavutil's.
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
        .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0"),
    ],
    targets: [
        // Pure: values decide. No clock, task, socket or random source of their own.

        // What an instant is, in which clock; media time; how two clocks relate; timebases.
        .target(name: "Timing", swiftSettings: pure),
        // Chance as an argument: seeded streams of numbers, their distributions, and crystals.
        .target(name: "Chance", swiftSettings: pure),
        // Turns time-exchange packets into an estimate of the group clock with an honest bound.
        .target(
            name: "ClockSync", dependencies: ["Timing", "Chance"], swiftSettings: pure),
        // Turns commands and messages into group state and scheduled rate changes.
        .target(name: "GroupControl", dependencies: ["Timing", "Chance"], swiftSettings: pure),
        // Messages of the two above as bytes and back; never trusts the bytes.
        .target(
            name: "Wire",
            dependencies: [
                "Timing", "ClockSync", "GroupControl",
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
            ],
            exclude: ["tutti.proto"], swiftSettings: pure),
        // Hands values between one writer and its readers without locks or allocation.
        .target(name: "RealTime", swiftSettings: pureWithPointers),
        // One header: the inner loop of the resampler for processors with AVX2 and FMA.
        .systemLibrary(name: "CVector"),
        // Decides and renders the frames of each period; owns the ports to media and card.
        .target(
            name: "Playout", dependencies: ["Timing", "Chance", "RealTime", "CVector"],
            swiftSettings: pureWithPointers),
        // Runs all of the above in a seeded world of bad crystals, networks and cards.
        .target(
            name: "Simulation",
            dependencies: [
                "Timing", "Chance", "ClockSync", "GroupControl", "Wire", "RealTime", "Playout",
            ],
            swiftSettings: pureWithPointers),

        // Adapters: thin shells named after what they touch.

        .systemLibrary(
            name: "CFFmpeg", pkgConfig: "libavformat",
            providers: [
                .apt(["libavformat-dev", "libavcodec-dev", "libavutil-dev", "libswresample-dev"])
            ]),
        .systemLibrary(name: "CALSA", pkgConfig: "alsa", providers: [.apt(["libasound2-dev"])]),
        .systemLibrary(
            name: "CAvahi", pkgConfig: "avahi-client", providers: [.apt(["libavahi-client-dev"])]),
        .systemLibrary(name: "CLinux"),
        // Opens an asset and yields its decoded frames, sample-exact.
        .target(
            name: "FFmpegMedia",
            dependencies: [
                "Timing", "Playout", "CFFmpeg", .product(name: "Crypto", package: "swift-crypto"),
            ],
            swiftSettings: withPointers),
        // The machine: clocks, kernel-time-stamped UDP sockets, real-time threads.
        .target(
            name: "LinuxHost", dependencies: ["Timing", "ClockSync", "Wire", "RealTime", "CLinux"],
            swiftSettings: withPointers),
        // The output thread, and what it drives: an ALSA card, a virtual card or a file.
        .target(
            name: "DeviceOutput",
            dependencies: ["Timing", "RealTime", "Playout", "LinuxHost", "CALSA"],
            swiftSettings: withPointers),
        // Advertises this room and lists the others.
        .target(name: "AvahiDiscovery", dependencies: ["CAvahi"], swiftSettings: withPointers),
        // The AVFoundation-like API: Asset, PlayerItem, Player.
        .target(
            name: "Playback", dependencies: ["Timing", "RealTime", "Playout"],
            swiftSettings: everywhere),
        // What applications import: all of the above that a player needs, made ready.
        .target(
            name: "Tutti",
            dependencies: [
                "Timing", "ClockSync", "RealTime", "Playout", "FFmpegMedia", "LinuxHost",
                "DeviceOutput", "Playback",
            ],
            swiftSettings: everywhere),
        // One node: output, discovery, links, media service; leader or follower.
        .target(
            name: "Room",
            dependencies: [
                "Timing", "ClockSync", "GroupControl", "Wire", "RealTime", "Playout",
                "FFmpegMedia", "LinuxHost", "DeviceOutput", "AvahiDiscovery", "Playback",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
            ],
            swiftSettings: everywhere),
        // The command line.
        .executableTarget(
            name: "tutti",
            dependencies: [
                "Timing", "ClockSync", "GroupControl", "Wire", "RealTime", "Playout", "FFmpegMedia",
                "DeviceOutput", "AvahiDiscovery", "LinuxHost", "Simulation", "Playback", "Tutti",
                "Room",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: everywhere),

        // Tests mirror the sources; the architecture test holds the arrows above.
        .testTarget(
            name: "TimingTests", dependencies: ["Timing", "Chance"], swiftSettings: everywhere),
        .testTarget(
            name: "ChanceTests", dependencies: ["Chance"], swiftSettings: everywhere),
        .testTarget(
            name: "ClockSyncTests", dependencies: ["Timing", "Chance", "ClockSync"],
            swiftSettings: pure),
        .testTarget(
            name: "GroupControlTests", dependencies: ["Timing", "Chance", "GroupControl"],
            swiftSettings: everywhere),
        .testTarget(
            name: "WireTests",
            dependencies: ["Timing", "Chance", "ClockSync", "GroupControl", "Wire"],
            swiftSettings: everywhere),
        .testTarget(
            name: "RealTimeTests", dependencies: ["RealTime"], swiftSettings: everywhere),
        // Counts what a thread takes from the heap; for tests only.
        .target(name: "CAllocations", path: "Tests/CAllocations"),
        .testTarget(
            name: "PlayoutTests",
            dependencies: ["Timing", "Chance", "RealTime", "Playout", "CAllocations"],
            swiftSettings: everywhere),
        .testTarget(
            name: "SimulationTests",
            dependencies: [
                "Timing", "Chance", "ClockSync", "GroupControl", "Playout", "Simulation",
            ],
            resources: [.copy("GoldenTraces")], swiftSettings: pure),
        .testTarget(
            name: "FFmpegMediaTests", dependencies: ["Timing", "Chance", "Playout", "FFmpegMedia"],
            swiftSettings: everywhere),
        .testTarget(
            name: "LinuxHostTests",
            dependencies: ["Timing", "ClockSync", "Wire", "LinuxHost"], swiftSettings: everywhere),
        .testTarget(
            name: "DeviceOutputTests",
            dependencies: ["Timing", "RealTime", "Playout", "LinuxHost", "DeviceOutput"],
            swiftSettings: everywhere),
        .testTarget(
            name: "PlaybackTests",
            dependencies: ["Timing", "Chance", "RealTime", "Playout", "Playback"],
            swiftSettings: everywhere),
        .testTarget(
            name: "TuttiTests", dependencies: ["Tutti"], packageAccess: false,
            swiftSettings: everywhere),
        .testTarget(
            name: "RoomTests",
            dependencies: [
                "Timing", "RealTime", "ClockSync", "GroupControl", "Wire", "LinuxHost", "Playout",
                "Playback", "DeviceOutput", "Room",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            swiftSettings: everywhere),
        .testTarget(
            name: "CommandLineTests",
            dependencies: [
                "Timing", "Chance", "ClockSync", "GroupControl", "LinuxHost", "DeviceOutput",
                "Room",
                "Tutti", "tutti",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: everywhere),
        // The program itself, on hosts and sound cards that the tests make.
        .testTarget(
            name: "EndToEndTests",
            dependencies: [
                "Timing", "Chance", "DeviceOutput", "LinuxHost", "Simulation", "tutti", "CLinux",
                "CTap",
            ],
            swiftSettings: everywhere),
        // Network adapters whose frames a test carries; for tests only.
        .target(name: "CTap", path: "Tests/CTap"),
        // A sound card in software with a crystal of its own.
        .target(
            name: "VirtualALSACard", path: "Tests/VirtualALSACard",
            linkerSettings: [.linkedLibrary("asound"), .linkedLibrary("m")]),
        .testTarget(name: "ArchitectureTests", swiftSettings: everywhere),
        // The samples of the documentation, compiled as an application would: with what the product
        // `Tutti` lists, and without what has `package` access.
        .testTarget(
            name: "DocumentationTests",
            dependencies: ["Tutti", "Room"] + besidesRoom.map { .init(stringLiteral: $0) },
            packageAccess: false, swiftSettings: everywhere),
    ]
)
