/// The order of the files of one folder.
///
/// An album has its own: when most files have tags, each of these a track number and none another
/// album than the others, disc and track decide. Elsewhere the names do: track numbers of several
/// albums would mix them. What has no tags, or cannot be looked into, comes last.
enum AlbumOrder {
    /// A file, and what its tags say; `nil` where there are none.
    struct File: Equatable {
        var name: String
        var tags: Tags?
    }

    struct Tags: Equatable {
        var disc: Int?
        var track: Int?
        var album: String?
    }

    static func sorted(_ files: [File]) -> [File] {
        let byName = files.sorted { NaturalOrder.areInOrder($0.name, $1.name) }
        let known = files.compactMap(\.tags)
        let albums = Set(known.compactMap { $0.album?.lowercased() })
        guard 2 * known.count > files.count, albums.count <= 1,
            known.allSatisfy({ $0.track != nil })
        else {
            return byName
        }
        func key(_ file: File) -> (Int, Int) {
            guard let tags = file.tags else { return (.max, .max) }
            return (tags.disc ?? 1, tags.track ?? .max)
        }
        // Stable: of two files with one number, the names decide.
        return byName.enumerated().sorted { one, other in
            let (a, b) = (key(one.element), key(other.element))
            return a != b ? a < b : one.offset < other.offset
        }.map(\.element)
    }
}
