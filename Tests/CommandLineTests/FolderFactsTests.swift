import Glibc
import Testing
import TuttiDeviceOutput

@testable import tutti

/// What will be written to: looked at without leaving anything, and judged by who writes there.
extension DoctorTests {
    @Test func `an output without hardware is judged by what it needs`() {
        let none = FolderFacts(path: "/a", existing: "/", isWritable: true, freeBytes: 1)
        let full = FolderFacts(path: "/a", existing: "/a", isWritable: false, freeBytes: 0)
        let good = FolderFacts(path: "/a", existing: "/a", isWritable: true, freeBytes: 1)
        func level(_ facts: OutputFacts) -> Finding.Level? {
            Judgement.output(facts, Self.wishes).first?.level
        }
        #expect(level(.none("virtual")) == .note)
        func file(_ folder: FolderFacts, _ place: FilePlace) -> OutputFacts {
            .file(path: "/a/b.wav", folder: folder, place: place)
        }
        // The writer of the file makes no folder.
        #expect(level(file(none, .free)) == .problem)
        #expect(level(file(full, .free)) == .problem)
        #expect(level(file(good, .free)) == .ok)
        // A file that is there is replaced, whatever its folder lets be made.
        #expect(level(file(full, .writable)) == .ok)
        #expect(level(file(good, .refused(reason: "it is a folder"))) == .problem)
    }

    @Test func `a file output is fit exactly where its writer can open it`() throws {
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        close(creat("\(folder.path)/there", 0o644))
        let paths = ["new.wav", "there", "none/x.wav", "", "there/x.wav"].map {
            "\(folder.path)/\($0)"
        }
        for path in paths {
            let facts = OutputFacts.file(
                path: path, folder: FolderFacts(examining: FolderFacts.above(path)),
                place: FilePlace(examining: path))
            let level = Judgement.output(facts, Self.wishes).first?.level
            let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
            if descriptor >= 0 { close(descriptor) }
            #expect(level == (descriptor >= 0 ? .ok : .problem), "\(path)")
        }
    }

    @Test(arguments: [
        ("/a/b/c.wav", "/a/b"), ("/c.wav", "/"), ("c.wav", "."), ("a/c.wav", "a"), ("/a/", "/"),
    ])
    func `the folder above is where a file is made`(path: String, folder: String) {
        #expect(FolderFacts.above(path) == folder)
    }

    @Test func `a folder that is not there is judged by the nearest above, and not made`() throws {
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let facts = FolderFacts(examining: "\(folder.path)/a/b")
        #expect(facts.existing == folder.path && facts.isWritable && !facts.exists)
        #expect(facts.freeBytes > 0)
        #expect(access("\(folder.path)/a", F_OK) != 0)
        // Nobody makes folders there, root neither.
        #expect(!FolderFacts(examining: "/proc/nope").isWritable)
    }

    @Test func `a room without a state folder plays, and is warned`() {
        let nowhere = FolderFacts(examining: "/proc/nope")
        #expect(Judgement.state(nowhere).map(\.level) == [.warning])
        #expect(Judgement.state(nowhere).first?.advice?.contains("--state-folder") == true)
        let good = FolderFacts(path: "/s", existing: "/", isWritable: true, freeBytes: 0)
        #expect(Judgement.state(good).map(\.level) == [.ok])
    }

    @Test(arguments: [
        (true, 2_000, Finding.Level.ok), (true, 1_999, .note), (true, 200, .note),
        (true, 199, .warning), (false, 9_999, .warning),
    ])
    func `the cache folder is judged by what fits`(
        isWritable: Bool, megabytes: Int64, level: Finding.Level
    ) {
        let facts = FolderFacts(
            path: "/c/tutti", existing: "/c", isWritable: isWritable,
            freeBytes: megabytes * 1_000_000)
        #expect(Judgement.cache(facts, Self.wishes).map(\.level) == [level])
    }
}
