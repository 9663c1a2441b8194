import Foundation
import Testing
import TuttiFFmpegMedia
import TuttiGroupControl
import TuttiPlayout

@testable import TuttiRoom

@Suite struct `Playlists` {
    private func places(
        _ bytes: [UInt8], _ format: Playlist.Format = .m3u, base: String = "/music"
    ) -> [String]? {
        Playlist(bytes, format, base: base)?.entries.map { $0.places[0] }
    }

    @Test func `an M3U of any program`() {
        let text =
            "\u{FEFF}#EXTM3U\r\n#EXTINF:123 logo=\"a,b\",Artist - One, two\r\n"
            + "a b.flac\r\n\r\n  # a remark\n#EXTINF:-1\n/abs/c.mp3 \nsub/../d.ogg\r"
            + "http://host/x?y=1#z\nHTTPS://host/e.mp3\nfile:///f%20g.wav\nfile://localhost/h%23.wav"
        let list = Playlist(Array(text.utf8), .m3u8, base: "/music/")
        #expect(
            list?.entries.map { $0.places[0] } == [
                "/music/a b.flac", "/abs/c.mp3", "/music/sub/../d.ogg", "http://host/x?y=1#z",
                "HTTPS://host/e.mp3", "/f g.wav", "/h#.wav",
            ])
        #expect(list?.entries[0].title == "Artist - One, two")
        #expect(list?.entries[1].title == nil)
        #expect(list?.isStream == false)
    }

    @Test func `a file of another machine is not looked for on this one`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.writeNoise(seconds: 0.1, seed: 1, as: "a.wav")
        let list = try folder.write(Data("file://nas\(path)\n".utf8), as: "list.m3u")
        for argument in ["file://nas\(path)", list] {
            var items = AssetList([argument])
            guard case .passedOver(let passed)? = items.next(MediaCancellation()) else {
                Issue.record("\(argument) is played")
                continue
            }
            #expect(passed.reason.contains("machine nas") && passed.isMissed)
        }
        for argument in ["file://\(path)", "file://localhost\(path)", "FILE://LOCALHOST\(path)"] {
            var items = AssetList([argument])
            guard case .item(let item)? = items.next(MediaCancellation()) else {
                Issue.record("\(argument) is not played")
                continue
            }
            #expect(item.location == path)
        }
    }

    @Test func `a name that is no UTF-8 may be the file's, or Latin-1 for one in UTF-8`() throws {
        let list = try #require(
            Playlist(Array("caf".utf8) + [0xE9] + Array(".mp3".utf8), .m3u, base: ""))
        #expect(
            list.entries[0].places.map(\.fileNameBytes) == [
                Array("caf".utf8) + [0xE9] + Array(".mp3".utf8), Array("café.mp3".utf8),
            ])
    }

    @Test func `percent signs and backslashes are taken by the letter first`() throws {
        let list = try #require(
            Playlist(Array(#"CD%201\100% a.mp3"#.utf8), .m3u, base: "/m"))
        #expect(
            list.entries[0].places == [
                #"/m/CD%201\100% a.mp3"#, #"/m/CD 1\100% a.mp3"#, "/m/CD%201/100% a.mp3",
                "/m/CD 1/100% a.mp3",
            ])
    }

    @Test func `UTF-16 is read, and what is no text is none`() {
        let text = "#EXTM3U\nä.mp3\n"
        var little: [UInt8] = [0xFF, 0xFE]
        var big: [UInt8] = [0xFE, 0xFF]
        for unit in text.utf16 {
            let (high, low) = (UInt8(unit >> 8), UInt8(unit & 255))
            little += [low, high]
            big += [high, low]
        }
        #expect(places(little) == ["/music/ä.mp3"])
        #expect(places(big) == ["/music/ä.mp3"])
        #expect(places([0x49, 0x44, 0x33, 0, 1, 2]) == nil)
        #expect(places([]) == [])
    }

    @Test func `a stream in pieces is no list`() {
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\npiece0.ts\n"
        #expect(Playlist(Array(text.utf8), .m3u8, base: "")?.isStream == true)
    }

    @Test func `a PLS goes by its numbers`() {
        let text = "[playlist]\r\nFile10=c.mp3\r\nfile2=b.mp3\nTitle2= Two \nFile1=http://h/a\n"
        let list = Playlist(Array(text.utf8), .pls, base: "/m")
        #expect(list?.entries.map { $0.places[0] } == ["http://h/a", "/m/b.mp3", "/m/c.mp3"])
        #expect(list?.entries.map(\.title) == [nil, "Two", nil])
    }

    @Test func `an XSPF names addresses`() {
        let text = """
            <?xml version="1.0"?><playlist xmlns="http://xspf.org/ns/0/"><title>All</title>
            <!-- <track><location>no.mp3</location></track> --><trackList>
            <track id="1"><title>A &amp; B</title><location>file:///a%20b.flac</location></track>
            <track/><x:track><location> c%C3%A9&#x20;d.mp3 </location></x:track>
            <track><location><![CDATA[http://h/?a&b]]></location></track>
            </trackList></playlist>
            """
        let list = Playlist(Array(text.utf8), .xspf, base: "/m")
        #expect(
            list?.entries.map { $0.places[0] } == ["/a b.flac", "/m/cé d.mp3", "http://h/?a&b"])
        #expect(list?.entries.first?.title == "A & B")
    }

    /// What would take hours, if time grew with the square.
    @Test(
        .timeLimit(.minutes(1)),
        arguments: ["<", "</", "<track", "<track>", "<!--", "&#", "<a>"])
    func `a broken XSPF of a hostile server is read once`(piece: String) {
        let text = "<track>" + String(repeating: piece, count: 300_000) + ">"
        let list = Playlist(Array(text.utf8), .xspf, base: "/m")
        #expect(list?.entries.isEmpty ?? true)
    }

    @Test(arguments: [
        (Playlist.Format.m3u, "a\n"), (.xspf, "<track><location>a</location></track>"),
    ])
    func `of a list without end the first are kept`(format: Playlist.Format, entry: String) {
        let text = String(repeating: entry, count: 50_000)
        let list = Playlist(Array(text.utf8), format, base: "/m")
        #expect(list?.entries.count == SessionState.longestQueue + 1)
    }

    /// The system takes a name up to its first zero: `song.flac` where a list says something else.
    @Test func `a zero is in no name, whatever the encoding`() {
        let text = "song.flac\0/../other.flac\n"
        let units = text.utf16.flatMap { unit -> [UInt8] in [UInt8(unit & 255), UInt8(unit >> 8)] }
        let all: [[UInt8]] = [
            Array(text.utf8), [0xEF, 0xBB, 0xBF] + Array(text.utf8), [0xFF, 0xFE] + units,
        ]
        for bytes in all {
            #expect(Playlist(bytes, .m3u, base: "") == nil)
        }
        let track = "<track><location>song.flac&#0;x&#x0;</location></track>"
        let list = Playlist(Array(track.utf8), .xspf, base: "")
        #expect(list?.entries.first?.places.first == "song.flac&#0;x&#x0;")
    }

    @Test func `a list of a server names addresses beside it`() {
        let text = "a b.mp3\n/root.mp3\nhttp://other/c.mp3\n//third/d.mp3"
        #expect(
            places(Array(text.utf8), base: "http://host:80/dir/list.m3u?x=/y") == [
                "http://host:80/dir/a%20b.mp3", "http://host:80/root.mp3", "http://other/c.mp3",
                "http://third/d.mp3",
            ])
    }

    /// Whatever the bytes, there is an answer.
    @Test(arguments: 1...60 as ClosedRange<UInt64>)
    func `damaged lists do no harm`(seed: UInt64) {
        var state = seed
        func random(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % bound
        }
        let words = [
            "<track>", "</track>", "<location>", "</location>", "<", ">", "&", "&#x110000;", "%",
            "%4", "%zz", "File", "=", "\n", "\r", "#EXTINF:", ",", "\"", "://", "file:", "file://",
            "http://", "<![CDATA[", "]]>", "<!--", "\\", "\u{FEFF}",
        ]
        var bytes: [UInt8] = []
        for _ in 0..<random(60) { bytes += Array(words[random(words.count)].utf8) }
        for _ in 0..<random(4) where !bytes.isEmpty {
            bytes[random(bytes.count)] = UInt8(random(256))
        }
        for format in Playlist.Format.allCases {
            for base in ["", "/m", "http://h", "http://h/x"] {
                let list = Playlist(bytes, format, base: base)
                #expect(list?.entries.allSatisfy { !$0.places.isEmpty } ?? true)
            }
        }
    }
}

@Suite struct `The order of names` {
    @Test func `numbers count, and capitals do not`() {
        let names = ["a", "B", "track 1", "Track 2", "track 02b", "track 10", "2", "10", "010"]
        #expect(
            names.shuffled().sorted { NaturalOrder.areInOrder($0, $1) } == [
                "2", "010", "10", "a", "B", "track 1", "Track 2", "track 02b", "track 10",
            ])
    }

    private func file(
        _ name: String, _ track: Int? = nil, disc: Int? = nil, album: String? = "A"
    ) -> AlbumOrder.File {
        AlbumOrder.File(name: name, tags: .init(disc: disc, track: track, album: album))
    }

    @Test func `an album goes by disc and track, and what cannot be read is last`() {
        let files = [
            AlbumOrder.File(name: "0 bad", tags: nil), file("x", 2, disc: 1), file("y", 1, disc: 2),
            file("z", 1, disc: 1), file("w", 10, disc: 1),
        ]
        #expect(AlbumOrder.sorted(files).map(\.name) == ["z", "x", "w", "y", "0 bad"])
    }

    @Test func `a few files with tags make no album`() {
        let files = [
            file("b", 1), AlbumOrder.File(name: "a", tags: nil),
            AlbumOrder.File(name: "c", tags: nil),
        ]
        #expect(AlbumOrder.sorted(files).map(\.name) == ["a", "b", "c"])
    }

    @Test func `several albums, and tracks without a number, go by name`() {
        #expect(
            AlbumOrder.sorted([file("b", 1), file("a", 2, album: "B")]).map(\.name) == ["a", "b"])
        #expect(AlbumOrder.sorted([file("b", 1), file("a")]).map(\.name) == ["a", "b"])
        #expect(
            AlbumOrder.sorted([file("2 a", 1, album: nil), file("1 b", 2, album: nil)])
                .map(\.name) == ["2 a", "1 b"])
    }
}
