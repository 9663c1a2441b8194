import CTuttiTap
import Foundation
import Glibc
import Synchronization

@testable import tutti

/// The network of one host of a house, for what the test itself does there.
struct HostNetwork: Sendable {
    let address: String
    /// A process that is there.
    let process: pid_t

    /// Runs `body` on a thread that is on the host, and waits for it. Sockets that it opens stay
    /// there.
    func inside<Value: Sendable>(
        _ body: @escaping @Sendable () throws -> Value
    ) throws -> Value {
        let result = Mutex<Result<Value, any Error>?>(nil)
        let isDone = DispatchSemaphore(value: 0)
        Thread { [process] in
            let outcome = Result {
                guard enterNetwork(Int32(process)) == 0 else {
                    throw CommandError("no way into the network: \(Self.reason)")
                }
                return try body()
            }
            result.withLock { $0 = outcome }
            isDone.signal()
        }.start()
        isDone.wait()
        guard let outcome = result.withLock({ $0 }) else { throw CommandError("no outcome") }
        return try outcome.get()
    }

    /// A TCP connection from here.
    ///
    /// - Returns: its descriptor.
    func connect(to address: String, port: Int32 = 7430) throws -> Int32 {
        try inside {
            let descriptor = connectTo(address, port)
            guard descriptor >= 0 else { throw CommandError("\(address): \(Self.reason)") }
            return descriptor
        }
    }

    /// Listens for TCP here.
    ///
    /// - Returns: its descriptor.
    func listen(port: Int32 = 7430) throws -> Int32 {
        try inside { [address] in
            let descriptor = listenAt(address, port)
            guard descriptor >= 0 else { throw CommandError("\(address): \(Self.reason)") }
            return descriptor
        }
    }

    private static var reason: String { String(cString: strerror(errno)) }
}
