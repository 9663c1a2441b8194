/// The order in which people count names: "2 b" before "10 a", whatever the case.
///
/// Runs of digits are compared as numbers, everything else letter by letter in lower case; what is
/// the same by that is told apart as it is written, so that the order is always one.
enum NaturalOrder {
    static func areInOrder(_ one: String, _ other: String) -> Bool {
        let (a, b) = (pieces(of: one), pieces(of: other))
        for (x, y) in zip(a, b) where x != y { return x < y }
        if a.count != b.count { return a.count < b.count }
        return one.unicodeScalars.lexicographicallyPrecedes(other.unicodeScalars)
    }

    private enum Piece: Comparable {
        /// Digits without leading zeros: as many as there are, of any length.
        case number([Unicode.Scalar])
        case text([Unicode.Scalar])

        static func < (one: Piece, other: Piece) -> Bool {
            switch (one, other) {
            case (.number(let a), .number(let b)):
                a.count != b.count ? a.count < b.count : a.lexicographicallyPrecedes(b)
            case (.text(let a), .text(let b)): a.lexicographicallyPrecedes(b)
            // As digits stand before letters.
            case (.number, .text): true
            case (.text, .number): false
            }
        }
    }

    private static func pieces(of name: String) -> [Piece] {
        var pieces: [Piece] = []
        var run: [Unicode.Scalar] = []
        var isNumber = false
        func isDigit(_ scalar: Unicode.Scalar) -> Bool { ("0"..."9").contains(scalar) }
        func finish() {
            guard !run.isEmpty else { return }
            pieces.append(isNumber ? .number(Array(run.drop { $0 == "0" })) : .text(run))
            run = []
        }
        for scalar in name.lowercased().unicodeScalars {
            if isDigit(scalar) != isNumber {
                finish()
                isNumber.toggle()
            }
            run.append(scalar)
        }
        finish()
        return pieces
    }
}
