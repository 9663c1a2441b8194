/// What cannot be believed, kept or done about a household: what, where, and what to do.
///
/// Bytes and texts of others are the usual cause. Never fatal: whoever gets it drops the message,
/// the link or the file, and goes on with what was known before.
package struct TrustError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What kind of trouble it is, for a program to tell apart.
    package enum Code: String, Sendable {
        /// Not what it says it is: cut off, or not in the format.
        case malformed
        /// Written by a newer version of Tutti.
        case otherVersion
        /// A number or text outside of what it may be.
        case outOfRange
        /// More of something than is kept.
        case tooMany
        /// Not while others are served; soon again.
        case busy
        /// A signature, a proof or a tag that does not fit.
        case notAuthentic
        /// Somebody or something that is not known here.
        case unknown
        /// What may not be done, or not yet.
        case refused
    }

    /// What kind of trouble it is.
    package var code: Code
    /// The part it is about: "member record.name", "invite".
    package var subject: String
    /// What was found, what would be right, and what to do where something can be done.
    package var detail: String

    package init(_ code: Code, _ subject: String, _ detail: String) {
        self.code = code
        self.subject = subject
        self.detail = detail
    }

    package var description: String { "\(subject): \(detail)" }
}
