/// How fast a file is fetched while nobody waits for it.
///
/// A fetch as fast as it goes fills the queues of the path, and then nobody can measure a clock
/// through them. A clock that is known gets over that, one that is young does not. And whoever has
/// all of an item can do without its leader.
public struct FetchPace: Equatable, Sendable {
    /// While what is fetched has hardly begun to play.
    public static let youngSpan = Duration.seconds(4)
    /// So many times as fast as it is played, young and later: at first a path of 20 Mbit/s has room
    /// for clocks and four rooms that play CDs in FLAC; an item of four minutes is there after 18 s,
    /// if the path is that fast.
    static let shares = (young: 4.0, later: 16.0)
    /// Bytes a second, at least: two megabits, and later eight.
    static let least = (young: 250_000.0, later: 1_000_000.0)

    /// Bytes a second.
    let young: Double
    let later: Double

    /// As fast as the path is.
    public static let unlimited = FetchPace(young: .infinity, later: .infinity)

    private init(young: Double, later: Double) {
        self.young = young
        self.later = later
    }

    /// - Parameters:
    ///   - byteCount: of the file.
    ///   - seconds: that it plays.
    public init(byteCount: Int64, seconds: Double) {
        let played = Double(byteCount) / max(seconds, 1)
        young = max(Self.least.young, Self.shares.young * played)
        later = max(Self.least.later, Self.shares.later * played)
    }

    /// Bytes that play for a second at least.
    var second: Double { young / Self.shares.young }

    /// Bytes a second after `age`.
    func rate(after age: Duration) -> Double { age < Self.youngSpan ? young : later }
}
