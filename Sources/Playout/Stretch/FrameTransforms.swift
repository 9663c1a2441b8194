/// Chooses what makes frames for a voice at a rate.
public enum FrameTransforms {
    /// The slowest and the fastest rate, in either direction. Beyond, grains are further apart than
    /// words, or all of one sound.
    public static let rateLimits = 1.0 / 32...32
    /// Forwards, a voice's own resampler plays these.
    static let ownRates = 0.5...2.0

    private enum Plan {
        /// The voice's own resampler does it.
        case none
        case blocks(FrameMap)
    }

    /// How frames of the voice lie on frames of the item.
    ///
    /// Forwards, `v` lies on item frame `v · rate`; backwards on `frameCount − v · |rate|`, counted
    /// at the edges of frames: at −1 voice frame 0 is the item's last one.
    ///
    /// - Parameters:
    ///   - rate: item seconds per second; negative: backwards.
    ///   - frameCount: of the item; `nil` when nobody knows, as of a live stream.
    /// - Returns: the identity where no transform is needed; `nil` where the item cannot be played
    ///   so: at a rate beyond ``rateLimits``, at 0 or no number, or backwards from an unknown end.
    public static func map(
        rate: Double, algorithm: TimePitchAlgorithm, frameCount: Int64?
    ) -> FrameMap? {
        switch plan(rate: rate, algorithm: algorithm, frameCount: frameCount) {
        case nil: nil
        case .none?: .identity
        case .blocks(let map)?: map
        }
    }

    /// What makes the frames of a voice that plays an item at `rate`.
    ///
    /// One owner at a time uses it, as the reader; reads block on the reader.
    ///
    /// - Parameters:
    ///   - sampleRate: frames of the item per second; taken as 1…768 000.
    ///   - frameCount: as for ``map(rate:algorithm:frameCount:)``. An item that turns out to be
    ///     shorter ends where it ends, and backwards begins with silence.
    /// - Returns: `nil` where the map is the identity, and where there is none.
    public static func make(
        rate: Double, algorithm: TimePitchAlgorithm, sampleRate: Int, frameCount: Int64?,
        reader: any FrameReader
    ) -> (any FrameTransform)? {
        guard
            case .blocks(let map)? = plan(
                rate: rate, algorithm: algorithm, frameCount: frameCount)
        else { return nil }
        let sampleRate = min(max(1, sampleRate), 768_000)
        let speed = map.step.magnitude
        func frames(window: Int) -> PlayedFrames {
            PlayedFrames(
                reader: reader, frameCount: frameCount, isReversed: map.step < 0, window: window,
                sampleRate: sampleRate)
        }
        if speed == 1 {
            let frames = frames(window: PlainBlocks.size)
            return BlockTransform(map: map, frames: frames, blocks: PlainBlocks(frames: frames))
        }
        switch algorithm {
        case .varispeed:
            let frames = frames(window: VarispeedBlocks.window(speed: speed))
            let blocks = VarispeedBlocks(frames: frames, speed: speed)
            return BlockTransform(map: map, frames: frames, blocks: blocks)
        case .timeDomain:
            let grid = GrainGrid(sampleRate: sampleRate, speed: speed, frameCount: frameCount)
            let frames = frames(window: grid.window)
            let blocks = SimilarityBlocks(frames: frames, grid: grid)
            return BlockTransform(map: map, frames: frames, blocks: blocks)
        case .spectral:
            let grid = SpectralGrid(sampleRate: sampleRate, speed: speed)
            let frames = frames(window: grid.window)
            let blocks = SpectralBlocks(frames: frames, grid: grid)
            return BlockTransform(map: map, frames: frames, blocks: blocks)
        }
    }

    private static func plan(
        rate: Double, algorithm: TimePitchAlgorithm, frameCount: Int64?
    ) -> Plan? {
        guard rateLimits.contains(rate.magnitude) else { return nil }
        if let frameCount, !(0...PlayedFrames.positionLimit).contains(frameCount) { return nil }
        if rate < 0 {
            return frameCount.map { .blocks(FrameMap(origin: Double($0), step: rate)) }
        }
        let isOwn = rate == 1 || algorithm == .varispeed && ownRates.contains(rate)
        return isOwn ? Plan.none : .blocks(FrameMap(step: rate))
    }
}
