import Testing
import TuttiChance

@testable import TuttiWire

@Suite struct `Messages on a stream` {
    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `however the network cuts it, the same messages come out`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let messages: [[UInt8]] = (0..<30).map { _ in
            let count = Int.random(in: 0...300, using: &random)
            return (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
        }
        var rest = messages.flatMap(FrameEncoder.frame)[...]
        var decoder = FrameDecoder(limit: 300)
        var read: [[UInt8]] = []
        while !rest.isEmpty {
            let count = min(rest.count, Int.random(in: 1...500, using: &random))
            read += try decoder.feed(rest.prefix(count))
            rest = rest.dropFirst(count)
        }
        #expect(read == messages)
        #expect(decoder.pendingByteCount == 0)
    }

    @Test func `a claimed length above the limit ends the stream for good`() {
        var decoder = FrameDecoder(limit: 1_000)
        #expect(throws: WireError.self) { try decoder.feed([0xFF, 0xFF, 0xFF, 0xFF, 1]) }
        #expect(throws: WireError.self) { try decoder.feed([0, 0, 0, 0]) }
        #expect(decoder.pendingByteCount == 0)
    }

    @Test func `only bytes that came are kept, not what is claimed`() throws {
        var decoder = FrameDecoder(limit: 1 << 20)
        #expect(try decoder.feed([0, 0x0F, 0xFF, 0xFF]).isEmpty)
        #expect(decoder.pendingByteCount == 4)
    }

    @Test func `what is not wanted yet waits, and comes in order`() throws {
        let messages = (0..<10).map { [UInt8](repeating: $0, count: Int($0)) }
        var decoder = FrameDecoder(limit: 100)
        var read = try decoder.feed(messages.flatMap(FrameEncoder.frame), most: 3)
        #expect(read.count == 3 && decoder.hasMessage)
        #expect(try decoder.feed([], most: 0).isEmpty)
        while decoder.hasMessage { read += try decoder.feed([], most: 2) }
        #expect(read == messages)
        #expect(decoder.pendingByteCount == 0)
        // One that is too long is found, not waited for.
        #expect(try decoder.feed([0, 0, 1, 0], most: 0).isEmpty)
        #expect(decoder.hasMessage)
        #expect(throws: WireError.self) { try decoder.feed([], most: 1) }
    }
}
