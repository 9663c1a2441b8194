// swift-tools-version: 6.2
import PackageDescription

// Beside the libraries others use. A package of its own, so that the product neither links nor
// needs them: apt-get install libsoxr-dev libsamplerate0-dev libswresample-dev
let package = Package(
    name: "ResamplerComparison",
    dependencies: [.package(name: "tutti", path: "../..")],
    targets: [
        .systemLibrary(
            name: "CSoxr", pkgConfig: "soxr", providers: [.apt(["libsoxr-dev"])]),
        .systemLibrary(
            name: "CSampleRate", pkgConfig: "samplerate", providers: [.apt(["libsamplerate0-dev"])]),
        .systemLibrary(
            name: "CSwresample", pkgConfig: "libswresample",
            providers: [.apt(["libswresample-dev"])]),
        .executableTarget(
            name: "ResamplerComparison",
            dependencies: [
                .product(name: "TuttiPlayout", package: "tutti"), "CSoxr", "CSampleRate",
                "CSwresample",
            ],
            swiftSettings: [.swiftLanguageMode(.v6)]),
    ]
)
