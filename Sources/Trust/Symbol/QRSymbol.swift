/// A square of dark and light modules that a camera reads: QR model 2 (ISO/IEC 18004), versions 1 to 6,
/// level M, alphanumeric mode.
///
/// Level M mends 15 % of damaged codewords, which is what a terminal with gaps between its lines
/// wants. Alphanumeric mode takes 5.5 bits for a character. Other versions, levels and modes are
/// left out: an invite needs version 2.
package struct QRSymbol: Equatable, Sendable {
    package static let versions = 1...6
    /// Most characters that version 6 takes.
    package static let longest = 154

    package let version: Int
    /// Which of the eight patterns lies over the data; the one with the least penalty.
    package let mask: Int
    /// Rows of modules from above, `true` is dark; `4 × version + 17` of each.
    package let modules: [[Bool]]

    package var size: Int { modules.count }

    /// The smallest symbol that holds `text`.
    ///
    /// - Parameter text: of digits, capital letters and ` $%*+-./:`, at most 154 characters.
    package init(_ text: String) throws(TrustError) {
        let values = try QRText.values(of: text)
        guard let version = Self.versions.first(where: { QRText.fits(values.count, in: $0) }) else {
            throw TrustError(
                .tooMany, "QR symbol",
                "takes \(Self.longest) characters, not \(values.count); give a shorter text")
        }
        let layout = QRLayout(version: version)
        let codewords = layout.interleaved(QRText.codewords(values, count: layout.dataCount))
        let candidates = (0..<8).map { QRMatrix(layout, codewords, mask: $0) }
        // Of equal ones the first, so that the same text is always the same symbol.
        var best = 0
        var least = Int.max
        for (mask, candidate) in candidates.enumerated() {
            let penalty = QRPenalty.of(candidate.modules)
            if penalty < least { (best, least) = (mask, penalty) }
        }
        self.version = version
        mask = best
        modules = candidates[best].modules
    }

    /// For a terminal: two modules one above the other in each character, four light ones around.
    ///
    /// - Parameter isDark: whether the terminal writes light on dark. Readers want a dark symbol on a
    ///   light ground, so light modules are written there, and dark ones elsewhere.
    package func lines(onDark isDark: Bool = true) -> [String] {
        let margin = 4
        let range = -margin..<size + margin
        func isInk(_ row: Int, _ column: Int) -> Bool {
            let isInside = (0..<size).contains(row) && (0..<size).contains(column)
            return (isInside && modules[row][column]) != isDark
        }
        return stride(from: range.lowerBound, to: range.upperBound, by: 2).map { row in
            range.map { column in
                // Below the last row there is nothing, whatever the ground.
                let isLast = row + 1 >= range.upperBound
                return switch (isInk(row, column), !isLast && isInk(row + 1, column)) {
                case (true, true): "█"
                case (true, false): "▀"
                case (false, true): "▄"
                case (false, false): " "
                }
            }.joined()
        }
    }
}
