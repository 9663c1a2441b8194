import func Glibc.cos

/// Keeps the pitch at another rate by continuing each partial by itself: a phase vocoder.
///
/// Eight overlapping spectra make up every moment of the voice. Each is the item's at the place
/// that the map has for its middle, with the phases turned so that what sounded a hop ago goes on
/// (``PhaseChain``). How far a partial turns in a hop is seen by taking the item's spectrum a hop
/// earlier as well: there is nothing to unwrap, whatever the rate. Both channels are turned alike,
/// so the image stands still. What is sharp (``AttackFinder``) is shifted as a whole instead.
///
/// Anchors: turns depend on all before. So at every ``SpectralGrid/anchorHops``-th hop a chain of
/// turns begins anew, as the item is; and until the next anchor the old one is turned towards
/// it, each partial the shorter way, and is what sounds. A read begins up to two anchors before.
///
/// What that costs is a shift of each partial by at most 0.5 Hz, 0.25 on the average, another one
/// in each second: 8 cents at 55 Hz, 1 at 440. Nothing cancels, no level sways, and what is
/// heard beside a tone in the worst 25 ms is −49 dB instead of −114. Every attack
/// ends it for the bins that it fills, where both chains go on alike. See `Stretch.md`.
@safe final class SpectralBlocks: FrameBlocks {
    /// How many times the power from before an attack a bin has where the attack has filled it: 6
    /// dB.
    private static let sharpRise: Float = 4

    let blockFrames: Int
    private let frames: PlayedFrames
    private let grid: SpectralGrid
    private let transform: RealTransform
    /// Hann's, before the transform, and once more behind it with the scale that gives back 1.
    private let window: UnsafeMutablePointer<Float>
    private let outWindow: UnsafeMutablePointer<Float>

    /// The spectrum of the frame in work, that of the item a hop earlier, and the one before.
    private var now: Spectrum
    private var before: Spectrum
    private var last: Spectrum
    private let powers: UnsafeMutableBufferPointer<Float>
    private let advances: StereoBuffer
    private var regions: SpectrumRegions
    private var attacks: AttackFinder

    private var lead: PhaseChain
    /// The one before, on its way to `lead`; it is what sounds where there is one.
    private var former: PhaseChain
    private var hasFormer = false
    /// The frame of the spectrum that was added last; `nil` until a read, and after an error.
    private var frame: Int64?
    /// What its frames add up to so far, from two hops before its middle on.
    private let sum: StereoBuffer

    /// Of both channels.
    private struct Spectrum {
        let real: StereoBuffer
        let imaginary: StereoBuffer

        init(bins: Int) {
            real = StereoBuffer(capacity: bins)
            imaginary = StereoBuffer(capacity: bins)
        }

        @inline(__always)
        func power(at bin: Int) -> Float {
            let parts = unsafe SIMD4(
                real.left[bin], imaginary.left[bin], real.right[bin], imaginary.right[bin])
            return (parts * parts).sum()
        }

        func scale(_ bins: Range<Int>, by gain: Float) {
            for i in bins {
                unsafe real.left[i] *= gain
                unsafe real.right[i] *= gain
                unsafe imaginary.left[i] *= gain
                unsafe imaginary.right[i] *= gain
            }
        }
    }

    init(frames: PlayedFrames, grid: SpectralGrid) {
        self.frames = frames
        self.grid = grid
        blockFrames = grid.hop
        transform = RealTransform(length: grid.length)
        unsafe window = .allocate(capacity: grid.length)
        unsafe outWindow = .allocate(capacity: grid.length)
        for i in 0..<grid.length {
            let w = 0.5 - 0.5 * cos(2 * .pi * Double(i) / Double(grid.length))
            unsafe (window + i).initialize(to: Float(w))
            // The mean of the window's square is 3/8.
            let scale = 0.375 * Double(SpectralGrid.overlap) * Double(grid.length / 2)
            unsafe (outWindow + i).initialize(to: Float(w / scale))
        }
        let bins = transform.bins
        now = Spectrum(bins: bins)
        before = Spectrum(bins: bins)
        last = Spectrum(bins: bins)
        unsafe powers = .allocate(capacity: bins)
        unsafe powers.initialize(repeating: 0)
        advances = StereoBuffer(capacity: bins)
        regions = SpectrumRegions(bins: bins)
        attacks = AttackFinder(length: grid.length)
        lead = PhaseChain(bins: bins)
        former = PhaseChain(bins: bins)
        sum = StereoBuffer(capacity: grid.length)
    }

    deinit {
        unsafe window.deallocate()
        unsafe outWindow.deallocate()
        unsafe powers.deallocate()
    }

    /// A block is a hop; frames `index − 1` to `index + 2` of the spectrum reach into it.
    func make(_ index: Int64, into block: StereoBuffer) {
        let last = index + Int64(SpectralGrid.overlap / 2)
        if frame == last - 1 {
            add(last)
        } else {
            begin(for: index)
        }
        block.copy(from: sum, at: 0, to: 0, count: grid.hop)
    }

    func forget() { frame = nil }

    private func begin(for index: Int64) {
        let firstHeard = index + grid.first
        let first = grid.beginning(for: firstHeard)
        frame = nil
        sum.clear(from: 0, count: sum.capacity)
        for k in first..<firstHeard { follow(k) }
        for k in firstHeard...index + Int64(SpectralGrid.overlap / 2) { add(k) }
    }

    private func add(_ index: Int64) {
        follow(index)
        let hop = grid.hop
        sum.copy(from: sum, at: hop, to: 0, count: sum.capacity - hop)
        sum.clear(from: sum.capacity - hop, count: hop)
        turn(by: hasFormer ? former : lead)
        // `before` is read no more.
        unsafe transform.addInverse(
            real: before.real.left, imaginary: before.imaginary.left, window: outWindow,
            to: sum.left)
        unsafe transform.addInverse(
            real: before.real.right, imaginary: before.imaginary.right, window: outWindow,
            to: sum.right)
    }

    /// Brings the chains to frame `index`, silently.
    private func follow(_ index: Int64) {
        let place = frames.load(from: grid.place(of: index), count: grid.window)
        swap(&now, &last)
        analyse(at: place + grid.margin, into: now)
        let isFirst = frame == nil
        analyse(at: place + grid.margin - grid.hop, into: before)
        compare()
        if !isFirst {
            lead.advance(by: advances, regions: regions)
            if hasFormer { former.advance(by: advances, regions: regions) }
        }
        let anchor = grid.anchor(upTo: index)
        if anchor == index {
            swap(&lead, &former)
            lead.reset()
            hasFormer = !isFirst
        } else if hasFormer {
            let left = anchor + grid.anchorHops - index
            former.approach(lead, share: 1 / Double(left), regions: regions)
        }
        if let attack = attack(at: place + grid.margin, frame: index) {
            let attackPlace = place + grid.margin + grid.length / 2 + attack
            analyse(at: attackPlace - grid.length, into: before)
            keep(attack)
        }
        frame = index
    }

    /// Frames from the middle of frame `index` to what is sharp and about to come, or just came.
    private func attack(at place: Int, frame index: Int64) -> Int? {
        let lead = grid.attackLead
        let skipped = grid.length / 2 - lead
        return attacks.attack(
            in: frames.held, at: place + skipped,
            position: grid.place(of: index) + Int64(grid.margin + skipped),
            count: grid.length - skipped
        ).map { $0 - lead }
    }

    /// Puts what is sharp where the map has it, for continued partials would smear it.
    ///
    /// The shift that moves it there is the same number of frames for all bins that it has filled,
    /// by what there was before. Where the voice's frame ends before it, these are brought back to
    /// that. All this is seen around the frame alone, so anchors need not know of it; and both
    /// chains are the same afterwards.
    ///
    /// - Parameter offset: item frames from the middle to it; `before` ends there.
    private func keep(_ offset: Int) {
        let due = Double(offset) / grid.speed
        for index in 0..<regions.count {
            let peak = regions.peak(index)
            let rise = unsafe powers[peak] / (before.power(at: peak) + 1e-20)
            if rise < Self.sharpRise { continue }
            let bins = regions.bins(index)
            if due < Double(grid.length / 2) {
                let turn = 2 * .pi * (Double(offset) - due) / Double(grid.length)
                lead.shift(bins, turnPerBin: turn)
                former.shift(bins, turnPerBin: turn)
            } else {
                now.scale(bins, by: 1 / rise.squareRoot())
            }
        }
    }

    private func analyse(at place: Int, into spectrum: Spectrum) {
        precondition(place + grid.length <= frames.held.capacity, "outside what is held")
        unsafe transform.forward(
            frames.held.left + place, window: window, real: spectrum.real.left,
            imaginary: spectrum.imaginary.left)
        unsafe transform.forward(
            frames.held.right + place, window: window, real: spectrum.real.right,
            imaginary: spectrum.imaginary.right)
    }

    /// Finds the regions of `now`, and for each bin the way from `before` to `last`.
    private func compare() {
        for i in 0..<transform.bins {
            unsafe powers[i] = now.power(at: i)
            let a = unsafe SIMD2(last.real.left[i], last.real.right[i])
            let b = unsafe SIMD2(last.imaginary.left[i], last.imaginary.right[i])
            let c = unsafe SIMD2(before.real.left[i], before.real.right[i])
            let d = unsafe SIMD2(before.imaginary.left[i], before.imaginary.right[i])
            unsafe advances.left[i] = (a * c + b * d).sum()
            unsafe advances.right[i] = (b * c - a * d).sum()
        }
        unsafe regions.find(in: UnsafeBufferPointer(powers))
    }

    private func turn(by chain: PhaseChain) {
        for i in 0..<transform.bins {
            let (x, y) = unsafe (chain.turns.left[i], chain.turns.right[i])
            let real = unsafe SIMD2(now.real.left[i], now.real.right[i])
            let imaginary = unsafe SIMD2(now.imaginary.left[i], now.imaginary.right[i])
            let a = real * x - imaginary * y
            let b = real * y + imaginary * x
            unsafe (before.real.left[i], before.real.right[i]) = (a.x, a.y)
            unsafe (before.imaginary.left[i], before.imaginary.right[i]) = (b.x, b.y)
        }
    }
}
