import TuttiDeviceOutput
import TuttiGroupControl

/// One more room of a machine that has several outputs: `desk=alsa:hw:1,0`.
struct FurtherRoom: Equatable, Sendable {
    /// A machine has as many outputs as fit its owner's patience.
    static let most = 7

    var name: String
    var output: OutputSpecification

    /// Several, with semicolons between them: names of cards have commas.
    ///
    /// - Returns: `nil` where one of them makes no sense, or two have one name.
    static func parse(_ text: String) -> [FurtherRoom]? {
        var rooms: [FurtherRoom] = []
        for part in text.split(separator: ";") {
            let words = part.split(separator: "=", maxSplits: 1)
            guard words.count == 2, let name = Settings.roomName(String(words[0])),
                let output = try? OutputSpecification(parsing: trimmed(words[1])), output != .none,
                !rooms.contains(where: { $0.name.foldedName == name.foldedName })
            else { return nil }
            rooms.append(FurtherRoom(name: name, output: output))
        }
        return rooms.isEmpty || rooms.count > most ? nil : rooms
    }

    private static func trimmed(_ text: Substring) -> String {
        String(text.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
    }
}
