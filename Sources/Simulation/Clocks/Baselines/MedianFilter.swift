/// The median of the last 200 offsets, without a rate: what Snapcast's clients do.
///
/// Written from its description: offset = (forward − backward)/2, no weight, no drift. In the
/// steady state the answer is half a window old: a rate of r ppm is an error of r times that.
struct MedianFilter: ClockFilter {
    static let length = 200

    private var offsets: [Double] = []
    private var next = 0
    private var median: Double?

    mutating func receive(_ exchange: Exchange) {
        if offsets.count < Self.length {
            offsets.append(exchange.offset)
        } else {
            offsets[next] = exchange.offset
            next = (next + 1) % Self.length
        }
        median = offsets.sorted()[offsets.count / 2]
    }

    func offset(at time: Double) -> Double? { median }
}
