import Glibc

/// A call of the operating system that failed: what, why (the C library's code), on what.
public struct HostError: Error, Equatable, CustomStringConvertible, CustomDebugStringConvertible {
    /// The function of the C library.
    public var operation: String
    /// What went wrong, for those who decide by it.
    public var kind: Kind
    /// `errno`, or the code of `getaddrinfo` when ``operation`` is that.
    public var code: Int32
    /// Port, address or thread name.
    public var subject: String

    /// Failures that are answered differently.
    public enum Kind: Sendable, Equatable {
        /// Another program has the port.
        case portTaken
        /// The name has no address, or nobody could be asked for it now.
        case unresolved
        /// No route, no network, or the interface is down.
        case unreachable
        /// Not allowed to this user.
        case notPermitted
        case other
    }

    init(_ operation: String, code: Int32 = errno, subject: String) {
        self.operation = operation
        self.code = code
        self.subject = subject
        self.kind =
            switch code {
            case _ where operation == "getaddrinfo": .unresolved
            case EADDRINUSE: .portTaken
            case ENETUNREACH, EHOSTUNREACH, ENETDOWN, EADDRNOTAVAIL, ECONNREFUSED: .unreachable
            case EPERM, EACCES: .notPermitted
            default: .other
            }
    }

    public var description: String {
        let text =
            operation == "getaddrinfo"
            ? unsafe String(cString: gai_strerror(code)) : unsafe String(cString: strerror(code))
        return "\(subject): \(text)"
    }

    /// With what was called, for those who look into it.
    public var debugDescription: String { "\(description) (\(operation), code \(code))" }
}
