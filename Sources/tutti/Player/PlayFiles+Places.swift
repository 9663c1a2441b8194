import Glibc
import Synchronization
import TuttiPlayback
import TuttiPlayout
import TuttiRoom
import TuttiTiming

/// Where files are left, and their parts within them: a place is remembered of a file, whichever part
/// of it was played.
extension PlayFiles {
    /// Where the first file was left, seconds from the beginning of the first item; 0 where it was not.
    var left: Double {
        guard let stateFolder, let first = files.items.first,
            let places = try? ResumePlaces.load(folder: stateFolder),
            let seconds = places.seconds(of: Self.identity(of: first.location))
        else { return 0 }
        return max(0, seconds - first.startSeconds)
    }

    /// Remembers where a long item is left.
    func remember() {
        guard let stateFolder, let item = player.currentItem, let place,
            let length = length(of: item, at: place)
        else { return }
        let file = files.items[place]
        do {
            var places = try ResumePlaces.load(folder: stateFolder)
            let before = places
            places.leave(
                Self.identity(of: file.location),
                at: file.startSeconds + player.currentTime().seconds, of: length)
            if places != before { try places.save(folder: stateFolder) }
        } catch {
            Terminal.error.say("tutti: the place is not remembered: \(error)")
        }
    }

    /// It was heard to its end: the next time it begins anew.
    func forget(_ item: PlayerItem) {
        guard let stateFolder,
            let place = state.withLock({ $0.places[ObjectIdentifier(item)] }),
            !files.isFollowedByPart(place), let length = length(of: item, at: place),
            length >= ResumePlaces.shortestItem,
            var places = try? ResumePlaces.load(folder: stateFolder)
        else { return }
        places.leave(
            Self.identity(of: files.items[place].location), at: length, of: length)
        try? places.save(folder: stateFolder)
    }

    /// Of the whole file, seconds; `nil` until it is known.
    func length(of item: PlayerItem, at place: Int) -> Double? {
        let file = files.items[place]
        if file.part != nil { return state.withLock { $0.lengths[file.location] } }
        return item.duration.isNumeric ? item.duration.seconds : nil
    }

    /// The same file from whichever folder it is named.
    private static func identity(of location: String) -> String {
        guard !location.contains("://"), let path = realpath(location.cFileName, nil) else {
            return location
        }
        defer { free(path) }
        let bytes = UnsafeBufferPointer(start: path, count: strlen(path))
        return String(fileName: bytes.map { UInt8(bitPattern: $0) })
    }

    // MARK: Parts

    /// The item that is so far behind the beginning of the first one, in the same file.
    func beginning(at start: Double) -> (place: Int, seconds: Double) {
        var (place, rest) = (0, start)
        while let length = lengthBefore(place + 1), rest >= length {
            rest -= length
            place += 1
        }
        return (place, rest)
    }

    /// Seconds of the item before one, where both are parts of one file, one behind the other.
    func lengthBefore(_ place: Int) -> Double? {
        guard place > 0, files.isFollowedByPart(place - 1), let part = files.items[place - 1].part,
            let end = part.end
        else { return nil }
        return (end - part.start).seconds
    }
}

extension PlayableFiles.Item {
    /// Within its file.
    fileprivate var startSeconds: Double { part?.start.seconds ?? 0 }
}
