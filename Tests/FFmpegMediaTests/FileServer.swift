import Foundation
import Glibc
import Synchronization

@testable import TuttiFFmpegMedia

/// A web server for one body, with the faults of real ones.
///
/// Answers on a thread per connection; listens until the process ends.
final class FileServer: Sendable {
    struct Behaviour: Sendable {
        /// Answers `Range` with 206; else always the whole body.
        var hasRanges = true
        /// Says how long the body is.
        var hasLength = true
        /// Closes each connection after so many bytes of the body.
        var breaksAfter: Int?
        /// Sends the header, then nothing more.
        var stalls = false
        /// Never sends a byte from here on.
        var stopsAt: Int?
        /// Never ends: the body again and again.
        var isEndless = false
        /// Further lines of the header, each with its end of line.
        var extraHeader = ""
        /// The body comes in chunks (RFC 9112, 7.1), without a length.
        var isChunked = false
        /// What breaks off does so behind a whole chunk.
        var breaksBetweenChunks = false
        /// Every address leads there instead; to nowhere when empty.
        var redirect: String?
        /// The first connection alone breaks off.
        var breaksOnce = false
        /// Between two blocks.
        var pauseMicroseconds: UInt32 = 0
    }

    let port: Int
    private let listener: Int32
    private let body: Mutex<Data>
    private let behaviour: Behaviour
    private let log = Mutex<(requests: Int, bytes: Int)>((0, 0))

    /// The hashes of the pieces of the body, behind its address.
    private let pieces: [UInt8]

    /// Of the body.
    var requestCount: Int { log.withLock { $0.requests } }
    var bytesSent: Int { log.withLock { $0.bytes } }

    func url(_ path: String = "/body.bin") -> String { "http://127.0.0.1:\(port)\(path)" }

    /// - Parameter other: what it announces, where that is something else than what it gives.
    init(_ body: Data, _ behaviour: Behaviour = Behaviour(), announcing other: Data? = nil) {
        self.body = Mutex(body)
        pieces = PieceHashes(of: other ?? body).bytes
        self.behaviour = behaviour
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &address) { [listener] in
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 16) == 0
                    && getsockname(listener, $0, &length) == 0
            }
        }
        precondition(bound, "no port on the loopback interface")
        port = Int(UInt16(bigEndian: address.sin_port))
        Thread.detachNewThread {
            while case let connection = accept(self.listener, nil, nil), connection >= 0 {
                Thread.detachNewThread { self.answer(connection) }
            }
        }
    }

    /// From the next request on it has another.
    func change(to body: Data) { self.body.withLock { $0 = body } }

    private func answer(_ connection: Int32) {
        defer { close(connection) }
        guard let request = readRequest(connection) else { return }
        let isList = request.prefix { !$0.isNewline }.contains("/pieces ")
        let body = isList ? Data(pieces) : self.body.withLock(\.self)
        if !isList { log.withLock { $0.requests += 1 } }
        if let target = behaviour.redirect {
            let place = target.isEmpty ? "" : "Location: \(target)\r\n"
            let header = "HTTP/1.1 302 Found\r\n\(place)Content-Length: 0\r\n"
            _ = send(Data((header + "Connection: close\r\n\r\n").utf8), connection)
            return
        }
        guard request.hasPrefix("GET /body") else {
            _ = send(Data("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".utf8), connection)
            return
        }
        var (start, end) = (0, body.count)
        if behaviour.hasRanges, let range = request.range(of: "Range: bytes=") {
            let bounds = request[range.upperBound...].prefix { !$0.isNewline }.split(separator: "-")
            start = Int(bounds[0]) ?? 0
            if bounds.count > 1, let last = Int(bounds[1]) { end = min(end, last + 1) }
        }
        guard start <= body.count else {
            _ = send(Data("HTTP/1.1 416 Bad\r\nContent-Length: 0\r\n\r\n".utf8), connection)
            return
        }
        let isPartial = behaviour.hasRanges && request.contains("Range: bytes=")
        var header = "HTTP/1.1 \(isPartial ? "206 Partial Content" : "200 OK")\r\n"
        // A server that cuts its body into chunks keeps the connection, as clients wish.
        header += behaviour.isChunked ? "" : "Connection: close\r\n"
        header += behaviour.extraHeader
        if behaviour.isChunked { header += "Transfer-Encoding: chunked\r\n" }
        if behaviour.hasRanges { header += "Accept-Ranges: bytes\r\n" }
        if behaviour.hasLength { header += "Content-Length: \(end - start)\r\n" }
        if isPartial {
            header += "Content-Range: bytes \(start)-\(end - 1)/\(body.count)\r\n"
        }
        guard send(Data((header + "\r\n").utf8), connection) else { return }
        if behaviour.stalls {
            var byte: UInt8 = 0
            _ = recv(connection, &byte, 1, 0)
            return
        }
        let whole = end
        repeat {
            var position = start
            let last = behaviour.stopsAt ?? body.count
            let breaks = !behaviour.breaksOnce || requestCount == 1
            let most = breaks ? behaviour.breaksAfter ?? body.count : body.count
            let end = min(whole, last, start + most)
            while position < end {
                if behaviour.pauseMicroseconds > 0 { usleep(behaviour.pauseMicroseconds) }
                let block = body.subdata(in: position..<min(end, position + 16_384))
                // A chunk that breaks off is shorter than it says.
                let isTorn =
                    position + block.count == end && end < whole
                    && !behaviour.breaksBetweenChunks
                let announced = block.count + (isTorn ? 1 : 0)
                let size = behaviour.isChunked ? String(announced, radix: 16) + "\r\n" : ""
                let tail = behaviour.isChunked && !isTorn ? "\r\n" : ""
                guard send(Data(size.utf8) + block + Data(tail.utf8), connection) else { return }
                if !isList { log.withLock { $0.bytes += block.count } }
                position += block.count
            }
            if behaviour.isChunked, end == whole {
                _ = send(Data("0\r\n\r\n".utf8), connection)
            }
        } while behaviour.isEndless
    }

    private func readRequest(_ connection: Int32) -> String? {
        var bytes: [UInt8] = []
        while !bytes.suffix(4).elementsEqual(Array("\r\n\r\n".utf8)), bytes.count < 8_192 {
            var byte: UInt8 = 0
            guard recv(connection, &byte, 1, 0) == 1 else { return nil }
            // What is no HTTP, the beginning of TLS for example, is hung up on.
            if bytes.isEmpty, byte < UInt8(ascii: "A") { return nil }
            bytes.append(byte)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private func send(_ data: Data, _ connection: Int32) -> Bool {
        data.withUnsafeBytes { bytes in
            var sent = 0
            while sent < bytes.count {
                let count = Glibc.send(
                    connection, bytes.baseAddress! + sent, bytes.count - sent,
                    Int32(MSG_NOSIGNAL))
                guard count > 0 else { return false }
                sent += count
            }
            return true
        }
    }
}
