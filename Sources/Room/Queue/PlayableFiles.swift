import TuttiFFmpegMedia
import TuttiPlayout

/// What files, folders and playlists hold, for a player without a group.
package struct PlayableFiles: Sendable {
    package struct Item: Sendable {
        /// A path or an address.
        package var location: String
        /// By a playlist, for want of another one.
        package var title: String?
        /// `nil`: all of it.
        package var part: FilePart?
    }

    /// So many files are looked into for tracks: an album's worth of each of a hundred albums.
    private static let mostLooks = 1_000

    package private(set) var items: [Item] = []
    /// The files that it was read from, playlists among them: what must not be written over.
    package private(set) var sources: [String] = []
    /// What is not played, each with a sentence that begins with its name.
    package private(set) var passedOver: [(sentence: String, isMissed: Bool)] = []

    /// Looks into folders, playlists, and files on disk that may consist of tracks; blocks.
    package init(_ arguments: [String]) {
        var list = AssetList(arguments)
        let cancellation = MediaCancellation()
        var looks = 0
        while let step = list.next(cancellation) {
            switch step {
            case .item(let item):
                sources.append(item.location)
                // What a sheet names is a track already.
                let isWhole = item.span == nil && item.credits == nil
                let mayHaveParts = isWhole && !PlaylistPlace.isRemote(item.location)
                if mayHaveParts { looks += 1 }
                let parts =
                    mayHaveParts && looks <= Self.mostLooks
                    ? FilePart.parts(of: item.location) : nil
                items += Self.items(item, parts: parts)
            case .passedOver(let passed):
                passedOver.append(("\(passed.subject): \(passed.reason)", passed.isMissed))
            }
        }
        sources += list.playlists
    }

    private static func items(_ item: AssetList.Item, parts: [FilePart]?) -> [Item] {
        if let parts {
            return parts.map {
                Item(location: item.location, title: $0.credits.title, part: $0)
            }
        }
        let part = item.span.map { FilePart($0, credits: item.credits ?? TrackCredits()) }
        return [Item(location: item.location, title: item.title, part: part)]
    }
}
