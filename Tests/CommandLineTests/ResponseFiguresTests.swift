import Testing

@testable import tutti

@Suite struct ResponseFiguresTests {
    @Test func `quantiles are values that were measured, the smallest that suffice`() {
        let figures = ResponseFigures(
            "pause", heard: (1...20).map(Double.init).reversed(), answered: [3, 1, 2])
        #expect(figures.count == 20)
        #expect(figures.median == 10 && figures.p95 == 19 && figures.longest == 20)
        #expect(figures.answeredMedian == 2)
        #expect([4].nearestRank(0.95) == 4)
        #expect([].nearestRank(0.5) == nil)
    }

    @Test func `the table has a line for each command`() {
        let figures = [
            ResponseFigures("pause", heard: [1.25], answered: [0.5]),
            ResponseFigures("seek", heard: [100], answered: [90]),
        ]
        let lines = ResponseFigures.text(figures, width: 100)
        #expect(lines.count == 3)
        #expect(lines[1].contains("pause") && lines[1].contains("1.2"))
        #expect(lines[2].contains("100.0"))
    }
}
