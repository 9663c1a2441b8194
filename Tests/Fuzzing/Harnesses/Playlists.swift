@testable import TuttiRoom

extension Harness {
    static let playlists = [
        playlist(
            "m3u", .m3u, lists: ["#EXTM3U\n#EXTINF:123 logo=\"a,b\",Artist - Title\na%20b.mp3\n"]),
        playlist(
            "pls", .pls,
            lists: ["[playlist]\nFile1=a.mp3\nTitle1=A\nFile2=http://host/b\nNumberOfEntries=2\n"]),
        playlist(
            "xspf", .xspf,
            lists: [
                "<track><location>a&#0;b</location></track>",
                "<playlist><trackList><track><location>file:///a%20b</location>"
                    + "<title><![CDATA[A & B]]></title></track><!-- x --><x:track>"
                    + "<location>b&amp;c&#x21;</location></x:track></trackList></playlist>",
            ]),
        playlist("cue", .cue, lists: [cueSheet]), cueTags,
    ]

    private static let cueSheet =
        "PERFORMER \"P\"\nTITLE \"T\"\nFILE \"a \"b\" c.wav\" WAVE\n TRACK 01 AUDIO\n"
        + "  TITLE \"One\"\n  INDEX 00 00:00:00\n  INDEX 01 00:02:00\n TRACK 02 AUDIO\n"
        + "  INDEX 01 03:04:74\nFILE b.flac WAVE\n TRACK 03 AUDIO\n  INDEX 01 00:00:00\n"

    /// The first byte says where the list is.
    private static func playlist(
        _ name: String, _ format: Playlist.Format, lists: [String]
    ) -> Harness {
        Harness(
            name: "playlist-\(name)",
            seeds: {
                lists.flatMap { list in
                    let utf16 = list.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
                    return [
                        [0] + Array(list.utf8), [1] + Array(list.utf8), [2, 0xFF, 0xFE] + utf16,
                    ]
                }
            },
            longest: 16_384,
            check: .plain { bytes in
                guard let first = bytes.first else { return }
                let base = ["", "/music/Å\u{301}", "http://host/a/b.m3u?c"][Int(first) % 3]
                guard let list = Playlist(Array(bytes.dropFirst()), format, base: base) else {
                    return
                }
                try check(list.entries, limit: Playlist.mostEntries)
                // A sheet counts tracks, of which a file has many.
                try expect(
                    list.entries.count <= bytes.count, "\(list.entries.count) of \(bytes.count)")
            })
    }

    private static let cueTags = Harness(
        name: "cue-tags",
        seeds: { [Array(cueSheet.utf8), Array(cueSheet.prefix(120).utf8)] },
        check: .plain { bytes in
            let text = String(decoding: bytes, as: UTF8.self)
            guard let sheet = CueSheet(within: "/music/a.flac", text) else { return }
            try check(sheet.entries, limit: Playlist.mostEntries)
            try expect(
                sheet.entries.allSatisfy { $0.places == ["/music/a.flac"] }, "of another file")
        })

    private static func check(_ entries: [Playlist.Entry], limit: Int) throws {
        try expect(entries.count <= limit, "\(entries.count) entries")
        for entry in entries {
            try expect(!entry.places.isEmpty, "an entry without a place")
            try expect(
                !entry.places.contains { $0.utf8.contains(0) },
                "a zero in the name of a file: \(entry.places)")
            try expect(entry.title?.isEmpty != true, "a title without letters")
            guard let span = entry.span else { continue }
            try expect(CueSpan.units.contains(span.first), "begins at \(span.first)")
            try expect(
                span.end.map { span.first < $0 && CueSpan.units.contains($0) } ?? true,
                "\(span) is no part of anything")
            for rate in [8_000, 44_100, 768_000] {
                guard let frames = span.frames(sampleRate: rate, count: 1 << 40) else { continue }
                try expect(!frames.isEmpty, "\(span) has no frames")
            }
        }
    }
}
