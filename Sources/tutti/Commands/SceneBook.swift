import TuttiGroupControl
import TuttiRoom

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// How some rooms of a house were, to have them so again.
struct Scene: Codable, Equatable {
    struct Room: Codable, Equatable {
        var name: String
        var volume: Int
        var muted: Bool
        var role: RoomRole?
        /// `nil`: not known when the scene was saved, or given by the room's own settings.
        var offsetMicroseconds: Int?
    }

    struct Group: Codable, Equatable {
        var leader: String
        var volume: Int
        var rooms: [Room]
    }

    /// What plays then; empty: what the rooms play already.
    struct Music: Codable, Equatable {
        var locations: [String]
        var seconds: Double
    }

    var name: String
    var groups: [Group]
    var music: Music?

    /// For one line of a list.
    var summary: String {
        let parts = groups.map { group in
            group.rooms.map { "\($0.name) \($0.muted ? "muted" : "\($0.volume) %")" }
                .joined(separator: " + ") + (group.volume == 100 ? "" : " at \(group.volume) %")
        }
        let music = music.map { ", plays \($0.locations.joined(separator: " "))" } ?? ""
        return parts.joined(separator: "; ") + music
    }
}

extension Scene.Group {
    init(_ status: GroupStatus) {
        self.init(
            leader: status.leader, volume: status.volume,
            rooms: status.rooms.filter { $0.state != .lost }.map(Scene.Room.init))
    }
}

extension Scene.Room {
    init(_ room: RoomStatus) {
        let offset = room.sync.flatMap {
            $0.latencyOffsetFixed ? nil : $0.latencyOffsetMicroseconds
        }
        self.init(
            name: room.name, volume: room.volume, muted: room.muted, role: room.role,
            offsetMicroseconds: offset.map { Int($0.rounded()) })
    }
}

/// The scenes that this machine keeps, by name; capitals make no difference.
struct SceneBook: Equatable {
    static let most = 100

    private(set) var scenes: [Scene] = []

    private struct Document: Codable {
        var version = 1
        var scenes: [Scene]
    }

    init() {}

    /// - Throws: where a newer version wrote it, or it is damaged.
    init(bytes: [UInt8]) throws {
        let document: Document
        do {
            document = try JSONDecoder().decode(Document.self, from: Data(bytes))
        } catch {
            throw CommandError(
                "the file of the scenes is damaged: mend it, or move it away (\"scenes\" in the state folder)"
            )
        }
        guard document.version == 1 else {
            throw CommandError(
                "the scenes were written by a newer version of Tutti (\(document.version)): update this machine"
            )
        }
        scenes = document.scenes
    }

    var bytes: [UInt8] { Array(jsonText(Document(scenes: scenes), pretty: true).utf8) }

    static func load(folder: String) throws -> SceneBook {
        try ScenesFile.read(folder: folder).map(SceneBook.init(bytes:)) ?? SceneBook()
    }

    func save(folder: String) throws { try ScenesFile.write(bytes, folder: folder) }

    private func place(of name: String) -> Int? {
        scenes.firstIndex { $0.name.foldedName == name.foldedName }
    }

    /// - Throws: where there is none, with those that there are.
    func scene(_ name: String) throws(CommandError) -> Scene {
        guard let place = place(of: name) else {
            let names = scenes.map(\.name)
            throw CommandError(
                names.isEmpty
                    ? "there is no scene yet: tutti scene save NAME keeps the rooms as they are"
                    : "there is no scene \"\(name)\"; there are "
                        + names.map { "\"\($0)\"" }.joined(separator: ", ")
                        + Suggestion.question(for: name, among: names))
        }
        return scenes[place]
    }

    /// In the place of one of the same name.
    mutating func keep(_ scene: Scene) throws(CommandError) {
        if let place = place(of: scene.name) {
            scenes[place] = scene
            return
        }
        guard scenes.count < Self.most else {
            throw CommandError("there are \(Self.most) scenes already: delete one first")
        }
        scenes.append(scene)
    }

    mutating func remove(_ name: String) throws(CommandError) {
        _ = try scene(name)
        if let place = place(of: name) { scenes.remove(at: place) }
    }
}
