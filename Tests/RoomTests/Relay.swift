import Foundation
import Glibc
import Synchronization

/// A way to a leader that can be broken: what rooms say is swallowed from then on, and they are not
/// told. One thread for each direction of each connection.
final class Relay: Sendable {
    let port: Int
    private let listener: Int32
    private let swallows = Mutex(false)

    init(to target: Int) {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = Self.loopback(0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isOpen = withUnsafeMutablePointer(to: &address) { [listener] in
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 16) == 0
                    && getsockname(listener, $0, &length) == 0
            }
        }
        precondition(isOpen, "no port on the loopback interface")
        port = Int(UInt16(bigEndian: address.sin_port))
        Thread.detachNewThread {
            while case let room = accept(self.listener, nil, nil), room >= 0 {
                let leader = Self.connect(to: target)
                Thread.detachNewThread { self.copy(room, leader, fromRoom: true) }
                Thread.detachNewThread { self.copy(leader, room, fromRoom: false) }
            }
        }
    }

    /// What rooms say does not arrive any more.
    func swallow() { swallows.withLock { $0 = true } }

    private func copy(_ from: Int32, _ to: Int32, fromRoom: Bool) {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        while case let count = recv(from, &bytes, bytes.count, 0), count > 0 {
            if fromRoom, swallows.withLock(\.self) { continue }
            guard send(to, bytes, count, Int32(MSG_NOSIGNAL)) == count else { break }
        }
        shutdown(to, Int32(SHUT_WR))
    }

    private static func connect(to port: Int) -> Int32 {
        let connection = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = loopback(port)
        _ = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(connection, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        return connection
    }

    private static func loopback(_ port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }
}
