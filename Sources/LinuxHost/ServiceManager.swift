import Foundation
import Glibc
public import TuttiTiming

/// Tells the service manager (systemd) that the program is ready, alive or ending, where it asks for
/// that; elsewhere nothing happens. The protocol is that of sd_notify(3): words in a datagram to the
/// socket that `NOTIFY_SOCKET` names.
public struct ServiceManager: Sendable {
    private let path: String?
    /// How often it wants to hear that the program is alive: half of what it waits for; `nil`: it
    /// does not.
    public let interval: Nanoseconds?

    /// As the process's environment says.
    public init() { self.init(ProcessInfo.processInfo.environment) }

    /// As these variables say.
    public init(_ environment: [String: String]) {
        let path = environment["NOTIFY_SOCKET"] ?? ""
        // Beside a path there is the abstract name, which begins with an @.
        self.path = path.hasPrefix("/") || path.hasPrefix("@") ? path : nil
        let isOurs = environment["WATCHDOG_PID"].map { $0 == "\(getpid())" } ?? true
        let microseconds = environment["WATCHDOG_USEC"].flatMap(Int64.init) ?? 0
        interval = isOurs && microseconds > 0 ? .microseconds(max(1, microseconds / 2)) : nil
    }

    /// What the manager can be told.
    public enum Word: String, Sendable {
        case ready = "READY=1"
        case alive = "WATCHDOG=1"
        case stopping = "STOPPING=1"
    }

    /// - Returns: whether somebody was told.
    @discardableResult
    public func tell(_ word: Word) -> Bool {
        guard let path else { return false }
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var name = Array(path.utf8)
        if name.first == UInt8(ascii: "@") { name[0] = 0 }
        let room = MemoryLayout.size(ofValue: address.sun_path)
        guard name.count < room else { return false }
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { bytes in
            for (place, byte) in name.enumerated() { unsafe bytes[place] = byte }
        }
        let length = MemoryLayout.offset(of: \sockaddr_un.sun_path).map { $0 + name.count } ?? 0
        let message = Array(word.rawValue.utf8)
        let sent = unsafe withUnsafePointer(to: &address) { address in
            unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe message.withUnsafeBytes {
                    unsafe sendto(
                        descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL), address,
                        socklen_t(length))
                }
            }
        }
        return sent == message.count
    }
}
