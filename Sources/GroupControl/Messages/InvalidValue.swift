/// A value of the group vocabulary that cannot be: which one, and why.
public struct InvalidValue: Error, Equatable, Sendable, CustomStringConvertible {
    /// The name of the value, as a person would say it: "room name", "volume".
    public var subject: String
    /// What is wrong with it and what would be right.
    public var reason: String

    /// A complaint about `subject`, as a person would call it: `reason` says what is wrong with it
    /// and what would be right.
    public init(_ subject: String, _ reason: String) {
        self.subject = subject
        self.reason = reason
    }

    public var description: String { "\(subject): \(reason)" }
}

extension String {
    /// The longest prefix of whole characters that takes at most `limit` bytes of UTF-8.
    ///
    /// - Complexity: O(limit), whatever the length of the string.
    package func limited(toBytes limit: Int) -> String {
        if utf8.count <= limit { return self }
        var end = startIndex
        var used = 0
        while end < endIndex {
            let next = index(after: end)
            used += self[end..<next].utf8.count
            if used > limit { break }
            end = next
        }
        return String(self[..<end])
    }
}
