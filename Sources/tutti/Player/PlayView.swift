/// What the player's terminal shows.
struct PlayView: Equatable {
    enum State: Equatable {
        case playing, paused
        /// With what is waited for.
        case waiting(String)
    }

    var title: String
    var artist: String?
    var album: String?
    var chapter: String?
    /// From 1.
    var number: Int
    var count: Int
    var seconds: Double
    /// Whether it is known what it is.
    var isOpen = true
    /// `nil` until it is known, and of what has no end.
    var duration: Double?
    var state: State
    /// Percent.
    var volume: Int
    var isMuted = false
    var rate: Double
    /// Whether there is a keyboard.
    var hasKeys = true

    private static let leastBar = 10

    /// Two lines and the keys.
    func lines(width: Int, showsColour: Bool) -> [String] {
        result(width: width, showsColour: showsColour) + [note.cut(toColumns: width)]
    }

    /// What stays when it ends.
    func result(width: Int, showsColour: Bool) -> [String] {
        [
            head([title, artist, chapter], width: width),
            bar(width: width, showsColour: showsColour),
        ].map { $0.cut(toColumns: width) }
    }

    /// As many lines as a picture beside them has, at least ``CoverSpace/leastRows``: above what it is,
    /// below how far it is.
    func lines(beside rows: Int, width: Int, showsColour: Bool) -> [String] {
        let below = [bar(width: width, showsColour: showsColour), note]
        let above = [artist, album, chapter].compactMap { $0?.printable }.filter { !$0.isEmpty }
            .prefix(rows - below.count - 1).map { "  \($0)" }
        let blanks = repeatElement("", count: rows - below.count - 1 - above.count)
        return ([head([title], width: width)] + above + blanks + below)
            .map { $0.cut(toColumns: width) }
    }

    private func head(_ names: [String?], width: Int) -> String {
        let sign =
            switch state {
            case .playing: "▶"
            case .paused: "⏸"
            case .waiting: "…"
            }
        let place = "\(number)/\(count)"
        let name = names.compactMap { $0?.printable }.filter { !$0.isEmpty }
            .joined(separator: " — ")
        let room = max(1, width - place.columns - 3)
        return "\(sign) \(name.padded(to: room)) \(place)"
    }

    private var note: String {
        if case .waiting(let what) = state { return what.printable }
        return hasKeys ? PlayKey.help : ""
    }

    private func bar(width: Int, showsColour: Bool) -> String {
        let time =
            PositionArgument.text(seconds)
            + (duration.map { " / \(PositionArgument.text($0))" } ?? "")
        let loudness = isMuted ? "muted" : "\(volume) %"
        let pace = abs(rate - 1) < 1e-9 || rate == 0 ? "" : "  × \(rate.text(2))"
        let tail = "  \(time)  \(loudness)\(pace)"
        let room = width - tail.columns
        guard let duration, duration > 0, room >= Self.leastBar else {
            return String(tail.drop { $0 == " " })
        }
        let done = Int((min(1, max(0, seconds / duration)) * Double(room)).rounded(.down))
        let (played, rest) = (
            String(repeating: "━", count: done), String(repeating: "─", count: room - done)
        )
        return showsColour
            ? "\u{1B}[1m\(played)\u{1B}[0m\u{1B}[2m\(rest)\u{1B}[0m\(tail)" : played + rest + tail
    }

    /// One line for each item, where nothing can be drawn.
    var line: String {
        let name = [title, artist].compactMap { $0?.printable }.joined(separator: " — ")
        let length = duration.map { ", \(PositionArgument.text($0))" } ?? ""
        return "plays \(name) (\(number) of \(count)\(length))"
    }
}
