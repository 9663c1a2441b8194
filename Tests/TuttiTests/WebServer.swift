import Foundation
import Glibc
import Synchronization

/// A web server of one file, with parts of it, which may fail.
///
/// Answers on a thread for each connection.
final class WebServer: Sendable {
    enum Manner: Sendable {
        case whole
        /// From there on a byte now and then: enough for nobody to give it up, and all of it would take
        /// a day.
        case trickles(from: Int)
        /// Hangs up there, each time.
        case breaksOff(at: Int)

        /// Before what comes as it should not.
        var end: Int {
            switch self {
            case .whole: .max
            case .trickles(let place), .breaksOff(let place): place
            }
        }
    }

    let port: Int
    private let listener: Int32
    private let body: Data
    private let manner: Mutex<Manner>
    private let state = Mutex((open: 0, all: 0))
    private let isGone = Atomic(false)

    /// Connections that are being answered, and all that there ever were.
    var open: Int { state.withLock { $0.open } }
    var all: Int { state.withLock { $0.all } }

    func url(_ name: String) -> String { "http://127.0.0.1:\(port)/\(name)" }

    /// Of what is asked for from now on.
    func change(to manner: Manner) { self.manner.withLock { $0 = manner } }

    /// From now on it hangs up on everybody who comes.
    func vanish() { isGone.store(true, ordering: .releasing) }

    init(_ body: Data, _ manner: Manner = .whole) {
        self.body = body
        self.manner = Mutex(manner)
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &address) { [listener] in
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 64) == 0
                    && getsockname(listener, $0, &length) == 0
            }
        }
        precondition(bound, "no port on the loopback interface")
        port = Int(UInt16(bigEndian: address.sin_port))
        Thread.detachNewThread {
            while case let connection = accept(self.listener, nil, nil), connection >= 0 {
                self.state.withLock { $0 = ($0.open + 1, $0.all + 1) }
                Thread.detachNewThread {
                    if !self.isGone.load(ordering: .acquiring) { self.answer(connection) }
                    close(connection)
                    self.state.withLock { $0.open -= 1 }
                }
            }
        }
    }

    private func answer(_ connection: Int32) {
        var request: [UInt8] = []
        while !request.suffix(4).elementsEqual(Array("\r\n\r\n".utf8)), request.count < 8_192 {
            var byte: UInt8 = 0
            guard recv(connection, &byte, 1, 0) == 1 else { return }
            request.append(byte)
        }
        let text = String(decoding: request, as: UTF8.self)
        let bounds = text.firstRange(of: "Range: bytes=").map { mark in
            text[mark.upperBound...].prefix { !$0.isNewline }.split(separator: "-")
        }
        let start = bounds?.first.flatMap { Int($0) } ?? 0
        let last = bounds?.dropFirst().first.flatMap { Int($0) }.map { $0 + 1 } ?? body.count
        let range = start..<max(start, min(last, body.count))
        let header = [
            bounds == nil ? "HTTP/1.1 200 OK" : "HTTP/1.1 206 Partial Content",
            "Connection: close", "Accept-Ranges: bytes", "Content-Length: \(range.count)",
            "Content-Range: bytes \(range.lowerBound)-\(range.upperBound - 1)/\(body.count)",
        ]
        guard send(Data((header.joined(separator: "\r\n") + "\r\n\r\n").utf8), connection) else {
            return
        }
        let manner = manner.withLock(\.self)
        let end = max(range.lowerBound, min(range.upperBound, manner.end))
        let isSent = send(body[range.lowerBound..<end], connection)
        guard isSent, case .trickles = manner else { return }
        for place in end..<range.upperBound {
            usleep(10_000)
            guard send(body[place...place], connection) else { return }
        }
    }

    private func send(_ data: Data, _ connection: Int32) -> Bool {
        Array(data).withUnsafeBytes { bytes in
            var sent = 0
            while sent < bytes.count {
                let count = Glibc.send(
                    connection, bytes.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL))
                guard count > 0 else { return false }
                sent += count
            }
            return true
        }
    }
}
