import Foundation
import Testing
import TuttiPlayout
import TuttiTiming

@testable import TuttiFFmpegMedia

/// What web servers do, and what a leader makes of it.
@Suite(.timeLimit(.minutes(5))) struct WebTests {
    private let folder = Fixtures.path("web-\(UUID().uuidString)")

    private func cache(_ trust: MediaTrust = .system) -> MediaCache {
        MediaCache(folder: folder, limit: 10_000_000, trust: trust)
    }

    private func error(_ url: String, _ trust: MediaTrust = .system) -> MediaError? {
        do throws(MediaError) {
            _ = try cache(trust).download(url: url)
            return nil
        } catch {
            return error
        }
    }

    private func song() throws -> Data {
        try Data(contentsOf: URL(fileURLWithPath: Fixtures.path("16.flac")))
    }

    @Test func `a file without a length is loaded and counted like others`() throws {
        let server = FileServer(
            try song(), .init(hasRanges: false, hasLength: false, isChunked: true))
        let file = try cache().download(url: server.url("/body.flac"))
        #expect(try Data(contentsOf: URL(fileURLWithPath: file.path)) == song())
        #expect(try FFmpegSource(file.path).format.frameCount == Int64(Fixtures.frameCount))
    }

    @Test func `a radio station is called one, by its name`() throws {
        let server = FileServer(
            try song(),
            .init(
                hasRanges: false, hasLength: false, isEndless: true,
                extraHeader: "icy-name: Night Radio\r\nicy-br: 128\r\n"))
        let error = error(server.url())
        #expect(error?.code == .unsupported)
        #expect(error?.reason.contains("radio station (Night Radio)") == true, "\(error as Any)")
    }

    @Test func `a download that breaks off goes on where it was`() throws {
        let body = try song()
        let server = FileServer(body, .init(breaksAfter: body.count / 2, breaksOnce: true))
        let file = try cache().download(url: server.url("/body.flac"))
        #expect(try Data(contentsOf: URL(fileURLWithPath: file.path)) == body)
        // Nothing was sent twice but what was on the way when the connection broke.
        #expect(server.bytesSent < body.count + body.count / 4)
    }

    @Test func `a body of HTTP 1.1 may end with its connection`() throws {
        let server = FileServer(try song(), .init(hasRanges: false, hasLength: false))
        let file = try cache().download(url: server.url("/body.flac"))
        #expect(try Data(contentsOf: URL(fileURLWithPath: file.path)) == song())
    }

    /// Where the server closes the connection after each body, too.
    @Test(arguments: [true, false], ["", "Connection: close\r\n"])
    func `a body that ends before its last chunk is not whole`(
        isBetween: Bool, closing: String
    ) throws {
        let body = try song()
        let server = FileServer(
            body,
            .init(
                hasRanges: false, hasLength: false, breaksAfter: 3 * 16_384, extraHeader: closing,
                isChunked: true, breaksBetweenChunks: isBetween))
        let stream = try ByteStream(
            MediaLocation(server.url("/body.flac")), cancellation: MediaCancellation())
        var received = 0
        let failure = #expect(throws: MediaError.self) {
            while case let bytes = try stream.next(), !bytes.isEmpty { received += bytes.count }
        }
        #expect(failure?.code == .network)
        #expect(received > 2 * 16_384)
    }

    @Test(arguments: [(false, false), (true, false), (true, true)])
    func `a server that cannot go on in the middle begins again`(
        isChunked: Bool, isBetween: Bool
    ) throws {
        let body = try song()
        let server = FileServer(
            body,
            .init(
                hasRanges: false, hasLength: !isChunked, breaksAfter: body.count / 2,
                isChunked: isChunked, breaksBetweenChunks: isBetween, breaksOnce: true))
        let file = try cache().download(url: server.url("/body.flac"))
        #expect(try Data(contentsOf: URL(fileURLWithPath: file.path)) == body)
    }

    @Test func `a server that always breaks off is given up, and nothing is left`() throws {
        let server = FileServer(
            try song(), .init(hasRanges: false, hasLength: true, breaksAfter: 0))
        #expect(error(server.url())?.code == .network)
        let left = try FileManager.default.contentsOfDirectory(atPath: folder)
        #expect(left.filter { $0.hasSuffix(".part") }.isEmpty)
    }

    @Test func `redirections are followed, but not in a circle and not to files`() throws {
        let server = FileServer(try song())
        let to = FileServer(Data(), .init(redirect: server.url()))
        #expect(error(to.url("/there")) == nil)
        let circle = FileServer(Data(), .init(redirect: "/again"))
        let round = error(circle.url("/a"))
        #expect(round?.reason.contains("redirected more than") == true, "\(round as Any)")
        for target in ["file:///etc/passwd", "ftp://example.invalid/a"] {
            let refused = error(FileServer(Data(), .init(redirect: target)).url("/a"))
            #expect(
                refused?.reason.contains("not followed") == true, "\(target): \(refused as Any)")
        }
    }

    @Test func `a server that leads to nowhere is told from one that is not there`() throws {
        let nowhere = FileServer(Data(), .init(redirect: ""))
        let refused = error(nowhere.url("/a"))
        #expect(refused?.reason.contains("does not say where") == true, "\(refused as Any)")
    }

    @Test func `the other of the two schemes is named`() throws {
        let plain = FileServer(try song())
        let secure = error(plain.url("/body.flac").replacing("http:", with: "https:"))
        #expect(secure?.reason.contains("speaks http without") == true, "\(secure as Any)")
        let server = try SecureServer(name: "localhost", serving: Fixtures.path("16.flac"))
        let open = error(server.url.replacing("https:", with: "http:"))
        #expect(open?.reason.contains("speaks https, not http") == true, "\(open as Any)")
    }

    @Test(arguments: ["http://", "https://:80/a.mp3", "http://nas:99999/a.mp3"])
    func `an address without a server is refused at once`(text: String) {
        let refused = error(text)
        #expect(refused?.code == .unsupported)
        #expect(refused?.reason.contains("names no server") == true, "\(refused as Any)")
    }

    @Test func `a body that is sent compressed is refused by name`() throws {
        let path = Fixtures.path("packed.wav")
        try Data(contentsOf: URL(fileURLWithPath: Fixtures.path("s16.wav")))
            .write(to: URL(fileURLWithPath: path))
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/gzip")
        process.arguments = ["--force", path]
        try process.run()
        process.waitUntilExit()
        let server = FileServer(
            try Data(contentsOf: URL(fileURLWithPath: path + ".gz")),
            .init(hasRanges: false, extraHeader: "Content-Encoding: gzip\r\n"))
        let error = error(server.url())
        #expect(error?.reason.contains("compressed (gzip)") == true, "\(error as Any)")
    }

    @Test func `a body that is called compressed and is not ends all the same`() throws {
        let server = FileServer(
            try song(), .init(hasRanges: false, extraHeader: "Content-Encoding: gzip\r\n"))
        let stream = try ByteStream(
            MediaLocation(server.url()), patience: .milliseconds(300),
            cancellation: MediaCancellation())
        #expect(throws: MediaError.self) {
            while case let bytes = try stream.next(), !bytes.isEmpty {}
        }
    }

    @Test func `a scheme may be written in capitals`() throws {
        let server = FileServer(try song())
        #expect(error("HTTP" + server.url().dropFirst(4)) == nil)
        #expect(try MediaLocation("HtTpS://host/a.mp3").address == "https://host/a.mp3")
    }

    @Test func `a file URL names a file of this machine`() throws {
        let name = Fixtures.path("a b+c%.flac")
        try song().write(to: URL(fileURLWithPath: name))
        for url in ["file://", "FILE://", "file://localhost", "file://LOCALHOST"] {
            let path = Fixtures.path("a%20b+c%25.flac")
            #expect(try FFmpegSource(url + path).format.frameCount == Int64(Fixtures.frameCount))
        }
        #expect(throws: MediaError.self) { try MediaLocation("file://nas/music/a.flac") }
        // What is no escape is itself.
        #expect(try MediaLocation("file:///a%2").path == "/a%2")
        #expect(try MediaLocation("file:///a%zz").path == "/a%zz")
    }

    @Test(arguments: [
        ("http://host/a?b#c", "host", 80, "/a?b"), ("https://host", "host", 443, "/"),
        ("http://u:p@host:8080/x", "host", 8_080, "/x"), ("http://[::1]:81/", "::1", 81, "/"),
        ("http://host?q", "host", 80, "/?q"),
    ])
    func `an address has its parts`(text: String, host: String, port: Int, path: String) throws {
        let address = try #require(WebAddress(text))
        #expect(address.host == host && address.port == port && address.path == path)
    }

    @Test(arguments: [
        ("/b?c#d", "http://u:p@host:81/b?c"), ("b", "http://u:p@host:81/x/b"),
        ("?q", "http://u:p@host:81/x/y?q"), ("//[::1]/b", "http://[::1]:80/b"),
        ("https://other", "https://other:443/"),
    ])
    func `a redirection is read beside the address that it stands for`(
        target: String, leadsTo: String
    ) throws {
        let address = try #require(WebAddress("http://u:p@host:81/x/y?z"))
        #expect(address.redirected(to: target)?.text == leadsTo)
    }

    /// Whoever makes up an address, in a playlist or a redirection, asks for that one thing.
    @Test(arguments: ["\r\n", "\n", "\r", "\0", "\t", "\u{7F}"])
    func `an address does not end the line of a request`(end: String) throws {
        let address = try #require(WebAddress("http://host/x/y"))
        for part in ["http://host/a\(end)X: b", "http://ho\(end)st/", "http://u\(end):p@host/"] {
            #expect(WebAddress(part) == nil)
            #expect(address.redirected(to: part) == nil)
            #expect(throws: MediaError.self) { try MediaLocation(part) }
        }
        for target in ["/a", "a", "?a", ""] {
            #expect(address.redirected(to: target + end) == nil)
        }
    }

    @Test func `a blank in a path is written as it is asked for, and no host has one`() throws {
        let address = try #require(WebAddress("http://host/a b?c d"))
        #expect(address.path == "/a%20b?c%20d")
        #expect(address.redirected(to: "e f")?.path == "/e%20f")
        #expect(WebAddress("http://ho st/") == nil)
        // With an accent it is another character, and the same code point.
        #expect(WebAddress("http://ho \u{30A}st/") == nil)
        #expect(WebAddress("http://host/a \u{30A}b")?.path == "/a%20\u{30A}b")
    }

    /// Whether a certificate is looked at depends on the host, which the library that connects finds by
    /// code points.
    @Test func `an accent on a slash hides no host`() throws {
        let address = try #require(WebAddress("https://other/\u{30A}@nas.local/a"))
        #expect(address.host == "other" && address.credentials == nil)
        #expect(WebAddress("https://nas.local#\u{30A}@other/a")?.host == "nas.local")
        #expect(address.redirected(to: "/\u{30A}b")?.host == "other")
    }

    @Test(arguments: ["ftp://a/", "http://", "http://:80/", "http://a:0/", "http://a:x/", "a"])
    func `what is no address of the web has none`(text: String) {
        #expect(WebAddress(text) == nil)
    }

    // MARK: Certificates

    @Test func `a server is believed only with a certificate for its name`() throws {
        let mine = try SecureServer(name: "localhost", serving: Fixtures.path("16.flac"))
        let other = try SecureServer(name: "elsewhere.example", serving: Fixtures.path("16.flac"))
        // Signed by nobody this machine knows.
        let unknown = error(mine.url)
        #expect(unknown?.reason.contains("--insecure localhost") == true, "\(unknown as Any)")
        // Signed by somebody we trust, for this name and for another.
        #expect(error(mine.url, MediaTrust(certificates: mine.certificate)) == nil)
        let wrong = error(other.url, MediaTrust(certificates: other.certificate))
        #expect(wrong?.reason.contains("--insecure localhost") == true, "\(wrong as Any)")
        // Named by the owner; another name does not count.
        #expect(error(mine.url, MediaTrust(insecureHosts: ["LOCALHOST"])) == nil)
        #expect(error(mine.url, MediaTrust(insecureHosts: ["nas.local"])) != nil)
        // The player of an application looks, too.
        #expect(throws: MediaError.self) { try FFmpegSource(mine.url) }
    }

    /// `localhost` and `127.0.0.1` are two hosts with one certificate each.
    @Test func `an exception is one host's, and not of where it leads`() throws {
        let target = try SecureServer(name: "localhost", serving: Fixtures.path("16.flac"))
        let first = try SecureServer(name: "nas", redirectingTo: target.url)
        let start = first.url.replacing("localhost", with: "127.0.0.1")
        let named = MediaTrust(insecureHosts: ["127.0.0.1"])
        let refused = error(start, named)
        #expect(refused?.reason.contains("--insecure localhost") == true, "\(refused as Any)")
        // With a certificate that is in order, and where it is named, too.
        let trusted = MediaTrust(
            insecureHosts: ["127.0.0.1"], certificates: target.certificate)
        #expect(error(start, trusted) == nil)
        #expect(error(start, MediaTrust(insecureHosts: ["127.0.0.1", "localhost"])) == nil)
        // Neither does a host that nobody named lead there.
        #expect(error(start, MediaTrust(insecureHosts: ["localhost"])) != nil)
    }

    @Test func `a server that is in order may lead to one that was named`() throws {
        let target = try SecureServer(name: "nas", serving: Fixtures.path("16.flac"))
        let first = try SecureServer(
            name: "localhost",
            redirectingTo: target.url.replacing("localhost", with: "127.0.0.1"))
        let web = FileServer(Data(), .init(redirect: first.url))
        let trust = MediaTrust(insecureHosts: ["127.0.0.1"], certificates: first.certificate)
        #expect(error(first.url, trust) == nil)
        #expect(error(web.url("/there"), trust) == nil)
        #expect(error(first.url, MediaTrust(certificates: first.certificate)) != nil)
    }
}

/// `openssl s_server` with a certificate that it signed itself; ends with the object.
private final class SecureServer {
    let certificate: String
    let url: String
    private let process: Process

    convenience init(name: String, serving path: String) throws {
        try self.init(name, "-WWW", Data(contentsOf: URL(fileURLWithPath: path)))
    }

    convenience init(name: String, redirectingTo target: String) throws {
        let answer = "HTTP/1.1 302 Found\r\nLocation: \(target)\r\nContent-Length: 0\r\n\r\n"
        try self.init(name, "-HTTP", Data(answer.utf8))
    }

    private init(_ name: String, _ manner: String, _ file: Data) throws {
        let folder = Fixtures.path("tls-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
        try file.write(to: URL(fileURLWithPath: folder + "/song.flac"))
        certificate = folder + "/certificate.pem"
        let request = try Self.start(
            ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=\(name)"]
                + ["-addext", "subjectAltName=DNS:\(name)", "-keyout", folder + "/key.pem"]
                + ["-out", certificate], in: folder)
        request.waitUntilExit()
        let port = Self.freePort()
        url = "https://localhost:\(port)/song.flac"
        process = try Self.start(
            ["s_server", manner, "-accept", "\(port)", "-cert", certificate, "-key"]
                + [folder + "/key.pem", "-quiet"], in: folder)
        // It says nothing when it listens: until somebody can connect.
        for _ in 0..<500 where !Self.isOpen(port) { usleep(10_000) }
    }

    deinit {
        // It inherits what this process does with SIGTERM, which may be nothing.
        kill(process.processIdentifier, SIGKILL)
    }

    private static func start(_ arguments: [String], in folder: String) throws -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
        process.arguments = arguments
        process.currentDirectoryURL = URL(fileURLWithPath: folder, isDirectory: true)
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        return process
    }

    private static func address(_ port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    private static let length = socklen_t(MemoryLayout<sockaddr_in>.size)

    private static func freePort() -> Int {
        let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(socket) }
        var address = address(0)
        var length = length
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = bind(socket, $0, length)
                _ = getsockname(socket, $0, &length)
            }
        }
        return Int(in_port_t(bigEndian: address.sin_port))
    }

    private static func isOpen(_ port: Int) -> Bool {
        let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(socket) }
        var address = address(port)
        return withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(socket, $0, length) == 0
            }
        }
    }
}
