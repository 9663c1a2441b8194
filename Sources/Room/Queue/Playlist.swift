import TuttiGroupControl
import TuttiPlayout

/// What a playlist names, in its order: M3U, PLS, XSPF and cue sheets.
///
/// Playlists are written by programs that do not agree on the encoding of names, on which way a
/// slash leans and on whether a path is an address. So a line stands for every place that it may
/// mean, the most literal first, and whoever has the disk takes the first that is there.
struct Playlist: Equatable {
    enum Format: String, CaseIterable {
        case m3u, m3u8, pls, xspf, cue

        /// As people call one.
        var name: String { self == .cue ? "cue sheet" : "playlist" }

        /// - Parameter name: of the file.
        init?(name: String) {
            guard let dot = name.lastIndex(of: "."),
                let format = Format(rawValue: name[name.index(after: dot)...].lowercased())
            else { return nil }
            self = format
        }
    }

    struct Entry: Equatable {
        /// Paths and addresses, at least one.
        var places: [String]
        var title: String?
        /// `nil`: all of it.
        var span: CueSpan?
        /// By a cue sheet.
        var credits: TrackCredits?
    }

    /// Longest playlist that is read, bytes: ten thousand lines of 400.
    static let longestFile = 4 << 20

    var entries: [Entry] = []
    /// An M3U that names the pieces of one stream (RFC 8216) is no list of items.
    var isStream = false

    /// - Parameters:
    ///   - base: the folder that paths are relative to, or the address; empty: where we are.
    /// - Returns: `nil` for bytes that are no text. A zero is none in any encoding: the system
    ///   would take what is before it for the name of a file.
    init?(_ bytes: [UInt8], _ format: Format, base: String) {
        let bytes = Self.utf8(bytes)
        guard !bytes.contains(0) else { return nil }
        let place = PlaylistPlace(base: base)
        switch format {
        case .m3u, .m3u8: readM3U(bytes, place)
        case .pls: readPLS(bytes, place)
        case .xspf: readXSPF(bytes, place)
        case .cue:
            guard let sheet = CueSheet(bytes, place) else { return nil }
            entries = sheet.entries
        }
    }

    /// Without the mark of its encoding; UTF-16 as UTF-8.
    private static func utf8(_ bytes: [UInt8]) -> [UInt8] {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { return Array(bytes.dropFirst(3)) }
        let isLittle = bytes.starts(with: [0xFF, 0xFE])
        if isLittle || bytes.starts(with: [0xFE, 0xFF]) {
            let units = stride(from: 2, to: bytes.count - 1, by: 2).map {
                isLittle
                    ? UInt16(bytes[$0]) | UInt16(bytes[$0 + 1]) << 8
                    : UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1])
            }
            return Array(String(decoding: units, as: UTF16.self).utf8)
        }
        return bytes
    }

    static func lines(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
        bytes.split { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }.map(\.trimmed)
            .filter { !$0.isEmpty }
    }

    /// One more than are played, which says that there are too many.
    static let mostEntries = SessionState.longestQueue + 1

    // MARK: M3U

    private mutating func readM3U(_ bytes: [UInt8], _ place: PlaylistPlace) {
        var title: String?
        for line in Self.lines(bytes) {
            guard line.first == UInt8(ascii: "#") else {
                if entries.count >= Self.mostEntries { return }
                entries.append(Entry(places: place.places(of: line), title: title))
                title = nil
                continue
            }
            let text = String(unlabelled: line)
            if text.hasPrefix("#EXT-X-") { isStream = true }
            if text.uppercased().hasPrefix("#EXTINF:") { title = Self.title(ofInfo: text) }
        }
    }

    /// Behind the first comma that is not within quotes: `#EXTINF:123 logo="a,b",Artist - Title`.
    private static func title(ofInfo text: String) -> String? {
        var isQuoted = false
        for index in text.indices {
            if text[index] == "\"" { isQuoted.toggle() }
            if text[index] == ",", !isQuoted {
                return named(String(text[text.index(after: index)...]))
            }
        }
        return nil
    }

    private static func named(_ text: String) -> String? {
        let trimmed = Array(text.utf8)[...].trimmed
        return trimmed.isEmpty ? nil : String(unlabelled: trimmed)
    }

    // MARK: PLS

    private mutating func readPLS(_ bytes: [UInt8], _ place: PlaylistPlace) {
        var numbered: [Int: Entry] = [:]
        var titles: [Int: String] = [:]
        for line in Self.lines(bytes) {
            guard let sign = line.firstIndex(of: UInt8(ascii: "=")) else { continue }
            let key = String(unlabelled: line[..<sign].trimmed).lowercased()
            let value = line[line.index(after: sign)...].trimmed
            guard !value.isEmpty else { continue }
            if key.hasPrefix("file"), let number = Int(key.dropFirst(4)) {
                if numbered.count >= Self.mostEntries { break }
                numbered[number] = Entry(places: place.places(of: value), title: nil)
            } else if key.hasPrefix("title"), let number = Int(key.dropFirst(5)) {
                titles[number] = String(unlabelled: value)
            }
        }
        entries = numbered.sorted { $0.key < $1.key }.map {
            Entry(places: $0.value.places, title: titles[$0.key])
        }
    }

    // MARK: XSPF

    /// Reads tracks, their locations and titles; everything else of XML is passed over.
    private mutating func readXSPF(_ bytes: [UInt8], _ place: PlaylistPlace) {
        var rest = XMLText.withoutComments(String(unlabelled: bytes))[...]
        while entries.count < Self.mostEntries, let track = XMLText.element("track", in: &rest) {
            var inside = track
            guard let location = XMLText.element("location", in: &inside) else { continue }
            inside = track
            let title = XMLText.element("title", in: &inside).map(XMLText.plain)
            let address = Array(XMLText.plain(location).utf8)[...].trimmed
            guard !address.isEmpty else { continue }
            entries.append(
                Entry(
                    places: place.places(of: address, isAddress: true),
                    title: title.flatMap(Self.named)))
        }
    }
}

extension ArraySlice<UInt8> {
    /// Without blanks and tabs at both ends.
    var trimmed: ArraySlice<UInt8> {
        func isBlank(_ byte: UInt8) -> Bool {
            byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
                || byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r")
        }
        var slice = drop(while: isBlank)
        while let last = slice.last, isBlank(last) { slice.removeLast() }
        return slice
    }
}
