/// How far a room's two-way line is from that of its cluster, in the mean and beside it.
///
/// Two-way errors of a path come and go, and their mean over a minute is small against them. An
/// offset that stays is another thing: an access point that sends each station a packet of its own,
/// one after the other, makes the second room hear it 150 µs after the first, each time. Or it is a
/// path whose directions differ for good. From here nobody can tell which, so a room with a large
/// standing offset is left to two-way exchange. At first everything stands.
struct PersistentOffset: Equatable, Sendable {
    /// The largest mean offset that may come of receivers, seconds. Receivers of one frame differ
    /// by less; two packets, one after the other on quiet air, by three times this.
    static let limit = 50e-6
    /// Where two-way errors are large, so are their means: the limit is also this many times what
    /// comes and goes.
    static let proportion = 1.25
    /// Memory of the mean, and of the scatter around it; seconds.
    static let memory = 100.0
    static let scatterMemory = 30.0

    private var mean = 0.0
    private var age = 0.0
    /// Variance of what comes and goes, seconds².
    private var variance = 0.0
    /// The mean of the cluster goes along with the room by its own weight, so what is seen is less
    /// than the difference to the others.
    private var magnification = 1.0

    /// - Parameters:
    ///   - offset: of the room from the mean of its cluster, itself included; seconds.
    ///   - weight: of the room in that mean.
    mutating func take(_ offset: Double, weight: Double, after interval: Double) {
        age = min(age + interval, Self.memory)
        mean += (offset - mean) * min(1, interval / age)
        let rest = offset - mean
        variance += (rest * rest - variance) * min(1, interval / min(age, Self.scatterMemory))
        magnification = 1 / max(0.05, 1 - weight)
    }

    /// Mean square of all of it, seconds².
    var meanSquare: Double { variance + mean * mean }

    /// The same of the offset from the mean of the others.
    var meanSquareToOthers: Double { meanSquare * magnification * magnification }

    /// How much of it is taken for standing: 0 to 1, rising between the limit and twice that.
    var standing: Double {
        let limit = max(Self.limit, Self.proportion * magnification * variance.squareRoot())
        return min(1, max(0, magnification * mean.magnitude / limit - 1))
    }
}
