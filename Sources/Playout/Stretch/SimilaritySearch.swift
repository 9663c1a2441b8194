/// Where in a stretch of sound another piece of it fits best.
///
/// The measure is the normalised cross-correlation of both channels, so that one offset holds for
/// both and the image does not wander. It is searched for twice: coarsely in sums of a few frames,
/// and then frame by frame around the best of those.
@safe final class SimilaritySearch {
    /// Frames of the piece; a multiple of `8 · coarseness`.
    let length: Int
    /// Frames to either side of the middle; a multiple of `coarseness`.
    let reach: Int
    /// Frames in a sum of the coarse search.
    let coarseness: Int
    private let piece: StereoBuffer
    private let field: StereoBuffer

    /// What a place at the end of the reach must be better by than one in the middle: of two equal
    /// ones the middle keeps the tempo.
    private static let pull: Float = 0.05

    init(length: Int, reach: Int, coarseness: Int) {
        precondition(length % (8 * coarseness) == 0 && reach % coarseness == 0, "uneven search")
        self.length = length
        self.reach = reach
        self.coarseness = coarseness
        piece = StereoBuffer(capacity: length / coarseness)
        field = StereoBuffer(capacity: (length + 2 * reach) / coarseness)
    }

    /// The offset, −reach…reach, at which `sound` continues as `template` begins.
    ///
    /// - Parameters:
    ///   - template: ``length`` frames.
    ///   - start: where in `sound` offset 0 lies; `reach` frames before it and `reach + length`
    ///     behind it are read.
    /// - Returns: 0 where all is silent.
    func offset(of template: StereoBuffer, in sound: StereoBuffer, at start: Int) -> Int {
        Self.sum(template, from: 0, each: coarseness, into: piece, count: length / coarseness)
        let low = start - reach
        let places = 2 * reach / coarseness
        Self.sum(
            sound, from: low, each: coarseness, into: field,
            count: length / coarseness + places)
        let coarse = best(
            of: piece, in: field, among: 0..<places + 1, length: length / coarseness,
            middle: places / 2)
        let middle = low + coarse * coarseness
        let first = max(low, middle - coarseness)
        let last = min(start + reach, middle + coarseness)
        return best(
            of: template, in: sound, among: first..<last + 1, length: length, middle: start) - start
    }

    /// How alike two pieces are: 1 the same but for their loudness, 0 strangers, −1 opposite.
    ///
    /// - Returns: 1 where both are silent, 0 where one is.
    func likeness(of template: StereoBuffer, with sound: StereoBuffer, at start: Int) -> Float {
        let own = Self.product(template, at: 0, template, at: 0, count: length)
        let other = Self.product(sound, at: start, sound, at: start, count: length)
        if own == 0, other == 0 { return 1 }
        guard own > 0, other > 0 else { return 0 }
        let common = Self.product(template, at: 0, sound, at: start, count: length)
        return max(-1, min(1, common / (own.squareRoot() * other.squareRoot())))
    }

    private func best(
        of template: StereoBuffer, in sound: StereoBuffer, among places: Range<Int>, length: Int,
        middle: Int
    ) -> Int {
        var best = middle
        var bestScore = -Float.infinity
        var energy = Self.product(
            sound, at: places.lowerBound, sound, at: places.lowerBound, count: length)
        let width = Float(max(1, max(places.upperBound - middle, middle - places.lowerBound)))
        for place in places {
            let common = Self.product(template, at: 0, sound, at: place, count: length)
            if energy > 1e-20 {
                let distance = Float((place - middle).magnitude) / width
                let likeness = common / energy.squareRoot()
                let score = likeness - Self.pull * distance * likeness.magnitude
                if score > bestScore || (score == bestScore && place == middle) {
                    (best, bestScore) = (place, score)
                }
            }
            energy += Self.square(sound, place + length) - Self.square(sound, place)
        }
        return bestScore == 0 ? middle : best
    }

    @inline(__always)
    private static func square(_ sound: StereoBuffer, _ i: Int) -> Float {
        guard i < sound.capacity else { return 0 }
        let (left, right) = unsafe (sound.left[i], sound.right[i])
        return left * left + right * right
    }

    private static func sum(
        _ sound: StereoBuffer, from start: Int, each width: Int, into sums: StereoBuffer, count: Int
    ) {
        for i in 0..<count {
            var sum = SIMD2<Float>(0, 0)
            for k in 0..<width {
                let place = start &+ i &* width &+ k
                unsafe sum += SIMD2(sound.left[place], sound.right[place])
            }
            unsafe sums.left[i] = sum.x
            unsafe sums.right[i] = sum.y
        }
    }

    /// The sum over both channels of two pieces' products.
    ///
    /// - Parameter count: a multiple of 8.
    private static func product(
        _ a: StereoBuffer, at i: Int, _ b: StereoBuffer, at j: Int, count: Int
    ) -> Float {
        precondition(i >= 0 && i + count <= a.capacity, "outside the piece")
        precondition(j >= 0 && j + count <= b.capacity, "outside the sound")
        let left = unsafe (UnsafeRawPointer(a.left + i), UnsafeRawPointer(b.left + j))
        let right = unsafe (UnsafeRawPointer(a.right + i), UnsafeRawPointer(b.right + j))
        var sum = SIMD8<Float>(repeating: 0)
        var byte = 0
        while byte < 4 &* count {
            unsafe sum +=
                left.0.loadUnaligned(fromByteOffset: byte, as: SIMD8<Float>.self)
                * left.1.loadUnaligned(fromByteOffset: byte, as: SIMD8<Float>.self)
            unsafe sum +=
                right.0.loadUnaligned(fromByteOffset: byte, as: SIMD8<Float>.self)
                * right.1.loadUnaligned(fromByteOffset: byte, as: SIMD8<Float>.self)
            byte &+= 32
        }
        return sum.sum()
    }
}
