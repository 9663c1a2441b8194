import Testing
import TuttiPlayout

@testable import TuttiFFmpegMedia

/// What is known of a file while it comes.
@Suite struct ArrivalTests {
    typealias Arrival = IncomingFile.Arrival
    private let file = OpenFile(-1)
    private let error = MediaError(
        .network, operation: "read", subject: "a", reason: "broke off")

    private func isSeen(_ arrival: Arrival) -> Bool { arrival.bytes != nil }

    @Test func `before its fetch, what readers asked for is counted`() {
        var arrival = Arrival.announced(mayAsk: 100)
        arrival.ask(60)
        arrival.ask(60)
        guard case .announced(-20) = arrival else { return #expect(Bool(false), "\(arrival)") }
        arrival.begin(in: file, holding: 5)
        arrival.ask(60)
        #expect(arrival.held == 5 && isSeen(arrival), "nobody counts any more")
    }

    @Test func `what nobody verified has come, and is not seen`() {
        var arrival = Arrival.announced(mayAsk: 0)
        arrival.begin(in: nil, holding: 70)
        #expect(arrival.held == 0 && !isSeen(arrival), "it may have to come again")
        arrival.reach(80)
        #expect(arrival.held == 80 && !isSeen(arrival))
        arrival.begin(in: file, holding: 90)
        #expect(arrival.held == 90 && isSeen(arrival))
    }

    @Test func `what was seen stays so while another one fetches it, and when no more comes`() {
        var arrival = Arrival.announced(mayAsk: 0)
        arrival.begin(in: file, holding: 10)
        arrival.begin(in: nil, holding: 0)
        arrival.reach(20)
        #expect(arrival.held == 20 && isSeen(arrival))
        arrival.end(error)
        #expect(arrival.held == 20 && isSeen(arrival) && arrival.failure?.code == .network)
        // Somebody else had it all the same.
        arrival.begin(in: file, holding: 30)
        #expect(arrival.held == 30 && arrival.failure?.code == .network)
    }

    @Test func `what is lost is neither there nor seen, and the reason stays`() {
        var arrival = Arrival.announced(mayAsk: 0)
        arrival.begin(in: file, holding: 10)
        arrival.lose()
        #expect(arrival.held == 0 && !isSeen(arrival) && arrival.failure == nil)
        arrival.begin(in: file, holding: 10)
        arrival.end(error)
        arrival.lose()
        #expect(arrival.held == 0 && !isSeen(arrival) && arrival.failure?.code == .network)
    }

    @Test
    func `of the blocks that readers got the last few are kept, as long as the disk lacks them`() {
        var blocks = ReadBlocks()
        for begin in [0, 100, 200, 300, 400] as [Int64] {
            blocks.keep(ReadBlocks.Block(begin: begin, bytes: [UInt8](repeating: 1, count: 10)))
        }
        #expect(blocks.block(at: 5) == nil && blocks.block(at: 105)?.begin == 100)
        #expect(blocks.block(at: 110) == nil && blocks.lead(to: 110))
        blocks.forget(below: 209)
        #expect(blocks.block(at: 105) == nil && blocks.block(at: 209)?.begin == 200)
        blocks.forget(below: 1_000)
        #expect(blocks.isEmpty)
    }
}
