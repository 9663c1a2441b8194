import TuttiPlayout

@testable import TuttiFFmpegMedia
@testable import TuttiRoom

/// Addresses: of leaders, files, servers and uploads, as people and peers write them.
extension Harness {
    static let places = [addresses, redirections, webHeaders, uploads, names]

    private static let addresses = Harness(
        name: "addresses",
        seeds: {
            [
                "kitchen", "192.168.1.20:7430", "[fe80::1%3]:7430", "[::1]", "fe80::1",
                "http://user:word@[::1]:8080/a%20b?c#d", "HTTPS://host", "file:///a%20b.mp3",
                "file://localhost/a", "/a/b.flac", "ftp://host/a", "http://host/a\r\nX: b",
            ].map { Array($0.utf8) }
        },
        longest: 512,
        check: .plain { bytes in
            let text = String(decoding: bytes, as: UTF8.self)
            // A host that begins with an accent is none, and would put it onto the bracket before.
            if let place = try? HostPort(parsing: text),
                "[\(place.host)]".count == place.host.count + 2
            {
                try expect((1...65_535).contains(place.port), "port \(place.port)")
                try expectEqual(try HostPort(parsing: place.description), place, "written again")
            }
            if let address = WebAddress(text) {
                try check(address)
                try expectEqual(WebAddress(address.text), address, "written again")
            }
            if let location = try? MediaLocation(text), location.isRemote {
                try check(try some(location.webAddress, "a remote place has an address"))
            }
        })

    /// What is asked of a server is one request, whoever made up its address.
    private static func check(_ address: WebAddress) throws {
        try expect((1...65_535).contains(address.port), "port \(address.port)")
        try expect(
            address.path.utf8.first == UInt8(ascii: "/"),
            "a path begins with a slash: \(address.path)")
        for part in [address.path, address.host] {
            try expect(
                !part.utf8.contains { $0 <= 0x20 || $0 == 0x7F },
                "a request would end within \(part.debugDescription)")
        }
    }

    private static func some<Value>(_ value: Value?, _ sentence: String) throws -> Value {
        guard let value else { throw Finding(description: sentence) }
        return value
    }

    private static let redirections = Harness(
        name: "redirections",
        seeds: {
            [
                "/b", "b?c", "?c", "//other/b", "/a b", "/a\rX: b", "//h \u{30A}/ \u{30A}",
                "https://other:8443/b#c", "",
                "../b",
            ].map { Array($0.utf8) }
        },
        longest: 512,
        check: .plain { bytes in
            guard let here = WebAddress("http://host:81/a/b?c") else { return }
            let target = String(decoding: bytes, as: UTF8.self)
            guard let there = here.redirected(to: target) else { return }
            try check(there)
            try expectEqual(WebAddress(there.text), there, "written again")
        })

    private static let webHeaders = Harness(
        name: "web-headers",
        seeds: {
            [
                "HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\ntransfer-encoding:Chunked\r\n\r\n",
                "HTTP/1.0 302 Found\nLocation: http://host/a\n\nbody",
            ].map { Array($0.utf8) }
        },
        check: .plain { bytes in
            let text = String(decoding: bytes, as: UTF8.self)
            guard let header = WebHeader.parse(text) else { return }
            try expect(
                header.fields.keys.allSatisfy { $0 == $0.lowercased() }, "names in lower case")
            _ = header.hasChunks
            guard let target = header.target else { return }
            try expect((300..<400).contains(header.status), "sent on by \(header.status)")
            if let there = WebAddress("http://host/")?.redirected(to: target) { try check(there) }
        })

    private static let uploads = Harness(
        name: "uploads",
        seeds: {
            let id = String(repeating: "0a", count: 32)
            return [
                UploadReference(id: id).text,
                UploadReference(
                    id: id, title: "Ä & b?", span: CueSpan(first: 75, end: 150)
                ).text,
                "upload:\(id)?first=0&end=1",
            ].map { Array($0.utf8) }
        },
        longest: 512,
        check: .plain { bytes in
            let text = String(decoding: bytes, as: UTF8.self)
            guard !bytes.contains(0), let upload = UploadReference(text) else { return }
            let again = UploadReference(upload.text)
            try expectEqual(again?.span, upload.span, "the part that is meant")
            try expectEqual(again?.title ?? "", upload.title ?? "", "the title")
            try expectEqual(again?.id, upload.id, "the file")
        })

    /// What a file is called on this disk is never a way to another folder.
    private static let names = Harness(
        name: "file-names",
        seeds: {
            ["a/b.flac", "..", "a/../..", "%2e%2e%2f", "/etc/passwd"].map { Array($0.utf8) }
        },
        longest: 1_024,
        check: .plain { bytes in
            let name = UploadFolder.fileName(
                String(fileName: PlaylistPlace.unescaped(bytes[...])))
            let kept = name.fileNameBytes
            try expect((1...255).contains(kept.count), "\(kept.count) bytes")
            try expect(
                !kept.contains { $0 < 0x20 || $0 == UInt8(ascii: "/") }, "\(name.debugDescription)")
            try expect(name != "." && name != "..", "a folder")
            _ = AssetName.kind(of: name)
            _ = AssetName.title(ofAddress: name)
            _ = AssetName.ending(of: name, most: 8)
            let escaped = AssetName.escaped(name)
            try expectEqual(
                PlaylistPlace.unescaped(Array(escaped.utf8)[...]), Array(kept), "escaped and back")
        })
}
