import CTuttiAllocations
import Testing
import TuttiChance

@testable import TuttiPlayout

import func Glibc.getenv

/// What is not optimised allocates for generic code; `Package.swift` asks for the same variable.
private var isOptimised: Bool {
    #if DEBUG
    getenv("OPTIMISE_PURE_TARGETS") != nil
    #else
    true
    #endif
}

/// Each frame is a function of its number: bit for bit, however it was come by.
@Suite struct StretchPlaceTests {
    struct Case: CustomTestStringConvertible {
        var algorithm: TimePitchAlgorithm
        var rate: Double
        var testDescription: String { "\(algorithm) \(rate)" }
    }

    static let cases =
        [0.25, 0.8, 1.5, 2.7, -0.7, -1.5].flatMap { rate in
            Stretch.algorithms.map { Case(algorithm: $0, rate: rate) }
        } + [
            Case(algorithm: .varispeed, rate: 3.3), Case(algorithm: .varispeed, rate: 0.3),
            Case(algorithm: .varispeed, rate: -1.25), Case(algorithm: .varispeed, rate: 21),
            Case(algorithm: .timeDomain, rate: 32), Case(algorithm: .spectral, rate: -32),
            Case(algorithm: .spectral, rate: -1),
        ]

    /// Some seconds of the voice, whatever the rate.
    private func item(for rate: Double) -> MemoryItem {
        .medley(frames: Int(min(80_000, 30_000 * max(0.3, rate.magnitude))))
    }

    @Test(arguments: cases)
    func `chunks of any size and jumps in any order give the same bits`(_ test: Case) throws {
        let item = item(for: test.rate)
        func make() -> any FrameTransform {
            Stretch.make(test.algorithm, test.rate, item, sampleRate: 8_000)
        }
        let whole = try Stretch.frames(of: make())
        let count = whole.count / 2
        #expect(Set(whole.prefix(4_000)).count > 1_000)
        var random = SplitMix64(seed: 7)
        let once = make()
        for jump in 0..<16 {
            let place = Int(random.uniform(0, Double(count)))
            // Every other time by a transform that has read nothing else.
            let reader = jump.isMultiple(of: 2) ? once : make()
            let frames = try Stretch.frames(
                of: reader, from: Int64(place), count: 1 + Int(random.uniform(0, 3_000)),
                atOnce: 1 + Int(random.exponential(mean: 400)))
            let wanted = whole[2 * place..<2 * place + frames.count]
            #expect(
                zip(frames, wanted).allSatisfy { $0.bitPattern == $1.bitPattern },
                "\(frames.count / 2) frames from \(place) on")
            #expect(!frames.isEmpty)
        }
    }

    /// The second before a frame has an anchor in it, and the one before that a handover.
    @Test(arguments: Stretch.algorithms, [0.5, 1, 1.5, 2, 4].filter { $0 != 1 })
    func `a jump reads two anchors of the item at most`(
        algorithm: TimePitchAlgorithm, rate: Double
    ) throws {
        let sampleRate = 8_000
        let item = MemoryItem.medley(frames: Int(40_000 * rate))
        let whole = Int64(40_000)
        for place in stride(from: Int64(0), to: whole, by: 4_713) {
            let before = item.framesRead
            let transform = Stretch.make(algorithm, rate, item, sampleRate: sampleRate)
            _ = try Stretch.frames(of: transform, from: place, count: 64)
            let limit = 2 * min(rate, 2) * Double(sampleRate)
            // A window of the algorithm, and what a chunk reads further.
            let slack = 0.2 * Double(sampleRate) * max(1, rate) + 2_048
            #expect(Double(item.framesRead - before) < limit + slack)
        }
    }

    @Test(arguments: cases)
    func `playing on reads each frame once`(_ test: Case) throws {
        let item = item(for: test.rate)
        let transform = Stretch.make(test.algorithm, test.rate, item, sampleRate: 8_000)
        _ = try Stretch.frames(of: transform, atOnce: 100)
        #expect(item.framesRead <= item.samples.count / 2)
    }

    @Test(arguments: cases)
    func `a reader that gives one frame at a time gives the same samples`(_ test: Case) throws {
        let item = MemoryItem.medley(frames: Int(6_000 * max(1, test.rate.magnitude)))
        let wanted = try Stretch.frames(
            of: Stretch.make(test.algorithm, test.rate, item, sampleRate: 8_000))
        item.atOnce = 1
        let frames = try Stretch.frames(
            of: Stretch.make(test.algorithm, test.rate, item, sampleRate: 8_000))
        #expect(frames == wanted && !frames.isEmpty)
    }

    @Test(arguments: cases)
    func `an error of the reader passes through and leaves nothing behind`(_ test: Case) throws {
        let item = MemoryItem.medley(frames: Int(16_000 * max(0.5, test.rate.magnitude)))
        let clean = Stretch.make(test.algorithm, test.rate, item, sampleRate: 8_000)
        let wanted = try Stretch.frames(of: clean)
        let calls = item.calls
        for failing in stride(from: 0, to: calls, by: max(1, calls / 7)) {
            let transform = Stretch.make(test.algorithm, test.rate, item, sampleRate: 8_000)
            item.callsUntilFailure = failing
            var frames: [Float] = []
            var (errors, place) = (0, 0)
            while frames.count < wanted.count, errors < 2 {
                do {
                    frames += try Stretch.frames(
                        of: transform, from: Int64(frames.count / 2), count: 500, atOnce: 500)
                } catch {
                    #expect(error as? MediaError == MemoryItem.failure)
                    (errors, place) = (errors + 1, frames.count / 2)
                }
            }
            // Backwards the last call may be about what the item does not have.
            #expect(errors == 1 || errors == 0 && test.rate < 0)
            #expect(frames.count == wanted.count)
            // What reached to the place that failed was made without it; nothing behind it was.
            #expect(frames[(2 * place)...] == wanted[(2 * place)...])
            let before = 2 * max(0, place - Self.reach(test))
            #expect(frames[..<before] == wanted[..<before])
        }
    }

    /// Frames of the voice that are made of what lies a place's reach before it, generously.
    private static func reach(_ test: Case) -> Int {
        let blocks = test.rate < 0 ? PlayedFrames.blockFrames : 0
        return Int(Double(blocks + 4_000) / test.rate.magnitude) + 4_000
    }

    @Test(arguments: cases)
    func `what lies before a place that cannot be read is played, and then it fails`(
        _ test: Case
    ) throws {
        let item = MemoryItem.medley(frames: 40_000)
        item.failsAt = 20_000
        let transform = Stretch.make(test.algorithm, test.rate, item, sampleRate: 8_000)
        let speed = test.rate.magnitude
        let first: Int64 = test.rate < 0 ? Int64(20_500 / speed) : 0
        // From its place on nothing is there, forwards; backwards it is all that lies above.
        let last =
            test.rate < 0 ? Int64(40_000 / speed) : Int64((20_000 / speed).rounded(.up))
        let frames = try Stretch.frames(of: transform, from: first, count: Int(last - first))
        #expect(frames.count == 2 * Int(last - first))
        let sound = Stretch.channel(frames)
        #expect(Stretch.level(sound.prefix(sound.count / 2)) > -60)
        // Grains of a high rate lie far apart.
        let failing = Int64((test.rate < 0 ? 19_000 : 39_000) / speed)
        for _ in 0..<2 {
            #expect(throws: MemoryItem.failure) {
                try Stretch.frames(of: transform, from: failing, count: 1)
            }
        }
    }

    /// A jump that failed has brought chains to some place, which began elsewhere than for a read
    /// there.
    @Test(arguments: Stretch.algorithms, [1, 3, 6])
    func `a jump that failed leaves nothing behind, wherever is read next`(
        algorithm: TimePitchAlgorithm, failing: Int
    ) throws {
        let item = MemoryItem.medley(frames: 40_000)
        let place: Int64 = 24_000
        func make() -> any FrameTransform {
            Stretch.make(algorithm, 1.5, item, sampleRate: 8_000)
        }
        let whole = try Stretch.frames(of: make())
        let hop =
            algorithm == .spectral
            ? SpectralGrid(sampleRate: 8_000, speed: 1.5).hop
            : GrainGrid(sampleRate: 8_000, speed: 1.5, frameCount: nil).hop
        for block in Int(place) / hop - 20_000 / hop..<Int(place) / hop {
            let transform = make()
            item.callsUntilFailure = failing
            #expect(throws: MemoryItem.failure) {
                try Stretch.frames(of: transform, from: place, count: 1)
            }
            let first = block * hop
            let frames = try Stretch.frames(of: transform, from: Int64(first), count: 8)
            #expect(frames[...] == whole[2 * first..<2 * first + 16], "block \(block)")
        }
    }

    @Test(
        .enabled(
            if: countsAllocations() == 1 && isOptimised, "this build does not count allocations"))
    func `playing on takes nothing from the heap`() throws {
        for test in Self.cases {
            let item = item(for: test.rate)
            let transform = Stretch.make(test.algorithm, test.rate, item, sampleRate: 8_000)
            var buffer = [Float](repeating: 0, count: 512)
            var calls: UInt = 0
            var position: Int64 = 0
            try buffer.withUnsafeMutableBufferPointer { buffer in
                for round in 0..<40 {
                    let before = allocationsOfThisThread()
                    position += Int64(try transform.read(at: position, into: buffer))
                    if round >= 20 { calls += allocationsOfThisThread() - before }
                }
            }
            #expect(calls == 0, "\(test.testDescription)")
        }
    }
}
