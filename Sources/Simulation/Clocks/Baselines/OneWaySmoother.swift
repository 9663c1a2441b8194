/// Only the packets from the leader, and only their earliest: what nqptp does for AirPlay 2.
///
/// Written from its description: in the first second every change that makes a packet earlier is
/// taken and no other; later a sixteenth of those and a 256th of the rest, at most 2.5 ms at a
/// time. The smallest delay of the way stays in it as an error for ever.
struct OneWaySmoother: ClockFilter {
    static let begin = 1.0
    static let least = -2.5e-3

    private var start: Double?
    private var estimate: Double?

    mutating func receive(_ exchange: Exchange) {
        let start = start ?? exchange.arrived
        self.start = start
        guard let estimate else {
            self.estimate = -exchange.backward
            return
        }
        let change = -exchange.backward - estimate
        if exchange.arrived - start < Self.begin {
            self.estimate = estimate + max(0, change)
        } else {
            self.estimate = estimate + (change > 0 ? change / 16 : max(change, Self.least) / 256)
        }
    }

    func offset(at time: Double) -> Double? { estimate }
}
