/// Lines that are drawn again in place, as on a departure board.
///
/// On a terminal the cursor is hidden, moved back over the lines of the last frame, and shown
/// again by ``close()`` and whenever this process stops or ends (``TerminalMode``). Elsewhere
/// nothing moves: ``draw(_:)`` does nothing and ``note(_:)`` prints plain lines.
struct LiveScreen {
    private let terminal: Terminal
    private var linesDrawn = 0
    private var isOpen = false
    /// ``TerminalMode/interruptions`` when the last frame was drawn.
    private var interruptions = 0

    init(_ terminal: Terminal) { self.terminal = terminal }

    var isLive: Bool { terminal.isInteractive }
    var width: Int { terminal.width }
    var showsColour: Bool { terminal.showsColour }

    /// Replaces the last frame; lines are cut to the terminal, so that none wraps.
    ///
    /// - Returns: false when nobody reads any more.
    @discardableResult
    mutating func draw(_ lines: [String]) -> Bool {
        guard terminal.isInteractive else { return true }
        let mode = TerminalMode.shared
        if isOpen { mode.refresh() } else { mode.open(terminal) }
        isOpen = true
        // After an interruption the cursor may no longer stand below the last frame.
        if interruptions != mode.interruptions { linesDrawn = 0 }
        interruptions = mode.interruptions
        var text = ""
        if linesDrawn > 0 { text += "\u{1B}[\(linesDrawn)A" }
        text += "\r"
        let room = max(1, terminal.height - 1)
        let width = terminal.width
        var shown = Array(lines.prefix(room))
        if lines.count > room {
            shown[room - 1] = "… \(lines.count - room + 1) more lines; a taller window shows them"
        }
        for line in shown {
            text += line.cut(toColumns: width) + "\u{1B}[K\n"
        }
        text += "\u{1B}[J"
        linesDrawn = min(lines.count, room)
        return terminal.write(text)
    }

    /// A line that stays, above the frames to come.
    ///
    /// - Returns: false when nobody reads any more.
    @discardableResult
    mutating func note(_ line: String) -> Bool {
        if linesDrawn > 0 { terminal.write("\u{1B}[\(linesDrawn)A\r\u{1B}[J") }
        linesDrawn = 0
        return terminal.write(line + "\n")
    }

    /// Shows the cursor again; the last frame stays.
    mutating func close() {
        guard isOpen else { return }
        isOpen = false
        linesDrawn = 0
        TerminalMode.shared.close()
    }

    static let hideCursor = "\u{1B}[?25l"
    static let showCursor = "\u{1B}[?25h"
}
