import CTuttiLinux
import Glibc

/// Ends another thread's `poll`: an eventfd.
final class WakeUp: Sendable {
    let descriptor: Int32

    init() throws(HostError) {
        descriptor = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
        if descriptor < 0 { throw HostError("eventfd", subject: "wake-up") }
    }

    deinit { close(descriptor) }

    func signal() {
        // A full counter is a signal that was not taken yet: nothing is lost.
        _ = eventfd_write(descriptor, 1)
    }

    private func clear() {
        var count: eventfd_t = 0
        _ = unsafe eventfd_read(descriptor, &count)
    }

    /// What a wait saw at a socket, as `poll(2)` says it; empty: nothing.
    struct SocketEvents: OptionSet {
        let rawValue: Int16
        /// Something is in the error queue, or an error waits to be read.
        static let error = SocketEvents(rawValue: Int16(POLLERR))
    }

    /// Waits until this or `socket` has something, or `timeout` is over; `nil` waits for ever.
    /// Takes the signals that there were.
    ///
    /// - Returns: what there is at the socket; `nil`: nobody looked.
    @discardableResult
    func wait(or socket: Int32?, timeoutNanoseconds: Int64?) -> SocketEvents? {
        var descriptors = (
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: socket ?? -1, events: Int16(POLLIN), revents: 0)
        )
        return unsafe withUnsafeMutableBytes(of: &descriptors) {
            let first = unsafe $0.baseAddress!.assumingMemoryBound(to: pollfd.self)
            defer { if unsafe first[0].revents != 0 { clear() } }
            if let nanoseconds = timeoutNanoseconds.map({ max(0, $0) }) {
                var timeout = timespec(
                    tv_sec: Int(nanoseconds / 1_000_000_000),
                    tv_nsec: Int(nanoseconds % 1_000_000_000))
                _ = unsafe tutti_poll(first, 2, &timeout)
            } else {
                _ = unsafe tutti_poll(first, 2, nil)
            }
            return unsafe socket == nil ? nil : SocketEvents(rawValue: first[1].revents)
        }
    }
}
