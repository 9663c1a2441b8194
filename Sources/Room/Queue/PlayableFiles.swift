import FFmpegMedia
import Playout

/// What files, folders and playlists hold, for a player without a group.
package struct PlayableFiles: Sendable {
    package struct Item: Sendable {
        /// A path or an address.
        package var location: String
        /// By a playlist, for want of another one.
        package var title: String?
    }

    package private(set) var items: [Item] = []
    /// What is not played, each with a sentence that begins with its name.
    package private(set) var passedOver: [(sentence: String, isMissed: Bool)] = []

    /// Looks into folders and playlists; blocks.
    package init(_ arguments: [String]) {
        var list = AssetList(arguments)
        let cancellation = MediaCancellation()
        while let step = list.next(cancellation) {
            switch step {
            case .item(let item) where item.span != nil:
                let name = item.title ?? item.location.readableFileName
                passedOver.append(
                    ("\(name): is a track of a cue sheet, which tutti lead plays", true))
            case .item(let item):
                items.append(Item(location: item.location, title: item.title))
            case .passedOver(let passed):
                passedOver.append(("\(passed.subject): \(passed.reason)", passed.isMissed))
            }
        }
    }
}
