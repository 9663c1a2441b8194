/// Bytes of a peer that are not a message: what is wrong, and with which part.
///
/// Never our own fault and never fatal: whoever gets it drops the message or the link.
package struct WireError: Error, Equatable, Sendable, CustomStringConvertible {
    package enum Code: String, Sendable {
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

    package var code: Code
    /// The part, as a path of fields: "state.queue[3].sample rate".
    package var subject: String
    /// The value that was found, or what was expected.
    package var detail: String

    package init(_ code: Code, _ subject: String, _ detail: String) {
        self.code = code
        self.subject = subject
        self.detail = detail
    }

    package var description: String { "\(subject) is \(code.rawValue): \(detail)" }
}
