/// √x without a C function, for the output thread: a guess from half the exponent, then Newton.
///
/// - Parameter x: not negative; 0 gives a value below 1e-150.
@_noLocks @_noAllocation
func squareRoot(of x: Double) -> Double {
    guard x > 0 else { return 0 }
    var root = Double(bitPattern: (x.bitPattern >> 1) + 0x1FF8_0000_0000_0000)
    for _ in 0..<4 { root = 0.5 * (root + x / root) }
    return root
}
