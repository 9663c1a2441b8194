import TuttiChance

extension SplitMix64 {
    /// The stream of one concern: the name and the numbers decide it, whatever else is drawn.
    init(seed: UInt64, _ concern: String, _ numbers: Int...) {
        var hash = TraceHash()
        hash.add(seed)
        for byte in concern.utf8 { hash.add(UInt64(byte)) }
        for number in numbers { hash.add(UInt64(bitPattern: Int64(number))) }
        self.init(seed: hash.value)
    }
}
