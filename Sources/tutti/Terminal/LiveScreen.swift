/// Lines that are drawn again in place, as on a departure board.
///
/// On a terminal the cursor is hidden, moved back over the lines of the last frame, and shown
/// again by ``close()`` and whenever this process stops or ends (``TerminalMode``). Elsewhere
/// nothing moves: ``draw(_:)`` does nothing and ``note(_:)`` prints plain lines.
struct LiveScreen {
    private let terminal: Terminal
    /// Of the last frame, each line's columns, those beside the picture included.
    private var columnsDrawn: [Int] = []
    private var isOpen = false
    /// ``TerminalMode/interruptions`` when the last frame was drawn.
    private var interruptions = 0
    /// What the last frame was drawn for.
    private var size = (width: 0, height: 0)
    private var picture: ScreenPicture?

    init(_ terminal: Terminal) { self.terminal = terminal }

    var isLive: Bool { terminal.isInteractive }
    var width: Int { terminal.width }
    var height: Int { terminal.height }
    var showsColour: Bool { terminal.showsColour }

    /// Replaces the last frame; lines are cut to the terminal, so that none wraps.
    ///
    /// - Parameter picture: stands at the left of the first lines, which there have to be; they are
    ///   cut to what it leaves.
    /// - Returns: false when nobody reads any more.
    @discardableResult
    mutating func draw(_ lines: [String], beside picture: ScreenPicture? = nil) -> Bool {
        guard terminal.isInteractive else { return true }
        let mode = TerminalMode.shared
        // Behind a shell that has the terminal by now, nothing of ours belongs on it.
        guard mode.isForeground else { return true }
        if isOpen { mode.refresh() } else { mode.open(terminal) }
        isOpen = true
        let size = (width: terminal.width, height: terminal.height)
        // After an interruption the cursor may no longer stand below the last frame.
        if interruptions != mode.interruptions { columnsDrawn = [] }
        let isAnother =
            picture != self.picture || size != self.size || interruptions != mode.interruptions
        interruptions = mode.interruptions
        var frame = Frame(lines, size: size, picture: picture)
        frame.back = Self.rows(of: columnsDrawn, width: size.width)
        frame.erases = isAnother ? self.picture : nil
        frame.shows = isAnother
        (self.size, self.picture, columnsDrawn) = (size, picture, frame.columns)
        mode.leaves(picture?.erasing ?? "")
        return terminal.write(frame.text)
    }

    /// Lines on the screen. In a window that was made narrower, terminals break what was longer.
    static func rows(of columns: [Int], width: Int) -> Int {
        columns.reduce(0) { $0 + max(1, ($1 + max(1, width) - 1) / max(1, width)) }
    }

    /// A line that stays, above the frames to come.
    ///
    /// - Returns: false when nobody reads any more.
    @discardableResult
    mutating func note(_ line: String) -> Bool {
        let back = Self.rows(of: columnsDrawn, width: terminal.width)
        if back > 0 {
            terminal.write((picture?.erasing ?? "") + "\u{1B}[\(back)A\r\u{1B}[J")
        }
        (columnsDrawn, picture) = ([], nil)
        return terminal.write(line + "\n")
    }

    /// Shows the cursor again; the last frame stays.
    mutating func close() {
        guard isOpen else { return }
        isOpen = false
        columnsDrawn = []
        picture = nil
        TerminalMode.shared.close()
    }

    static let hideCursor = "\u{1B}[?25l"
    static let showCursor = "\u{1B}[?25h"
}

/// A picture that stands on the screen.
struct ScreenPicture: Equatable, Sendable {
    /// Columns between it and the text.
    static let gap = 2

    /// Tells one from another; its bytes may be half a million.
    var identity: Int
    var columns: Int
    var rows: Int
    /// What draws it with its corner at the cursor.
    var drawing: String
    /// What takes it away; empty where drawing over it does.
    var erasing: String

    static func == (one: ScreenPicture, other: ScreenPicture) -> Bool {
        one.identity == other.identity && one.columns == other.columns && one.rows == other.rows
    }
}

/// The bytes of one frame.
private struct Frame {
    // DECAWM: what a terminal takes for wider than we do is lost at its edge, and wraps nothing.
    private static let withoutWrap = "\u{1B}[?7l"
    private static let withWrap = "\u{1B}[?7h"

    private let lines: [String]
    private let picture: ScreenPicture?
    /// Lines to go up first.
    var back = 0
    /// The picture that was there.
    var erases: ScreenPicture?
    /// Whether the picture is not on the screen yet.
    var shows = false

    init(_ lines: [String], size: (width: Int, height: Int), picture: ScreenPicture?) {
        let room = max(1, size.height - 1)
        var shown = Array(lines.prefix(room))
        if lines.count > room {
            shown[room - 1] =
                "… \(lines.count - room + 1) more lines; a taller window shows them"
        }
        let picture = picture.flatMap { $0.rows <= shown.count ? $0 : nil }
        self.picture = picture
        self.lines = shown.enumerated().map { place, line in
            line.cut(toColumns: max(0, size.width - Self.indent(place, picture)))
        }
    }

    private static func indent(_ place: Int, _ picture: ScreenPicture?) -> Int {
        picture.map { place < $0.rows ? $0.columns + ScreenPicture.gap : 0 } ?? 0
    }

    var columns: [Int] {
        lines.enumerated().map { $1.columns + Self.indent($0, picture) }
    }

    var text: String {
        var text = Self.withoutWrap + (erases?.erasing ?? "")
        if back > 0 { text += "\u{1B}[\(back)A" }
        for (place, line) in lines.enumerated() {
            let indent = Self.indent(place, picture)
            text += "\r"
            if shows, indent > 0 { text += "\u{1B}[K" }
            if indent > 0 { text += "\u{1B}[\(indent)C" }
            // Before the line: behind one that fills the window it would take its last letter.
            text += "\u{1B}[K" + line + "\n"
        }
        text += "\u{1B}[J" + Self.withWrap
        guard shows, let picture else { return text }
        return text + "\u{1B}7\u{1B}[\(lines.count)A\r" + picture.drawing + "\u{1B}8"
    }
}
