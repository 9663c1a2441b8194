import Foundation
import Glibc
import Testing
import TuttiLinuxHost
import TuttiTiming

@Suite(.timeLimit(.minutes(1))) struct ServiceManagerTests {
    /// A socket as a service manager has it, at a path or with an abstract name.
    private static func listen(at path: String) throws -> Int32 {
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var name = Array(path.utf8)
        if name.first == UInt8(ascii: "@") { name[0] = 0 }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        let length = socklen_t(2 + name.count)
        let isBound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
        }
        try #require(isBound == 0)
        return descriptor
    }

    private static func received(_ descriptor: Int32) -> String {
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }

    @Test(arguments: ["path", "abstract"])
    func `a manager that asks is told`(kind: String) throws {
        let path =
            kind == "path"
            ? "\(NSTemporaryDirectory())/tutti-\(UUID())" : "@tutti-\(UUID())"
        let descriptor = try Self.listen(at: path)
        defer {
            close(descriptor)
            unlink(path)
        }
        let manager = ServiceManager([
            "NOTIFY_SOCKET": path, "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "\(getpid())",
        ])
        #expect(manager.interval == .milliseconds(1_500))
        #expect(manager.tell(.ready))
        #expect(Self.received(descriptor) == "READY=1")
        #expect(manager.tell(.alive))
        #expect(Self.received(descriptor) == "WATCHDOG=1")
    }

    @Test(arguments: [
        [:], ["NOTIFY_SOCKET": ""], ["NOTIFY_SOCKET": "relative"],
        ["NOTIFY_SOCKET": "/nobody/listens"],
        ["NOTIFY_SOCKET": "/" + String(repeating: "a", count: 200)],
        ["NOTIFY_SOCKET": "/none", "WATCHDOG_USEC": "x"],
        ["WATCHDOG_USEC": "-4"], ["WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"],
    ])
    func `without one, or with one that cannot be reached, nothing happens`(
        environment: [String: String]
    ) {
        let manager = ServiceManager(environment)
        #expect(manager.interval == nil)
        #expect(!manager.tell(.ready))
    }
}
