import Testing

@testable import TuttiRoom

struct AnnouncedTextTests {
    private static let names = [
        "kitchen", String(repeating: "a", count: 63), String(repeating: "a", count: 64),
        String(repeating: "é", count: 64), String(repeating: "🎵", count: 64),
        String(repeating: "👩‍👩‍👧‍👦", count: 10),
    ]

    @Test(arguments: names)
    func `a label fits into DNS, and is the name's beginning in whole characters`(name: String) {
        let label = AnnouncedText.label(for: name)
        #expect((1...63).contains(label.utf8.count))
        if name.utf8.count <= 63 {
            #expect(label == name)
        } else {
            let mark = label.suffix(7)
            #expect(mark.hasPrefix("~"))
            #expect(name.hasPrefix(String(label.dropLast(7))))
        }
    }

    @Test func `names that begin alike are different labels`() {
        let begin = String(repeating: "long ", count: 12)
        let labels = (0..<50).map { AnnouncedText.label(for: begin + "\($0)") }
        #expect(Set(labels).count == labels.count)
    }

    @Test(arguments: names)
    func `a name is announced in full, in strings that fit`(name: String) {
        let attributes = AnnouncedText.attributes("name", name)
        #expect(attributes.allSatisfy { $0.key.utf8.count + 1 + $0.value.utf8.count <= 255 })
        #expect(AnnouncedText.value("name", in: attributes) == name)
    }

    @Test func `what is not announced is not there`() {
        #expect(AnnouncedText.value("name", in: ["name2": "x"]) == nil)
    }
}
