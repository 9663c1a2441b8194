/// Bytes of a peer that are not a message: what is wrong, and with which part.
///
/// Never our own fault and never fatal: whoever gets it drops the message or the link.
public struct WireError: Error, Equatable, Sendable, CustomStringConvertible {
    public enum Code: String, Sendable {
        /// Not a message at all: cut off, or not in the format.
        case malformed
        /// Written for another version of the format.
        case otherVersion
        /// Something required is not there.
        case missing
        /// A number or text outside of what it may be.
        case outOfRange
        /// Longer than the receiver accepts.
        case tooLong
    }

    public var code: Code
    /// The part, as a path of fields: "state.queue[3].sample rate".
    public var subject: String
    /// The value that was found, or what was expected.
    public var detail: String

    public init(_ code: Code, _ subject: String, _ detail: String) {
        self.code = code
        self.subject = subject
        self.detail = detail
    }

    public var description: String { "\(subject) is \(code.rawValue): \(detail)" }
}
