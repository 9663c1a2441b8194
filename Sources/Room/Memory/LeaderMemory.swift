import TuttiGroupControl

import func Glibc.time

/// What a look around the LAN found last: which leaders there were.
///
/// A look takes as long as the slowest answer may. With this, the next one ends as soon as this
/// machine's daemon, which hears every announcement, knows of the same leader and of no other one.
/// So whoever remembers chooses what he would have chosen without.
public struct LeaderMemory: Equatable, Sendable {
    static let file = "leaders"
    static let heading = "tutti leaders 1"
    /// Seconds. A daemon keeps what it has heard for 75 minutes (RFC 6762, 10); after that a leader
    /// that was announced since the last look could be there without its knowing.
    static let lifetime: Int64 = 45 * 60
    /// Of more there is nothing to remember: somebody has to choose.
    static let most = 16

    /// What tells each from the others; see ``DiscoveredRoom/label``.
    public var labels: [String]
    /// Seconds since 1970.
    var at: Int64

    /// What was seen just now.
    public init(_ leaders: [DiscoveredRoom]) {
        labels = leaders.map(\.label).sorted()
        at = Int64(time(nil))
    }

    /// Whether these leaders, all that the daemon knows, are those of the last look.
    public func confirms(_ leaders: [DiscoveredRoom]) -> Bool {
        // What a damaged file says may be any number.
        let (age, isTooLong) = Int64(time(nil)).subtractingReportingOverflow(at)
        return !isTooLong && (0..<Self.lifetime).contains(age) && !labels.isEmpty
            && leaders.map(\.label).sorted() == labels
    }

    // MARK: Text

    init?(parsing text: String) {
        let lines = text.split(whereSeparator: \.isNewline)
        guard lines.count >= 2, lines[0] == Self.heading[...], let at = Int64(lines[1]),
            lines.count - 2 <= Self.most
        else { return nil }
        self.at = at
        labels = lines.dropFirst(2).map(String.init)
    }

    /// `nil` where a label is no line.
    var text: String? {
        guard labels.count <= Self.most,
            labels.allSatisfy({ !$0.isEmpty && !$0.contains(where: \.isNewline) })
        else { return nil }
        return ([Self.heading, "\(at)"] + labels).joined(separator: "\n") + "\n"
    }

    /// - Returns: `nil` where nothing is remembered, or nothing that can be used.
    public static func read(in folder: String) -> LeaderMemory? {
        (try? StateFolder(path: folder).read(file)).flatMap { $0 }.flatMap(
            LeaderMemory.init(parsing:))
    }

    /// What cannot be written is looked for again next time.
    public func write(in folder: String) {
        guard let text else { return }
        try? StateFolder(path: folder).write(Self.file, text)
    }
}
