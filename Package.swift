// swift-tools-version: 6.2
import PackageDescription

/// What every Swift target is built with that touches the C library beside NIO: to the compiler a
/// `sockaddr_in` belongs to Glibc or to NIO's own shim, whichever it has met first.
let besideNIO: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),  // SE-0335: `any` marks what costs an existential
    .enableUpcomingFeature("InternalImportsByDefault"),  // SE-0409: imports stay out of the API
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),  // SE-0461: async stays on its caller
]

/// What every other one is built with.
let everywhere =
    besideNIO + [
        .enableUpcomingFeature("MemberImportVisibility")  // SE-0444: a file imports what it uses
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
    "TuttiTiming", "TuttiClockSync", "TuttiGroupControl", "TuttiRealTime", "TuttiPlayout",
    "TuttiPlayback", "TuttiFFmpegMedia",
    "TuttiLinuxHost", "TuttiDeviceOutput",
]

let package = Package(
    name: "tutti",
    products: [
        .executable(name: "tutti", targets: ["tutti"]),
        .library(name: "Tutti", targets: ["Tutti", "TuttiRoom"] + besidesRoom),
        // For tests: ALSA loads it as a sound card.
        .library(name: "VirtualALSACard", type: .dynamic, targets: ["VirtualALSACard"]),
        // Without the adapters: what Tests/ResamplerComparison measures beside other libraries.
        .library(name: "TuttiPlayout", targets: ["TuttiPlayout"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
        .package(
            url: "https://github.com/apple/swift-configuration", from: "1.4.0", traits: ["YAML"]),
        // SHA-256 by the processor's instructions: 3.5 times as fast as libavutil's. Keys, signatures
        // and tags of a household.
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-certificates", from: "1.21.0"),
        .package(url: "https://github.com/apple/swift-asn1", from: "1.7.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
        // A version since August 2026: older ones crash on a peer without a certificate.
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0"),
    ],
    targets: [
        // Pure: values decide. No clock, task, socket or random source of their own.

        // What an instant is, in which clock; media time; how two clocks relate; timebases.
        .target(name: "TuttiTiming", swiftSettings: pure),
        // Chance as an argument: seeded streams of numbers, their distributions, and crystals.
        .target(name: "TuttiChance", swiftSettings: pure),
        // Turns time-exchange packets into an estimate of the group clock with an honest bound.
        .target(
            name: "TuttiClockSync", dependencies: ["TuttiTiming", "TuttiChance"],
            swiftSettings: pure),
        // Turns commands and messages into group state and scheduled rate changes.
        .target(
            name: "TuttiGroupControl", dependencies: ["TuttiTiming", "TuttiChance"],
            swiftSettings: pure),
        // Messages of the two above as bytes and back; never trusts the bytes.
        .target(
            name: "TuttiWire",
            dependencies: [
                "TuttiTiming", "TuttiClockSync", "TuttiGroupControl",
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
            ],
            exclude: ["tutti.proto"], swiftSettings: pure),
        // Who belongs to a household: keys, records, pairing, invites and tags; never trusts a stranger.
        .target(
            name: "TuttiTrust",
            dependencies: ["TuttiTiming", .product(name: "Crypto", package: "swift-crypto")],
            swiftSettings: pure),
        // Hands values between one writer and its readers without locks or allocation.
        .target(name: "TuttiRealTime", swiftSettings: pureWithPointers),
        // One header: the inner loop of the resampler for processors with AVX2 and FMA.
        .systemLibrary(name: "CTuttiVector", ),
        // Decides and renders the frames of each period; owns the ports to media and card.
        .target(
            name: "TuttiPlayout",
            dependencies: ["TuttiTiming", "TuttiChance", "TuttiRealTime", "CTuttiVector"],
            swiftSettings: pureWithPointers),
        // Runs all of the above in a seeded world of bad crystals, networks and cards.
        .target(
            name: "TuttiSimulation",
            dependencies: [
                "TuttiTiming", "TuttiChance", "TuttiClockSync", "TuttiGroupControl", "TuttiWire",
                "TuttiTrust", "TuttiRealTime", "TuttiPlayout",
            ],
            swiftSettings: pureWithPointers),

        // Adapters: thin shells named after what they touch.

        .systemLibrary(
            name: "CTuttiFFmpeg", pkgConfig: "libavformat",
            providers: [
                .apt(["libavformat-dev", "libavcodec-dev", "libavutil-dev", "libswresample-dev"])
            ]),
        .systemLibrary(
            name: "CTuttiALSA", pkgConfig: "alsa", providers: [.apt(["libasound2-dev"])]),
        .systemLibrary(
            name: "CTuttiAvahi", pkgConfig: "avahi-client",
            providers: [.apt(["libavahi-client-dev"])]),
        .systemLibrary(name: "CTuttiLinux", ),
        // Opens an asset and yields its decoded frames, sample-exact.
        .target(
            name: "TuttiFFmpegMedia",
            dependencies: [
                "TuttiTiming", "TuttiPlayout", "CTuttiFFmpeg",
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            swiftSettings: withPointers),
        // The machine: clocks, kernel-time-stamped UDP sockets, real-time threads.
        .target(
            name: "TuttiLinuxHost",
            dependencies: [
                "TuttiTiming", "TuttiClockSync", "TuttiWire", "TuttiTrust", "TuttiRealTime",
                "CTuttiLinux",
            ],
            swiftSettings: withPointers),
        // The output thread, and what it drives: an ALSA card, a virtual card or a file.
        .target(
            name: "TuttiDeviceOutput",
            dependencies: [
                "TuttiTiming", "TuttiRealTime", "TuttiPlayout", "TuttiLinuxHost", "CTuttiALSA",
            ],
            swiftSettings: withPointers),
        // Advertises this room and lists the others.
        .target(
            name: "TuttiAvahiDiscovery", dependencies: ["CTuttiAvahi"], swiftSettings: withPointers),
        // Links on which both sides have shown their keys: TLS for NIO's channels.
        .target(
            name: "TuttiSecureLinks",
            dependencies: [
                "TuttiTrust",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "SwiftASN1", package: "swift-asn1"),
                .product(name: "X509", package: "swift-certificates"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOTLS", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ],
            swiftSettings: everywhere),
        // The AVFoundation-like API: Asset, PlayerItem, Player.
        .target(
            name: "TuttiPlayback", dependencies: ["TuttiTiming", "TuttiRealTime", "TuttiPlayout"],
            swiftSettings: everywhere),
        // What applications import: all of the above that a player needs, made ready.
        .target(
            name: "Tutti",
            dependencies: [
                "TuttiTiming", "TuttiClockSync", "TuttiRealTime", "TuttiPlayout",
                "TuttiFFmpegMedia", "TuttiLinuxHost",
                "TuttiDeviceOutput", "TuttiPlayback",
            ],
            swiftSettings: everywhere),
        // One node: output, discovery, links, media service; leader or follower.
        .target(
            name: "TuttiRoom",
            dependencies: [
                "TuttiTiming", "TuttiClockSync", "TuttiGroupControl", "TuttiWire", "TuttiTrust",
                "TuttiRealTime", "TuttiPlayout",
                "TuttiFFmpegMedia", "TuttiLinuxHost", "TuttiDeviceOutput", "TuttiAvahiDiscovery",
                "TuttiPlayback", "TuttiSecureLinks",
                .product(name: "Crypto", package: "swift-crypto"),
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
                "TuttiTiming", "TuttiClockSync", "TuttiGroupControl", "TuttiWire", "TuttiRealTime",
                "TuttiPlayout", "TuttiFFmpegMedia",
                "TuttiDeviceOutput", "TuttiAvahiDiscovery", "TuttiLinuxHost", "TuttiSimulation",
                "TuttiPlayback", "Tutti",
                "TuttiTrust", "TuttiRoom",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: everywhere),

        // Tests mirror the sources; the architecture test holds the arrows above.
        .testTarget(
            name: "TimingTests", dependencies: ["TuttiTiming", "TuttiChance"],
            swiftSettings: everywhere),
        .testTarget(
            name: "ChanceTests", dependencies: ["TuttiChance"], swiftSettings: everywhere),
        .testTarget(
            name: "ClockSyncTests", dependencies: ["TuttiTiming", "TuttiChance", "TuttiClockSync"],
            swiftSettings: pure),
        .testTarget(
            name: "GroupControlTests",
            dependencies: ["TuttiTiming", "TuttiChance", "TuttiGroupControl"],
            swiftSettings: everywhere),
        .testTarget(
            name: "WireTests",
            dependencies: [
                "TuttiTiming", "TuttiChance", "TuttiClockSync", "TuttiGroupControl", "TuttiWire",
            ],
            swiftSettings: everywhere),
        .testTarget(
            name: "TrustTests",
            dependencies: [
                "TuttiTiming", "TuttiChance", "TuttiTrust",
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            swiftSettings: pure),
        .testTarget(
            name: "SecureLinksTests",
            dependencies: [
                "TuttiTrust", "TuttiSecureLinks",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "X509", package: "swift-certificates"),
            ],
            swiftSettings: everywhere),
        .testTarget(
            name: "RealTimeTests", dependencies: ["TuttiRealTime"], swiftSettings: everywhere),
        // Counts what a thread takes from the heap; for tests only.
        .target(name: "CTuttiAllocations", path: "Tests/CAllocations"),
        .testTarget(
            name: "PlayoutTests",
            dependencies: [
                "TuttiTiming", "TuttiChance", "TuttiRealTime", "TuttiPlayout", "CTuttiAllocations",
            ],
            swiftSettings: everywhere),
        .testTarget(
            name: "SimulationTests",
            dependencies: [
                "TuttiTiming", "TuttiChance", "TuttiClockSync", "TuttiGroupControl", "TuttiPlayout",
                "TuttiSimulation",
            ],
            resources: [.copy("GoldenTraces")], swiftSettings: pure),
        .testTarget(
            name: "FFmpegMediaTests",
            dependencies: ["TuttiTiming", "TuttiChance", "TuttiPlayout", "TuttiFFmpegMedia"],
            swiftSettings: everywhere),
        .testTarget(
            name: "LinuxHostTests",
            dependencies: [
                "TuttiTiming", "TuttiChance", "TuttiClockSync", "TuttiWire", "TuttiTrust",
                "TuttiLinuxHost",
            ],
            swiftSettings: everywhere),
        .testTarget(
            name: "DeviceOutputTests",
            dependencies: [
                "TuttiTiming", "TuttiRealTime", "TuttiPlayout", "TuttiLinuxHost",
                "TuttiDeviceOutput",
            ],
            swiftSettings: everywhere),
        .testTarget(
            name: "PlaybackTests",
            dependencies: [
                "TuttiTiming", "TuttiChance", "TuttiRealTime", "TuttiPlayout", "TuttiPlayback",
            ],
            swiftSettings: everywhere),
        .testTarget(
            name: "TuttiTests", dependencies: ["Tutti"], packageAccess: false,
            swiftSettings: everywhere),
        .testTarget(
            name: "RoomTests",
            dependencies: [
                "TuttiTiming", "TuttiRealTime", "TuttiClockSync", "TuttiGroupControl", "TuttiWire",
                "TuttiLinuxHost", "TuttiPlayout",
                "TuttiPlayback", "TuttiDeviceOutput", "TuttiTrust", "TuttiRoom",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            swiftSettings: besideNIO),
        .testTarget(
            name: "CommandLineTests",
            dependencies: [
                "TuttiTiming", "TuttiChance", "TuttiClockSync", "TuttiGroupControl",
                "TuttiLinuxHost", "TuttiDeviceOutput",
                "TuttiRoom",
                "Tutti", "tutti",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: everywhere),
        // The program itself, on hosts and sound cards that the tests make.
        .testTarget(
            name: "EndToEndTests",
            dependencies: [
                "TuttiTiming", "TuttiChance", "TuttiDeviceOutput", "TuttiLinuxHost",
                "TuttiPlayout", "TuttiGroupControl", "TuttiSimulation", "TuttiRoom", "TuttiTrust",
                "TuttiSecureLinks", "TuttiWire", "tutti", "CTuttiLinux", "CTuttiTap",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            swiftSettings: everywhere),
        // Network adapters whose frames a test carries; for tests only.
        .target(name: "CTuttiTap", path: "Tests/CTap"),
        // A sound card in software with a crystal of its own.
        .target(
            name: "VirtualALSACard", path: "Tests/VirtualALSACard",
            linkerSettings: [.linkedLibrary("asound"), .linkedLibrary("m")]),
        .testTarget(name: "ArchitectureTests", swiftSettings: everywhere),
        // Every parser of what comes from network or disk, fed with bytes that nobody wrote.
        .testTarget(
            name: "FuzzingTests",
            dependencies: [
                "TuttiTiming", "TuttiChance", "TuttiClockSync", "TuttiGroupControl", "TuttiWire",
                "TuttiTrust", "TuttiPlayout", "TuttiFFmpegMedia", "TuttiAvahiDiscovery",
                "TuttiRoom", "tutti", "CTuttiFFmpeg", "CTuttiAllocations",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
            ],
            path: "Tests/Fuzzing", exclude: ["Program"], swiftSettings: everywhere),
        // The samples of the documentation, compiled as an application would: with what the product
        // `Tutti` lists, and without what has `package` access.
        .testTarget(
            name: "DocumentationTests",
            dependencies: ["Tutti", "TuttiRoom"] + besidesRoom.map { .init(stringLiteral: $0) },
            packageAccess: false, swiftSettings: everywhere),
    ]
)

// An application may have modules called `Playback` or `Timing` too, and a name is taken once in a
// whole graph of packages. Ours begin with `Tutti`; our folders do not.
for target in package.targets where target.path == nil && target.type != .test {
    if target.name.hasPrefix("CTutti") {
        target.path = "Sources/C\(target.name.dropFirst(6))"
    } else if target.name.hasPrefix("Tutti"), target.name != "Tutti" {
        target.path = "Sources/\(target.name.dropFirst(5))"
    }
}

// For `deploy/fuzz` the harnesses are a program of libFuzzer's. A program cannot be linked into
// another, so the command line is a library then, with a `main` that nobody calls.
if Context.environment["FUZZING"] != nil {
    let harnesses = package.targets.filter { $0.name == "FuzzingTests" }.map { tests in
        Target.executableTarget(
            name: "Fuzzing", dependencies: tests.dependencies, path: "Tests/Fuzzing",
            exclude: ["FuzzingTests.swift"], swiftSettings: everywhere)
    }
    let program = package.targets.filter { $0.name == "tutti" }.map { program in
        Target.target(
            name: program.name, dependencies: program.dependencies,
            swiftSettings: everywhere + [
                .unsafeFlags([
                    "-Xfrontend", "-entry-point-function-name", "-Xfrontend", "tutti_main",
                ])
            ])
    }
    package.products = []
    package.targets.removeAll { $0.type == .test || $0.name == "tutti" }
    package.targets += program + harnesses
}

// For `deploy/sanitize`: the tests of these targets, and what they need. The rest would be built
// for nothing.
if let tests = Context.environment["ONLY_TESTS"]?.split(separator: " ").map(String.init) {
    var needed: Set<String> = []
    func need(_ name: String) {
        guard let target = package.targets.first(where: { $0.name == name }),
            needed.insert(name).inserted
        else { return }
        for case .byNameItem(let dependency, _) in target.dependencies { need(dependency) }
    }
    tests.forEach(need)
    package.products = []
    package.targets.removeAll { !needed.contains($0.name) }
}
