import TuttiGroupControl
import TuttiPlayout

/// Where a track is in its file, in the 75 parts of a second that a compact disc has.
struct CueSpan: Equatable, Sendable {
    static let unitsPerSecond = 75
    /// What a place may be: no number of frames overflows.
    static let units: ClosedRange<Int64> = 0...(100_000 * 60 * 75)

    var first: Int64
    /// Where the next track begins; `nil`: at the end of the file.
    var end: Int64?

    /// Frames of a file with so many, at this sample rate.
    ///
    /// - Returns: `nil` when the file ends before the track begins.
    func frames(sampleRate: Int, count: Int64) -> Range<Int64>? {
        func frame(_ unit: Int64) -> Int64 {
            // Where the rate is no multiple of 75, one track ends and the next begins at one frame.
            (unit * Int64(sampleRate) + Int64(Self.unitsPerSecond / 2)) / Int64(Self.unitsPerSecond)
        }
        let first = frame(first)
        let end = min(end.map(frame) ?? count, count)
        return first < end ? first..<end : nil
    }
}

/// The tracks of a cue sheet, as programs write it that copy compact discs: each is a part of a file,
/// from its `INDEX 01` to that of the next one. What is before an `INDEX 01` belongs to the track
/// before it, as on the disc, so that nothing is missing where one follows the other.
///
/// Format: CDRWIN's user guide, "Cue sheet commands".
struct CueSheet: Equatable {
    /// Longer than any disc; so much music is no number of frames that overflows.
    private static let mostMinutes = 99_999

    private(set) var entries: [Playlist.Entry] = []

    /// Of the track that is being read.
    private struct Track {
        var number = ""
        var title: String?
        var performer: String?
        var start: Int64?
    }

    /// - Returns: `nil` where no file and no track is named.
    init?(_ bytes: [UInt8], _ place: PlaylistPlace) {
        self.init(bytes) { Self.readings($0, place) }
    }

    /// One that a file has in its tags: it is about that file, whatever it was called when the sheet
    /// was written.
    ///
    /// - Returns: `nil` where no track is named, or those of several files are.
    init?(within location: String, _ text: String) {
        var files = 0
        self.init(Array(text.utf8)) { _ in
            files += 1
            return files == 1 ? [location] : []
        }
        if files != 1 { return nil }
    }

    private init?(_ bytes: [UInt8], _ readings: (ArraySlice<UInt8>) -> [String]) {
        var album = TrackCredits()
        var places: [String] = []
        var track: Track?
        var tracks: [Track] = []
        // What is said before the first track is of the whole sheet.
        var isWithinTrack = false
        func finishTrack() {
            if let done = track, done.start != nil { tracks.append(done) }
            track = nil
        }
        func finishFile(_ entries: inout [Playlist.Entry]) {
            // A track that has not begun begins in the next file: its pause is at the end of this one.
            if track?.start != nil { finishTrack() }
            entries += Self.entries(tracks, places, of: album)
            tracks = []
        }
        for line in Playlist.lines(bytes) {
            let words = Self.words(line)
            guard let command = words.first.map({ String(unlabelled: $0).uppercased() }),
                let value = words.dropFirst().first
            else { continue }
            switch command {
            case "FILE":
                finishFile(&entries)
                places = readings(value)
                isWithinTrack = false
            case "TRACK":
                finishTrack()
                isWithinTrack = true
                // A disc may begin with data.
                let type = words.dropFirst(2).first.map { String(unlabelled: $0).uppercased() }
                track =
                    type == nil || type == "AUDIO"
                    ? Track(number: String(unlabelled: value)) : nil
            case "TITLE" where isWithinTrack: track?.title = String(unlabelled: value)
            case "TITLE": album.album = album.album ?? String(unlabelled: value)
            case "PERFORMER" where isWithinTrack: track?.performer = String(unlabelled: value)
            case "PERFORMER": album.performer = album.performer ?? String(unlabelled: value)
            case "INDEX":
                guard Int(String(unlabelled: value)) == 1, let time = words.dropFirst(2).first
                else { continue }
                track?.start = Self.units(String(unlabelled: time))
            default: break
            }
            guard entries.count < Playlist.mostEntries else { return }
        }
        finishFile(&entries)
        if entries.isEmpty { return nil }
    }

    private static func entries(
        _ tracks: [Track], _ places: [String], of album: TrackCredits
    ) -> [Playlist.Entry] {
        guard !places.isEmpty else { return [] }
        return tracks.enumerated().compactMap { number, track in
            guard let first = track.start else { return nil }
            let next = number + 1 < tracks.count ? tracks[number + 1].start : nil
            // A sheet whose times go backwards is played as far as it makes sense.
            if let next, next <= first { return nil }
            var title = [track.performer, track.title].compactMap(\.self).filter { !$0.isEmpty }
            let isWhole = first == 0 && next == nil
            // The tags of the file name all of it.
            if title.isEmpty, !isWhole { title = ["Track \(track.number)"] }
            var credits = album
            credits.title = named(track.title) ?? (isWhole ? nil : "Track \(track.number)")
            credits.performer = named(track.performer) ?? album.performer
            return Playlist.Entry(
                places: places, title: title.isEmpty ? nil : title.joined(separator: " - "),
                span: isWhole ? nil : CueSpan(first: first, end: next), credits: credits)
        }
    }

    private static func named(_ text: String?) -> String? {
        text.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// `MM:SS:FF` in parts of 1/75 s.
    private static func units(_ text: String) -> Int64? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 3, let minutes = Int64(parts[0]), let seconds = Int64(parts[1]),
            let units = Int64(parts[2]), (0...Int64(mostMinutes)).contains(minutes),
            (0..<60).contains(seconds), (0..<Int64(CueSpan.unitsPerSecond)).contains(units)
        else { return nil }
        return (minutes * 60 + seconds) * Int64(CueSpan.unitsPerSecond) + units
    }

    /// The file, and what became of it: sheets often still name the file that was copied first.
    private static func readings(_ name: ArraySlice<UInt8>, _ place: PlaylistPlace) -> [String] {
        var places = place.places(of: name)
        guard let dot = name.lastIndex(of: UInt8(ascii: ".")) else { return places }
        for ending in ["flac", "wav", "ape", "wv", "m4a", "tta", "tak", "mp3", "ogg", "opus"] {
            let other = Array(name[...dot]) + Array(ending.utf8)
            for reading in place.places(of: other[...]) where !places.contains(reading) {
                places.append(reading)
            }
        }
        return places
    }

    /// Words between blanks; what is within quotes is one.
    private static func words(_ line: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
        var words: [ArraySlice<UInt8>] = []
        var rest = line.trimmed
        while let byte = rest.first {
            if byte == UInt8(ascii: "\"") {
                rest = rest.dropFirst()
                // `FILE "A "quoted" name.wav" WAVE`: the last quotes count.
                let end = words.count == 1 ? rest.lastIndex(of: byte) : rest.firstIndex(of: byte)
                words.append(rest[..<(end ?? rest.endIndex)])
                rest = end.map { rest[rest.index(after: $0)...] } ?? []
            } else {
                let end = rest.firstIndex { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
                words.append(rest[..<(end ?? rest.endIndex)])
                rest = end.map { rest[$0...] } ?? []
            }
            rest = rest.trimmed
        }
        return words
    }
}
