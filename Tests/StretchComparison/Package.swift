// swift-tools-version: 6.2
import PackageDescription

// Beside what ffmpeg does, where it is installed. A package of its own, as it runs for a minute.
let package = Package(
    name: "StretchComparison",
    dependencies: [.package(name: "tutti", path: "../..")],
    targets: [
        .executableTarget(
            name: "StretchComparison",
            dependencies: [.product(name: "TuttiPlayout", package: "tutti")],
            swiftSettings: [.swiftLanguageMode(.v6)])
    ]
)
