package import TuttiPlayout
package import TuttiTiming

import TuttiFFmpegMedia

/// A part of a file that is played as an item of its own: the track of a cue sheet, or a chapter.
package struct FilePart: Equatable, Sendable {
    package var start: MediaTime
    /// Where the next part begins; `nil`: at the end of the file.
    package var end: MediaTime?
    package var credits: TrackCredits

    package init(start: MediaTime, end: MediaTime?, credits: TrackCredits) {
        (self.start, self.end, self.credits) = (start, end, credits)
    }

    init(_ span: CueSpan, credits: TrackCredits) {
        func time(_ units: Int64) -> MediaTime {
            MediaTime(value: units, timescale: Int32(CueSpan.unitsPerSecond))
        }
        self.init(start: time(span.first), end: span.end.map(time), credits: credits)
    }

    /// Frames of a file: one part ends and the next begins at one frame, whatever the rate.
    ///
    /// - Returns: `nil` when the file ends before the part begins, or has no end.
    package func frames(of format: MediaFormat) -> Range<Int64>? {
        guard let count = format.frameCount,
            let first = start.frame(atSampleRate: format.sampleRate)
        else { return nil }
        let end = min(end?.frame(atSampleRate: format.sampleRate) ?? count, count)
        return 0 <= first && first < end ? first..<end : nil
    }
}

extension FilePart {
    /// The parts of a file that say what they are: by a cue sheet in its tags (FLAC and APE have them
    /// there), else by its chapters.
    ///
    /// Reads the header alone; blocks on the disk.
    ///
    /// - Returns: `nil` for a file that is one item; what cannot be read is, too: playing it says why.
    static func parts(of path: String) -> [FilePart]? {
        guard let header = try? MediaHeader(of: path) else { return nil }
        let parts = inSheet(header, of: path) ?? ofMarks(header)
        return parts.count > 1 ? parts : nil
    }

    private static func inSheet(_ header: MediaHeader, of path: String) -> [FilePart]? {
        guard let text = header.tags["cuesheet"],
            let entries = CueSheet(within: path, text)?.entries, entries.count > 1
        else { return nil }
        return entries.compactMap { entry in
            guard let span = entry.span else { return nil }
            var credits = entry.credits ?? TrackCredits()
            credits.album = credits.album ?? header.tags["album"] ?? header.tags["title"]
            credits.performer = credits.performer ?? header.performer
            return FilePart(span, credits: credits)
        }
    }

    /// What is before the first one belongs to it, and each ends where the next begins: nothing of the
    /// file is left out.
    private static func ofMarks(_ header: MediaHeader) -> [FilePart] {
        var marks: [MediaHeader.Mark] = []
        for mark in header.marks.sorted(by: { $0.start < $1.start })
        where marks.last.map({ $0.start < mark.start }) ?? true { marks.append(mark) }
        return marks.enumerated().map { place, mark in
            FilePart(
                start: place == 0 ? .zero : mark.start,
                end: place + 1 < marks.count ? marks[place + 1].start : nil,
                credits: TrackCredits(
                    title: mark.title ?? "Track \(place + 1)", performer: header.performer,
                    album: header.tags["title"] ?? header.tags["album"]))
        }
    }
}

extension MediaHeader {
    fileprivate var performer: String? { tags["artist"] ?? tags["album_artist"] }
}
