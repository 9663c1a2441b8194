import Testing
import TuttiRealTime

@Suite struct LatestValueTests {
    /// Nine words and a bit, all of which must stem from the same store.
    private struct Wide: BitwiseCopyable, Sendable {
        var words = (0 as UInt64, 0 as UInt64, 0 as UInt64, 0 as UInt64, 0 as UInt64)
        var tail: UInt8 = 0

        init(_ n: UInt64) {
            words = (n, n &* 3, ~n, n << 7, n)
            tail = UInt8(truncatingIfNeeded: n)
        }
        var isWhole: Bool {
            let n = words.0
            return words.1 == n &* 3 && words.2 == ~n && words.3 == n << 7 && words.4 == n
                && tail == UInt8(truncatingIfNeeded: n)
        }
    }

    @Test func `load gives what was stored last, odd sizes included`() {
        let flag = LatestValue<Bool>(true)
        #expect(flag.load())
        flag.store(false)
        #expect(!flag.load())
        let wide = LatestValue(Wide(1))
        for n in 2..<20 as Range<UInt64> {
            wide.store(Wide(n))
            #expect(wide.load().words.0 == n && wide.load().isWhole)
        }
    }

    @Test func `readers never see a mixture and never see time run backwards`() async {
        let cell = LatestValue(Wide(0))
        let last: UInt64 = 100_000
        async let written: Void = {
            for n in 1...last { cell.store(Wide(n)) }
        }()
        var seen: UInt64 = 0
        var torn = 0
        var backwards = 0
        while seen < last {
            let value = cell.load()
            if !value.isWhole { torn += 1 }
            if value.words.0 < seen { backwards += 1 }
            seen = value.words.0
            if seen == 0 { await Task.yield() }
        }
        await written
        #expect(torn == 0)
        #expect(backwards == 0)
    }
}

@Suite struct CommandRingTests {
    @Test func `commands come out in order and a full ring refuses`() {
        let ring = CommandRing<Int>(capacity: 3)
        #expect(ring.capacity == 4)
        #expect(ring.pop() == nil)
        for n in 0..<4 { #expect(ring.push(n)) }
        #expect(!ring.push(99))
        #expect(ring.pop() == 0)
        #expect(ring.push(4))
        #expect((0..<4).map { _ in ring.pop() } == [1, 2, 3, 4])
        #expect(ring.pop() == nil)
    }

    @Test func `nothing is lost or doubled between two threads`() async {
        let ring = CommandRing<Int>(capacity: 8)
        let total = 50_000
        async let pushed: Void = {
            for n in 0..<total {
                while !ring.push(n) { await Task.yield() }
            }
        }()
        var expected = 0
        var wrong = 0
        while expected < total {
            if let n = ring.pop() {
                if n != expected { wrong += 1 }
                expected += 1
            } else {
                await Task.yield()
            }
        }
        await pushed
        #expect(wrong == 0)
        #expect(ring.pop() == nil)
    }
}
