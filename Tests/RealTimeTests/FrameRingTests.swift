import Testing
import TuttiRealTime

/// Frame k carries k on the left and −k on the right: any misplaced sample shows.
private func frames(_ range: Range<Int64>) -> [Float] {
    range.flatMap { [Float($0 & 0xFFFF), -Float($0 & 0xFFFF)] }
}

extension FrameRing {
    fileprivate func write(_ samples: [Float]) -> Int {
        samples.withUnsafeBufferPointer { write($0) }
    }
    fileprivate func read(_ range: Range<Int64>) -> [Float] {
        var left = [Float](repeating: .nan, count: range.count)
        var right = left
        left.withUnsafeMutableBufferPointer { l in
            right.withUnsafeMutableBufferPointer { r in
                copy(
                    from: range.lowerBound, count: range.count, left: l.baseAddress!,
                    right: r.baseAddress!)
            }
        }
        return zip(left, right).flatMap { [$0, $1] }
    }
}

@Suite struct FrameRingTests {
    @Test func `what is written is read under its absolute frame number`() {
        let ring = FrameRing(capacityFrames: 8)
        ring.reset(firstFrame: 1_000_003)
        #expect(ring.write(frames(1_000_003..<1_000_009)) == 6)
        #expect(ring.firstFrame == 1_000_003)
        #expect(ring.endFrame == 1_000_009)
        #expect(ring.read(1_000_004..<1_000_009) == frames(1_000_004..<1_000_009))
        #expect(ring.pointer(toFrame: 1_000_005)[1] == -Float(1_000_005 & 0xFFFF))
    }

    @Test func `a full ring takes only what fits`() {
        let ring = FrameRing(capacityFrames: 5)
        #expect(ring.capacityFrames == 8)
        #expect(ring.write(frames(0..<6)) == 6)
        #expect(ring.write(frames(6..<20)) == 2)
        #expect(ring.writableFrames == 0)
        ring.release(upTo: 3)
        #expect(ring.write(frames(8..<20)) == 3)
        #expect(ring.read(3..<11) == frames(3..<11))
    }

    @Test func `releasing neither goes back nor beyond what was written`() {
        let ring = FrameRing(capacityFrames: 16)
        _ = ring.write(frames(0..<10))
        ring.release(upTo: 6)
        ring.release(upTo: 2)
        #expect(ring.firstFrame == 6)
        ring.release(upTo: 1_000)
        #expect(ring.firstFrame == 10)
        #expect(ring.writableFrames == 16)
    }

    @Test func `the end is known once the producer has finished, until a reset`() {
        let ring = FrameRing(capacityFrames: 16)
        _ = ring.write(frames(0..<3))
        #expect(!ring.isFinished)
        ring.finish()
        #expect(ring.isFinished)
        ring.reset(firstFrame: 7)
        #expect(!ring.isFinished)
        #expect(ring.firstFrame == 7 && ring.endFrame == 7)
    }

    @Test func `two threads hand over every frame once and in order`() async {
        let ring = FrameRing(capacityFrames: 64)
        let total: Int64 = 60_000
        async let produced: Void = {
            var next: Int64 = 0
            var size: Int64 = 1
            while next < total {
                let end = min(total, next + size)
                let count = ring.write(frames(next..<end))
                next += Int64(count)
                size = size % 37 + 1
                if count == 0 { await Task.yield() }
            }
            ring.finish()
        }()
        var next: Int64 = 0
        var wrong = 0
        while true {
            let isFinished = ring.isFinished
            let end = ring.endFrame
            if next < end {
                if ring.read(next..<end) != frames(next..<end) { wrong += 1 }
                ring.release(upTo: end)
                next = end
            } else if isFinished {
                break
            } else {
                await Task.yield()
            }
        }
        await produced
        #expect(wrong == 0)
        #expect(next == total)
    }
}
