import Testing
import TuttiGroupControl
import TuttiRoom

@testable import tutti

/// How rooms were, kept by name.
@Suite struct SceneTests {
    private let evening = Scene(
        name: "Evening",
        groups: [
            Scene.Group(
                leader: "kitchen", volume: 60,
                rooms: [
                    Scene.Room(
                        name: "kitchen", volume: 100, muted: false, role: .left,
                        offsetMicroseconds: -1_500),
                    Scene.Room(name: "bath", volume: 40, muted: true),
                ])
        ], music: Scene.Music(locations: ["/music/a b"], seconds: 90))

    @Test func `scenes are kept as they are, one of each name`() throws {
        var book = SceneBook()
        try book.keep(evening)
        var louder = evening
        louder.name = "EVENING"
        louder.groups[0].volume = 80
        try book.keep(louder)
        #expect(book.scenes == [louder])
        let read = try SceneBook(bytes: book.bytes)
        #expect(read == book)
        #expect(try read.scene("evening") == louder)
        #expect(louder.summary == "kitchen 100 % + bath muted at 80 %, plays /music/a b")
        try book.remove("evening")
        #expect(book.scenes.isEmpty)
    }

    @Test func `a scene that is not there is refused with those that are`() throws {
        var book = SceneBook()
        let none = #expect(throws: CommandError.self) { try book.scene("x") }
        #expect(none?.description.contains("scene save") == true)
        try book.keep(evening)
        let error = #expect(throws: CommandError.self) { try book.remove("evenin") }
        #expect(error?.description.contains("did you mean \"Evening\"") == true)
    }

    @Test func `a damaged file, and one of a newer version, are said to be so`() {
        let damaged = #expect(throws: CommandError.self) { try SceneBook(bytes: Array("{".utf8)) }
        #expect(damaged?.description.contains("damaged") == true)
        let newer = #expect(throws: CommandError.self) {
            try SceneBook(bytes: Array(#"{"version": 2, "scenes": []}"#.utf8))
        }
        #expect(newer?.description.contains("newer") == true)
    }
}
