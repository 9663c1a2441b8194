import TuttiPlayout

/// Where long items were left, to be gone on with: the file `places` of the state folder, a line for
/// each, `seconds item`, the one that was left last at the end.
package struct ResumePlaces: Equatable, Sendable {
    /// Who leaves a song wants to hear it from its beginning; seconds.
    package static let shortestItem = 600.0
    /// So near to the beginning or the end nothing is worth going on with; seconds.
    static let margin = 30.0
    static let most = 100
    private static let name = "places"

    struct Place: Equatable, Sendable {
        var item: String
        var seconds: Double
    }

    private(set) var places: [Place] = []

    package init() {}

    /// What is no such line is left out.
    init(text: String) {
        for line in text.split(separator: "\n").suffix(Self.most) {
            let words = line.split(separator: " ", maxSplits: 1)
            guard words.count == 2, let seconds = Double(words[0]), (0...1e9).contains(seconds)
            else { continue }
            let bytes = PlaylistPlace.unescaped(Array(words[1].utf8)[...])
            places.append(Place(item: String(fileName: bytes), seconds: seconds))
        }
    }

    /// Items are written with percent signs where a line could not hold them.
    var text: String {
        places.map { place in
            let item = AssetName.escaped(place.item) { byte in
                (0x21...0x7E).contains(byte) && byte != UInt8(ascii: "%")
            }
            return "\(Int(place.seconds)) \(item)\n"
        }.joined()
    }

    /// Where an item was left; `nil` where it is played from its beginning.
    package func seconds(of item: String) -> Double? {
        places.last { $0.item == item }?.seconds
    }

    /// An item is left at a place, or has been heard to its end.
    package mutating func leave(_ item: String, at seconds: Double, of duration: Double) {
        places.removeAll { $0.item == item }
        guard duration >= Self.shortestItem, seconds >= Self.margin,
            seconds <= duration - Self.margin
        else { return }
        places.append(Place(item: item, seconds: seconds))
        places.removeFirst(max(0, places.count - Self.most))
    }

    /// - Throws: what went wrong, for a person.
    package static func load(folder: String) throws -> ResumePlaces {
        try StateFolder(path: folder).read(name).map(ResumePlaces.init(text:)) ?? ResumePlaces()
    }

    package func save(folder: String) throws {
        try StateFolder(path: folder).write(Self.name, text)
    }
}
