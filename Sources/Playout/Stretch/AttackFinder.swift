/// Finds where something sharp begins.
///
/// An attack is where the power of the samples' differences, which weigh the upper band more, is
/// many times that of the time before. Steps lie on a grid of item positions, so that frames of the
/// spectrum that overlap find the same attack at the same place.
struct AttackFinder {
    /// Frames of a step: 1.3 ms at 48 kHz.
    let step: Int
    /// Steps that are the time before: 43 ms, so that a deep voice's pulses are no attacks.
    private static let history = 32
    /// The power of an attack's first step by the mean of the time before: 10 dB.
    private static let ratio: Float = 10
    /// Added to the time before, so that noise at −90 dB is no attack.
    private static let floor: Float = 1e-9

    private var powers: [Float] = []

    /// - Parameter length: samples of a transform.
    init(length: Int) {
        step = length / 64
        powers.reserveCapacity(length / step + 2 * Self.history)
    }

    /// The strongest attack among `count` frames.
    ///
    /// - Parameters:
    ///   - start: where they begin in `sound`; `history` steps before, and another, are looked at.
    ///   - position: the item's frame at `start`.
    /// - Returns: frames from `start` to it, or `nil`.
    mutating func attack(
        in sound: StereoBuffer, at start: Int, position: Int64, count: Int
    ) -> Int? {
        let width = Int64(step)
        // To the grid: floor, for negative positions too.
        let shift = Int(((position % width) + width) % width)
        let first = start - shift - Self.history * step
        precondition(first > 0 && start + count <= sound.capacity, "outside the sound")
        powers.removeAll(keepingCapacity: true)
        var place = first
        while place + step <= start + count {
            powers.append(Self.power(of: sound, at: place, count: step))
            place += step
        }
        guard powers.count > Self.history else { return nil }
        var before = powers[..<Self.history].reduce(0, +)
        var best: (index: Int, ratio: Float)?
        for i in Self.history..<powers.count {
            let ratio = powers[i] / (max(0, before) / Float(Self.history) + Self.floor)
            if ratio > best?.ratio ?? Self.ratio { best = (i, ratio) }
            before += powers[i] - powers[i - Self.history]
        }
        return best.map { first + $0.index * step - start }
    }

    /// Mean square of the differences of neighbours, of both channels.
    private static func power(of sound: StereoBuffer, at place: Int, count: Int) -> Float {
        var sum = SIMD2<Float>(0, 0)
        for i in place..<place + count {
            let now = unsafe SIMD2(sound.left[i], sound.right[i])
            let last = unsafe SIMD2(sound.left[i &- 1], sound.right[i &- 1])
            sum += (now - last) * (now - last)
        }
        return sum.sum() / Float(count)
    }
}
