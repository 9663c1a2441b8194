import Foundation
import FoundationXML
import Testing
import TuttiSimulation

@testable import tutti

/// A run as a picture.
@Suite struct SimulationPlotTests {
    private final class Counter: NSObject, XMLParserDelegate {
        var elements: [String: Int] = [:]
        var text = ""

        func parser(
            _ parser: XMLParser, didStartElement name: String, namespaceURI: String?,
            qualifiedName: String?, attributes: [String: String] = [:]
        ) {
            elements[name, default: 0] += 1
        }

        func parser(_ parser: XMLParser, foundCharacters string: String) { text += string }
    }

    @Test func `a picture is well formed, and shows every room, line and leader`() throws {
        let report = try SimulationRun.run(
            scenario: "succession", seed: 2, seconds: 14, keepsHistory: true)
        let history = try #require(report.history)
        let plot = SimulationPlot(report: report, history: history)
        let parser = XMLParser(data: Data(plot.text.utf8))
        let counter = Counter()
        parser.delegate = counter
        #expect(parser.parse(), "\(parser.parserError as Any)")
        #expect(!plot.text.contains("nan") && !plot.text.contains("inf"))
        for room in history.rooms { #expect(counter.text.contains(room)) }
        // The ground, a square for each room, and a bar for each reign.
        #expect(counter.elements["rect"] == 1 + history.rooms.count + history.reigns.count)
    }
}
