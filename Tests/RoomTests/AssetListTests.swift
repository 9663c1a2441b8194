import Foundation
import Testing
import TuttiFFmpegMedia
import TuttiPlayout

@testable import TuttiRoom

/// Folders and playlists on a disk.
@Suite struct `What a leader is given` {
    private func withFolder(_ body: (TemporaryFolder) throws -> Void) throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        try body(folder)
    }

    private func make(_ folder: TemporaryFolder, _ names: [String]) throws {
        for name in names {
            let path = folder.path(name)
            try FileManager.default.createDirectory(
                atPath: name.hasSuffix("/") ? path : (path as NSString).deletingLastPathComponent,
                withIntermediateDirectories: true)
            if !name.hasSuffix("/") { _ = try folder.write(Data("x".utf8), as: name) }
        }
    }

    private func steps(
        _ arguments: [String], below root: String
    ) -> (items: [String], passed: [AssetList.PassedOver]) {
        var list = AssetList(arguments)
        var items: [String] = []
        var passed: [AssetList.PassedOver] = []
        while let step = list.next(MediaCancellation()) {
            switch step {
            case .item(let item):
                items.append(item.location.replacingOccurrences(of: root + "/", with: ""))
            case .passedOver(var one):
                one.subject = one.subject.replacingOccurrences(of: root + "/", with: "")
                passed.append(one)
            }
        }
        #expect(list.remaining == 0)
        return (items, passed)
    }

    @Test func `a folder is played with what is below it, in the order of names`() throws {
        try withFolder { folder in
            try make(
                folder,
                [
                    "m/10 c.flac", "m/2 b.flac", "m/cover.jpg", "m/a.log", "m/a.cue", "m/list.m3u",
                    "m/.hidden.flac", "m/CD10/x.mp3", "m/CD2/y.mp3", "m/CD2/Thumbs.db",
                ])
            let (items, passed) = steps([folder.path("m")], below: folder.path("m"))
            #expect(items == ["2 b.flac", "10 c.flac", "CD2/y.mp3", "CD10/x.mp3"])
            #expect(
                Set(passed.map(\.subject)) == [
                    "cover.jpg", "a.log", "a.cue", "list.m3u", ".hidden.flac", "CD2/Thumbs.db",
                ])
            #expect(passed.allSatisfy { !$0.isMissed })
        }
    }

    /// A disc that was copied as one file.
    @Test func `a cue sheet beside the file that it names stands for it`() throws {
        try withFolder { folder in
            try make(folder, ["m/0 intro.flac", "m/b album.flac", "m/c.flac", "m/other.flac"])
            func sheet(_ file: String) -> Data {
                Data(
                    """
                    FILE "\(file)" WAVE
                    TRACK 01 AUDIO
                    TITLE "One"
                    INDEX 01 00:00:00
                    TRACK 02 AUDIO
                    TITLE "Two"
                    INDEX 01 03:00:00
                    """.utf8)
            }
            // It still names the file that was copied first.
            _ = try folder.write(sheet("b album.wav"), as: "m/b album.cue")
            _ = try folder.write(sheet("b album.flac"), as: "m/b album.flac.cue")
            _ = try folder.write(sheet("elsewhere/c.flac"), as: "m/c.cue")
            var list = AssetList([folder.path("m")])
            var items: [AssetList.Item] = []
            var passed: [AssetList.PassedOver] = []
            while let step = list.next(MediaCancellation()) {
                switch step {
                case .item(let item): items.append(item)
                case .passedOver(let one): passed.append(one)
                }
            }
            #expect(
                items.map { AssetName.shown($0.location) } == [
                    "0 intro.flac", "b album.flac", "b album.flac", "c.flac", "other.flac",
                ])
            #expect(items.map(\.title) == [nil, "One", "Two", nil, nil])
            #expect(
                items.map(\.span) == [
                    nil, CueSpan(first: 0, end: 13_500), CueSpan(first: 13_500, end: nil), nil, nil,
                ])
            #expect(passed.map { $0.subject.hasSuffix(".cue") } == [true, true])
            #expect(passed.allSatisfy { !$0.isMissed })
        }
    }

    @Test func `a folder is looked into when it is its turn`() throws {
        try withFolder { folder in
            try make(folder, ["m/a/1.flac", "m/b/2.flac"])
            var list = AssetList([folder.path("m"), "later.flac"])
            _ = list.next(MediaCancellation())
            #expect(list.remaining == 2)
            try make(folder, ["m/b/3.flac"])
            _ = list.next(MediaCancellation())
            guard case .item(let item)? = list.next(MediaCancellation()) else {
                Issue.record("what came later is not there")
                return
            }
            #expect(item.location.hasSuffix("m/b/3.flac"))
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `links in a circle and links to nowhere end in a line each`() throws {
        try withFolder { folder in
            try make(folder, ["m/a.flac", "m/sub/b.flac"])
            let files = FileManager.default
            for (name, target) in [("m/sub/up", ".."), ("m/self", "."), ("m/gone.flac", "nowhere")]
            {
                try files.createSymbolicLink(
                    atPath: folder.path(name), withDestinationPath: target)
            }
            let (items, passed) = steps([folder.path("m")], below: folder.path("m"))
            #expect(items == ["a.flac", "sub/b.flac"])
            #expect(passed.map(\.subject).sorted() == ["gone.flac", "self", "sub/up"])
        }
    }

    @Test func `playlists that were opened are told`() throws {
        try withFolder { folder in
            try make(folder, ["a.flac"])
            _ = try folder.write(Data("a.flac\n".utf8), as: "inner.m3u")
            let outer = try folder.write(Data("inner.m3u\na.flac\n".utf8), as: "outer.m3u")
            var list = AssetList([outer])
            while list.next(MediaCancellation()) != nil {}
            #expect(list.playlists == [outer, folder.path("inner.m3u")])
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `playlists that contain each other end in a line each`() throws {
        try withFolder { folder in
            try make(folder, ["a.flac"])
            _ = try folder.write(Data("a.flac\nb.m3u\n".utf8), as: "a.m3u")
            _ = try folder.write(Data("a.m3u\na.flac\nb.m3u\n".utf8), as: "b.m3u")
            let (items, passed) = steps([folder.path("a.m3u")], below: folder.path("."))
            #expect(items.count == 2)
            #expect(passed.count == 2)
            #expect(passed.allSatisfy { $0.reason.contains("contains itself") })
        }
    }

    @Test func `a playlist finds the file that is there`() throws {
        try withFolder { folder in
            try make(folder, ["sub/café.flac", "100%25.flac", "sub/b.flac"])
            let text =
                Array("sub\\caf".utf8) + [0xE9] + Array(".flac\n100%25.flac\nsub%2Fb.flac\n".utf8)
            _ = try folder.write(Data(text), as: "l.m3u")
            let (items, _) = steps([folder.path("l.m3u")], below: folder.path("x") + "/..")
            #expect(
                items.map { ($0 as NSString).lastPathComponent } == [
                    "café.flac", "100%25.flac", "b.flac",
                ])
        }
    }

    @Test func `names keep their bytes`() throws {
        try withFolder { folder in
            try make(folder, ["m/"])
            let name = Array("m/caf".utf8) + [0xE9] + Array(".flac".utf8)
            let path = Array(folder.path("").utf8) + name
            let descriptor = open(
                path.map { CChar(bitPattern: $0) } + [0], O_CREAT | O_WRONLY, 0o600)
            try #require(descriptor >= 0)
            close(descriptor)
            var list = AssetList([folder.path("m")])
            guard case .item(let item)? = list.next(MediaCancellation()) else {
                Issue.record("no item")
                return
            }
            #expect(item.location.fileNameBytes.suffix(6) == [0xE9] + Array(".flac".utf8))
            #expect(FileIdentity(path: item.location) != nil)
            #expect(item.location.readableFileName.hasSuffix("café.flac"))
        }
    }

    @Test func `an empty folder, an empty list and what is no list are missed`() throws {
        try withFolder { folder in
            try make(folder, ["m/"])
            _ = try folder.write(Data("#EXTM3U\n".utf8), as: "empty.m3u")
            _ = try folder.write(Data([0, 1, 2]), as: "none.m3u")
            for name in ["m", "empty.m3u", "none.m3u"] {
                let (items, passed) = steps([folder.path(name)], below: folder.path("."))
                #expect(items.isEmpty)
                #expect(passed.count == 1 && passed[0].isMissed, "\(name)")
            }
            let (items, _) = steps(["missing.flac", "http://h/a.mp3"], below: folder.path("."))
            #expect(items == ["missing.flac", "http://h/a.mp3"])
        }
    }
}
