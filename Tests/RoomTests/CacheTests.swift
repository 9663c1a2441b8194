import Foundation
import Logging
import Testing
import TuttiDeviceOutput
import TuttiFFmpegMedia
import TuttiGroupControl

@testable import TuttiRoom

extension IntegrationTests {
    /// What a room has of its leader's files, and what it makes of them.
    @Suite(.timeLimit(.minutes(2))) struct Cache {
        private func finished(in group: TestGroup) throws -> [String] {
            let folder = group.folder.path("cache-attic")
            return try FileManager.default.contentsOfDirectory(atPath: folder)
                .filter { $0.hasSuffix(".wav") }.map { folder + "/" + $0 }
        }

        private func contents(_ path: String) throws -> Data {
            try Data(contentsOf: URL(fileURLWithPath: path))
        }

        @Test func `bytes that are overwritten while they play are an alarm, and come again`()
            async throws
        {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 63, as: "a.wav")
                try await group.lead([asset], output: .none)
                group.follow("attic")
                try await group.untilPlaying(["attic"])
                try await until("all of it is here") { try finished(in: group).count == 1 }
                // From here on it plays from the file.
                try await group.perform(.seek(seconds: 5))
                try await group.untilStatus("it plays there") {
                    $0.positionSeconds > 5 && $0.rooms.allSatisfy { $0.state == .playing }
                }
                let path = try #require(try finished(in: group).first)
                let right = try contents(path)
                let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
                try file.seek(toOffset: UInt64(right.count / 4))
                try file.write(contentsOf: Data(repeating: 7, count: right.count / 2))
                try file.close()
                try await group.untilStatus("an alarm") {
                    $0.rooms.contains { $0.sync?.lineAlarm == true }
                }
                try await group.untilStatus("it plays what was committed") {
                    $0.rooms.allSatisfy { $0.state == .playing && $0.sync?.line == "on the line" }
                }
                try await until("the right bytes are here") {
                    guard let path = try finished(in: group).first else { return false }
                    return try contents(path) == right
                }
            }
        }

        @Test func `other bytes under a good name are not played, and the right ones come again`()
            async throws
        {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 30, seed: 61, as: "a.wav")
                try await group.lead([asset], output: .none)
                let first = group.follow("attic")
                try await group.untilPlaying(["attic"])
                try await until("all of it is here") { try finished(in: group).count == 1 }
                _ = await first.stop()
                let path = try #require(try finished(in: group).first)
                let other = try group.folder.writeNoise(seconds: 30, seed: 62, as: "b.wav")
                try contents(other).write(to: URL(fileURLWithPath: path))
                group.follow("attic")
                try await group.untilPlaying(["attic"])
                try await until("the right one is back") {
                    try finished(in: group).first.map(contents) == contents(asset)
                }
            }
        }

        @Test func `what came of a file that was rewritten does not stay`() async throws {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 120, seed: 65, as: "a.wav")
                let other = try group.folder.writeNoise(seconds: 100, seed: 66, as: "b.wav")
                try await group.lead([asset], output: .none)
                group.follow("attic")
                let folder = group.folder.path("cache-attic")
                func parts() -> [String] {
                    let names = try? FileManager.default.contentsOfDirectory(atPath: folder)
                    return (names ?? []).filter { $0.hasSuffix(".part") }
                }
                try await until("a part of it is here") { !parts().isEmpty }
                let old = try #require(parts().first)
                try contents(other).write(to: URL(fileURLWithPath: asset))
                try await group.untilStatus("the other one plays") {
                    $0.durationSeconds < 110 && $0.rooms.first?.state == .playing
                }
                try await until("what came of the old one is gone") { !parts().contains(old) }
            }
        }

        @Test func `a cache folder that goes away while playing is made again`() async throws {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 60, seed: 65, as: "a.wav")
                try await group.lead([asset], output: .none)
                group.follow("attic")
                try await group.untilPlaying(["attic"])
                try await until("all of it is here") { try finished(in: group).count == 1 }
                try FileManager.default.removeItem(atPath: group.folder.path("cache-attic"))
                try await group.perform(.seek(seconds: 30))
                try await group.untilStatus("it plays at the new place") {
                    $0.positionSeconds >= 30 && $0.rooms.first?.state == .playing
                        && $0.rooms.first?.detail == ""
                }
                try await until("it is there again") {
                    (try? finished(in: group).count) == 1
                }
            }
        }

        @Test func `a room without a usable cache folder plays through memory, and says so once`()
            async throws
        {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 30, seed: 66, as: "a.wav")
                try await group.lead([asset], output: .none)
                let book = LogBook()
                group.follow("attic") {
                    $0.cacheFolder = "/proc/nothing"
                    $0.logger = book.logger
                }
                try await group.untilPlaying(["attic"])
                try await group.perform(.seek(seconds: 20))
                try await group.untilStatus("it plays at the new place") {
                    $0.positionSeconds >= 20 && $0.rooms.first?.state == .playing
                }
                #expect(book.all.map(\.message).count { $0.contains("/proc/nothing") } == 1)
            }
        }

        @Test func `a cache that is too small for two items says so with their sizes`()
            async throws
        {
            try await withGroup { group in
                let assets = try (0..<3).map {
                    try group.folder.writeNoise(
                        seconds: 2 + Double($0), seed: UInt64(70 + $0), as: "\($0).wav")
                }
                try await group.lead(assets, output: .none)
                let book = LogBook()
                group.follow("attic") {
                    $0.cacheLimitBytes = 400_000
                    $0.logger = book.logger
                }
                // 64 000 bytes a second.
                try await until("it is said") {
                    book.all.map(\.message).contains {
                        $0.contains("0.3 and 0.2 MB") && $0.contains("0.4 MB")
                    }
                }
            }
        }
    }
}
