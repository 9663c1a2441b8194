import Testing

@testable import tutti

@Suite struct LockstepTests {
    static let programme = 0.2...2.0

    static func take(
        _ name: String, _ partsPerMillion: Double, delay: Double = 0,
        change: (inout [Float]) -> Void = { _ in }
    ) -> Take {
        var take = Take.synthetic(
            name, of: Content(seed: 3, tones: 12), partsPerMillion: partsPerMillion, delay: delay,
            length: 2.2, sounds: programme)
        change(&take.segments[0].samples)
        return take
    }

    /// A quarter of a sample is 5.2 µs.
    @Test(arguments: [4.0, 7])
    func `rooms are as far apart as the figures say, and in lockstep below a quarter of a sample`(
        microseconds: Double
    ) throws {
        let delay = microseconds * 1e-6
        let result = try #require(
            Lockstep.measure([Self.take("a", 80), Self.take("b", -120, delay: delay)]))
        #expect(result.points.count == 2)
        #expect(abs(result.percentile(0.5) - microseconds) < 0.2)
        #expect(abs(result.maximum - microseconds) < 0.2)
        #expect(abs(result.startSkewMicroseconds - microseconds) < 0.5)
        #expect(result.dropouts == [])
        #expect((result.complaint == nil) == (microseconds < 5.2))
    }

    @Test func `a hole is one dropout of the room that has it`() throws {
        let hole = Self.take("b", 0) { samples in
            for i in 48_000..<48_480 { samples[i] = 0 }
        }
        let result = try #require(Lockstep.measure([Self.take("a", 0), hole]))
        #expect(result.dropouts.map(\.kind) == [.gap])
        #expect(result.dropouts.first?.room == 1)
        #expect(abs((result.dropouts.first?.milliseconds ?? 0) - 10) < 0.1)
        #expect(result.complaint?.contains("dropout") == true)
    }

    @Test func `silence that all rooms share is part of the programme`() throws {
        let pause: (inout [Float]) -> Void = { samples in
            for i in 48_000..<52_800 { samples[i] = 0 }
        }
        let result = try #require(
            Lockstep.measure([Self.take("a", 0, change: pause), Self.take("b", 0, change: pause)]))
        #expect(result.dropouts == [])
    }

    @Test func `a frame that is left out is a step`() throws {
        let skipping = Self.take("b", 0) { samples in samples.remove(at: 50_000) }
        let result = try #require(Lockstep.measure([Self.take("a", 0), skipping]))
        #expect(Set(result.dropouts.map(\.kind)) == [.step])
        // The content after the missing frame comes one frame earlier.
        #expect(result.dropouts.allSatisfy { abs(abs($0.milliseconds) - 1 / 48.0) < 0.01 })
    }

    @Test func `a room that never sounds is not in lockstep`() throws {
        let silent = Self.take("b", 0) { samples in
            for i in samples.indices { samples[i] = 0 }
        }
        let result = try #require(Lockstep.measure([Self.take("a", 0), silent]))
        #expect(result.unmatchedCount == result.points.count)
        #expect(result.complaint != nil)
        #expect(Lockstep.measure([silent]) == nil)
    }

    @Test func `a percentile is a value that was measured`() {
        var result = Lockstep(
            rooms: ["a", "b"], pairs: [(0, 1)], points: [], startSkewMicroseconds: 0,
            dropouts: [], programmeSeconds: 1)
        #expect(result.percentile(0.5).isNaN)
        result.points = (1...200).map {
            .init(
                pair: 0, seconds: Double($0),
                skewMicroseconds: $0.isMultiple(of: 2) ? Double($0) : -Double($0))
        }
        #expect(result.percentile(0.5) == 100)
        #expect(result.percentile(0.99) == 198)
        #expect(result.maximum == 200)
        result.points.append(.init(pair: 0, seconds: 0, skewMicroseconds: nil))
        #expect(result.percentile(0.99) == 198)
        #expect(result.unmatchedCount == 1)
    }
}
