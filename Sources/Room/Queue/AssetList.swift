import Glibc
import TuttiFFmpegMedia
import TuttiGroupControl
import TuttiPlayout

/// What a leader is to play, one by one: what it was given, the files of folders, the entries of
/// playlists.
///
/// A folder is looked into when it is its turn, so that the first item of a large collection is
/// there at once. What is passed over is told, each with its reason; links that lead back to a
/// folder and playlists that contain themselves are among that.
///
/// ``next(_:)`` blocks on the disk, or on a server that has a playlist.
struct AssetList {
    /// Something that may be an asset.
    struct Item: Equatable, Sendable {
        /// A path (see ``FileName``) or an address.
        var location: String
        /// By a playlist, for want of another one.
        var title: String?
        /// Where only a part of it is meant; `nil`: all of it.
        var span: CueSpan?
        /// Whether somebody misses it when it cannot be played: it was named, or looks like audio.
        var isMissed: Bool
        /// By a cue sheet.
        var credits: TrackCredits?
    }

    /// Something that is not played, and why.
    struct PassedOver: Equatable, Sendable {
        var subject: String
        var reason: String
        var isMissed: Bool
    }

    enum Step: Equatable, Sendable {
        case item(Item)
        case passedOver(PassedOver)
    }

    /// Folders in folders, and playlists in playlists: more is a mistake.
    static let deepest = 32
    static let deepestPlaylist = 8
    /// Folders and playlists that are looked into, together.
    static let mostLooks = 20_000
    /// A folder of more files is no album: its files are not opened to learn their order.
    static let largestAlbum = 500

    /// Not an item yet.
    private struct Place {
        /// The first that is there is meant.
        var locations: [String]
        var title: String?
        var span: CueSpan?
        var credits: TrackCredits?
        var isArgument = false
        /// A folder found in a folder.
        var isFound = false
        /// Named by a playlist of another machine, which must not lead to files of this one.
        var isForeign = false
        var depth = 0
        /// The playlists that led here.
        var playlists: [FileIdentity.File] = []
    }

    private enum Entry {
        case place(Place)
        case step(Step)
    }

    /// What is still to come, the next last.
    private var stack: [Entry]
    /// Below the argument whose turn it is.
    private var folders: Set<FileIdentity.File> = []
    private var looks = 0
    /// Those on disk that were opened.
    private(set) var playlists: [String] = []

    /// What a leader is given.
    enum Argument: Equatable, Sendable {
        /// A path or an address, which may be a folder or a playlist.
        case location(String)
        /// Played as it is: nothing is looked for in it.
        case item(Item)
    }

    init(_ arguments: [String]) { self.init(arguments.map(Argument.location)) }

    init(_ arguments: [Argument]) {
        stack = arguments.reversed().map {
            switch $0 {
            case .location(let location): .place(Place(locations: [location], isArgument: true))
            case .item(let item): .step(.item(item))
            }
        }
    }

    /// At least so many items are still to come.
    var remaining: Int {
        stack.count {
            switch $0 {
            case .place, .step(.item): true
            case .step(.passedOver): false
            }
        }
    }

    /// - Returns: `nil` at the end.
    mutating func next(_ cancellation: MediaCancellation) -> Step? {
        while let entry = stack.popLast() {
            switch entry {
            case .step(let step): return step
            case .place(let place):
                if place.isArgument { folders = [] }
                expand(place, cancellation)
            }
        }
        return nil
    }

    private mutating func push(_ steps: [Step]) { stack += steps.reversed().map(Entry.step) }

    private mutating func passOver(_ subject: String, _ reason: String, isMissed: Bool = true) {
        let subject = subject.readableFileName
        push([.passedOver(PassedOver(subject: subject, reason: reason, isMissed: isMissed))])
    }

    private mutating func expand(_ place: Place, _ cancellation: MediaCancellation) {
        if place.isForeign, let path = place.locations.first(where: { !PlaylistPlace.isRemote($0) })
        {
            return passOver(
                path, "is a path in a playlist of another machine, which has no say here")
        }
        if let host = place.locations.first.flatMap(PlaylistPlace.otherHost) {
            return passOver(
                place.locations[0],
                "is a file of the machine \(host): mount its folder, or give an http address of it")
        }
        let locations = place.locations.map { location in
            location.prefix(5).lowercased() == "file:"
                ? PlaylistPlace.path(ofFileAddress: Array(location.fileNameBytes)[...]) : location
        }
        var status = stat()
        let there = locations.first { stat($0.cFileName, &status) == 0 }
        let location = there ?? locations[0]
        if PlaylistPlace.isRemote(location) {
            // Behind .m3u8 there is a stream, as a rule.
            if let format = Playlist.Format(name: AssetName.ofAddress(location)), format != .m3u8 {
                return open(location, format, place, cancellation)
            }
        } else if there != nil, status.st_mode & S_IFMT == S_IFDIR {
            return look(into: location, place, cancellation)
        } else if there != nil, let format = Playlist.Format(name: location) {
            return open(location, format, place, cancellation)
        }
        push([
            .item(
                Item(
                    location: location, title: place.title, span: place.span, isMissed: true,
                    credits: place.credits))
        ])
    }

    // MARK: Folders

    private mutating func look(
        into path: String, _ place: Place, _ cancellation: MediaCancellation
    ) {
        looks += 1
        guard looks <= Self.mostLooks, place.depth < Self.deepest else {
            return passOver(path, "is too deep in folders, or one of too many; name it by itself")
        }
        guard let folder = Folder(path) else {
            let reason = errno == EACCES ? "may not be read" : "cannot be read"
            return passOver(path, "is a folder that \(reason); check its permissions")
        }
        guard folders.insert(folder.identity).inserted else {
            return passOver(path, "leads to a folder that is played already", isMissed: false)
        }
        var (files, sheets, below): ([String], [String], [Entry]) = ([], [], [])
        var passed: [Step] = []
        for (name, kind) in folder.entries {
            let inside = folder.path(of: name)
            func pass(_ reason: String, isMissed: Bool = false) {
                passed.append(
                    .passedOver(
                        PassedOver(
                            subject: inside.readableFileName, reason: reason, isMissed: isMissed)))
            }
            switch (AssetName.kind(of: name), kind) {
            case (.hidden, _): pass("is hidden")
            case (_, .folder):
                let deeper = Place(locations: [inside], isFound: true, depth: place.depth + 1)
                below.append(.place(deeper))
            case (let kind, .missing): pass("leads nowhere", isMissed: kind == .audio)
            case (_, .special): pass("is not a file")
            case (.playlist, _)
            where Playlist.Format(name: name) == .cue && sheets.count < Self.largestAlbum:
                sheets.append(name)
            case (.playlist, _): pass("is a playlist; name it to play it")
            case (.other, _): pass("is no audio")
            case (.audio, _), (.unknown, _): files.append(name)
            }
        }
        let tracks =
            sheets.isEmpty ? FolderTracks() : self.tracks(sheets, files, of: folder, cancellation)
        passed += tracks.passed
        if files.isEmpty, below.isEmpty, !place.isFound {
            passed.append(
                .passedOver(
                    PassedOver(
                        subject: path.readableFileName,
                        reason: "is a folder without anything to play", isMissed: true)))
        }
        stack += below.reversed()
        let entries = inOrder(files, of: folder, cancellation).flatMap { name -> [Entry] in
            if let places = tracks.places[name] {
                return places.map {
                    var track = $0
                    track.depth = place.depth
                    return .place(track)
                }
            }
            if tracks.files.contains(name) { return [] }
            return [
                .step(
                    .item(
                        Item(
                            location: folder.path(of: name), title: nil,
                            isMissed: AssetName.kind(of: name) == .audio)))
            ]
        }
        stack += entries.reversed()
        push(passed)
    }

    /// What the cue sheets of a folder make of its files.
    private struct FolderTracks {
        /// By the first file of a sheet: all of its tracks.
        var places: [String: [Place]] = [:]
        /// Played as tracks, and not by themselves.
        var files: Set<String> = []
        var passed: [Step] = []
    }

    /// A disc that was copied as one file has its sheet beside it, which says where its tracks are.
    private mutating func tracks(
        _ sheets: [String], _ names: [String], of folder: Folder, _ cancellation: MediaCancellation
    ) -> FolderTracks {
        var found = FolderTracks()
        let names = Set(names)
        for sheet in sheets {
            let location = folder.path(of: sheet)
            func pass(_ reason: String) {
                found.passed.append(
                    .passedOver(
                        PassedOver(
                            subject: location.readableFileName, reason: reason, isMissed: false)))
            }
            let bytes = try? MediaBytes.read(
                location, atMost: Playlist.longestFile, cancellation: cancellation)
            guard let bytes, let list = Playlist(bytes, .cue, base: folder.path(of: "")) else {
                pass("is called a cue sheet and is none")
                continue
            }
            let files = list.entries.map { entry in
                entry.places.lazy.compactMap(folder.name).first(where: names.contains)
            }
            guard let first = files.first ?? nil, !files.contains(nil) else {
                pass("is a cue sheet of files that are not beside it; name it to play it")
                continue
            }
            let known = Set(files.compactMap(\.self))
            guard found.files.isDisjoint(with: known) else {
                pass("is a cue sheet of files that are played by another one")
                continue
            }
            playlists.append(location)
            found.files.formUnion(known)
            found.places[first] = zip(list.entries, files).map { entry, name in
                Place(
                    locations: [name.map(folder.path) ?? ""], title: entry.title, span: entry.span,
                    credits: entry.credits)
            }
        }
        return found
    }

    private func inOrder(
        _ names: [String], of folder: Folder, _ cancellation: MediaCancellation
    ) -> [String] {
        let hasTags = (2...Self.largestAlbum).contains(names.count)
        let files = names.map { name in
            let tags =
                hasTags && !cancellation.isCancelled
                ? try? MediaTags(of: folder.path(of: name), cancellation: cancellation) : nil
            return AlbumOrder.File(
                name: name,
                tags: tags.flatMap {
                    // A file that is damaged may open, and has none.
                    let hasAny = $0.disc != nil || $0.track != nil || $0.album != nil
                    let tags = AlbumOrder.Tags(disc: $0.disc, track: $0.track, album: $0.album)
                    return hasAny ? tags : nil
                })
        }
        return AlbumOrder.sorted(files).map(\.name)
    }

    // MARK: Playlists

    private mutating func open(
        _ location: String, _ format: Playlist.Format, _ place: Place,
        _ cancellation: MediaCancellation
    ) {
        looks += 1
        let isRemote = PlaylistPlace.isRemote(location)
        let identity = FileIdentity(path: location)?.file
        if let identity, place.playlists.contains(identity) {
            return passOver(location, "is a playlist that contains itself", isMissed: false)
        }
        guard looks <= Self.mostLooks, place.playlists.count < Self.deepestPlaylist else {
            return passOver(location, "is a playlist in too many others")
        }
        let bytes: [UInt8]
        do throws(MediaError) {
            bytes = try MediaBytes.read(
                location, atMost: Playlist.longestFile, cancellation: cancellation)
        } catch {
            return passOver(location, error.reason)
        }
        let base =
            isRemote
            ? location : location.lastIndex(of: "/").map { String(location[...$0]) } ?? ""
        if !isRemote { playlists.append(location) }
        guard let list = Playlist(bytes, format, base: base) else {
            return passOver(location, "is called a \(format.name) and is none")
        }
        if list.isStream {
            guard isRemote else {
                return passOver(location, "is an HLS stream on disk; only servers' are played")
            }
            return push([.item(Item(location: location, title: place.title, isMissed: true))])
        }
        guard !list.entries.isEmpty else {
            return passOver(location, "is a playlist without entries")
        }
        // An address may redirect to itself in other words; its depth alone is counted.
        let chain = place.playlists + [identity ?? FileIdentity.File(device: 0, inode: 0)]
        if list.entries.count > SessionState.longestQueue {
            passOver(
                location, "names more than \(SessionState.longestQueue) items; the first count")
        }
        stack += list.entries.prefix(SessionState.longestQueue).reversed().map {
            .place(
                Place(
                    locations: $0.places, title: $0.title, span: $0.span, credits: $0.credits,
                    isForeign: isRemote, depth: place.depth, playlists: chain))
        }
    }
}

/// A folder and what is in it, by name in natural order.
private struct Folder {
    enum Kind {
        case file, folder
        /// Behind a link.
        case missing
        /// A pipe, a socket or a device.
        case special
    }

    let identity: FileIdentity.File
    let entries: [(name: String, kind: Kind)]
    private let base: String

    /// - Returns: `nil`, with `errno`, where it cannot be read.
    init?(_ path: String) {
        let base = path.hasSuffix("/") ? path : path + "/"
        guard let folder = FolderEntries(path) else { return nil }
        let entries = folder.entries.map {
            (name: $0.name, kind: Self.kind(of: base + $0.name, $0.type))
        }
        self.base = base
        identity = folder.identity
        self.entries = entries.sorted { NaturalOrder.areInOrder($0.name, $1.name) }
    }

    func path(of name: String) -> String { base + name }

    /// `nil` where a path is not directly in this folder.
    func name(of path: String) -> String? {
        guard path.hasPrefix(base) else { return nil }
        let name = path.dropFirst(base.count)
        return name.isEmpty || name.contains("/") ? nil : String(name)
    }

    private static func kind(of path: String, _ type: UInt8) -> Kind {
        switch Int(type) {
        case Int(DT_REG): return .file
        case Int(DT_DIR): return .folder
        default:
            var status = stat()
            guard stat(path.cFileName, &status) == 0 else { return .missing }
            return switch status.st_mode & S_IFMT {
            case S_IFREG: .file
            case S_IFDIR: .folder
            default: .special
            }
        }
    }
}
