extension Int64 {
    /// Bytes as megabytes (10⁶ bytes) with one decimal, rounded up: what does not fit must not look as if
    /// it did.
    package var megabytes: String {
        let tenths = (self + 99_999) / 100_000
        return "\(tenths / 10).\(tenths % 10)"
    }
}
