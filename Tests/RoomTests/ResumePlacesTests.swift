import Testing
import TuttiPlayout

@testable import TuttiRoom

@Suite struct ResumePlacesTests {
    @Test func `a long item is gone on with, and one that was heard is not`() {
        var places = ResumePlaces()
        places.leave("a", at: 1_000, of: 3_600)
        #expect(places.seconds(of: "a") == 1_000 && places.seconds(of: "b") == nil)
        places.leave("a", at: 1_200, of: 3_600)
        #expect(places.seconds(of: "a") == 1_200 && places.places.count == 1)
        // Near the beginning, near the end, and too short.
        for (seconds, duration) in [(10.0, 3_600.0), (3_590, 3_600), (100, 300)] {
            places.leave("b", at: seconds, of: duration)
            #expect(places.seconds(of: "b") == nil)
        }
        places.leave("a", at: 3_600, of: 3_600)
        #expect(places.places.isEmpty)
    }

    @Test func `whatever an item is called comes back`() {
        var places = ResumePlaces()
        let names = ["/a b/ü %20.mp3", "http://nas/x?y=z", String(fileName: [0x2F, 0xFF, 0x0A])]
        for name in names { places.leave(name, at: 700, of: 3_600) }
        let again = ResumePlaces(text: places.text)
        #expect(again == places)
        #expect(names.allSatisfy { again.seconds(of: $0) == 700 })
        #expect(places.text.split(separator: "\n").count == 3)
    }

    @Test func `the file stays small, and nonsense in it is left out`() {
        var places = ResumePlaces()
        for number in 0..<300 { places.leave("\(number)", at: 700, of: 3_600) }
        #expect(places.places.count == ResumePlaces.most && places.seconds(of: "299") == 700)
        let text = "nan a\n-1 b\n5\n\n 7 c\n12 d\n1e99 e\n"
        #expect(ResumePlaces(text: text).places.map(\.item).contains("d"))
        #expect(ResumePlaces(text: text).seconds(of: "a") == nil)
    }

    @Test func `places outlive the process`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        var places = try ResumePlaces.load(folder: folder.path("state"))
        #expect(places == ResumePlaces())
        places.leave("/a.mp3", at: 700, of: 3_600)
        try places.save(folder: folder.path("state"))
        #expect(try ResumePlaces.load(folder: folder.path("state")) == places)
    }
}
