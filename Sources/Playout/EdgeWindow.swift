/// The freshest readings of a stretch of time: innovations in seconds, in falling order.
struct EdgeWindow: BitwiseCopyable {
    var end = 0.0
    var looks = 0
    var best = (-1e9, -1e9, -1e9, -1e9)
    /// When the first of `best` was read.
    var bestTime = 0.0

    @_noLocks @_noAllocation
    init() {}

    /// How far the freshest is from the edge, by the distances between the freshest: the median of
    /// three estimates, for a window may have a few fresh looks among many stale ones.
    var spacing: Double {
        @_noLocks @_noAllocation get {
            let a = best.0 - best.1
            let b = (best.0 - best.2) / 2
            let c = (best.0 - best.3) / 3
            return max(min(a, b), min(max(a, b), c))
        }
    }

    @_noLocks @_noAllocation
    mutating func add(_ innovation: Double, at time: Double) {
        looks += 1
        if innovation > best.0 {
            best = (innovation, best.0, best.1, best.2)
            bestTime = time
        } else if innovation > best.1 {
            best = (best.0, innovation, best.1, best.2)
        } else if innovation > best.2 {
            best = (best.0, best.1, innovation, best.2)
        } else if innovation > best.3 {
            best.3 = innovation
        }
    }
}
