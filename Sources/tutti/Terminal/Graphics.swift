/// How a terminal is told to show a picture.
enum Graphics: Equatable, Sendable {
    /// The protocol of kitty, which Ghostty, Konsole and WezTerm know too
    /// (sw.kovidgoyal.net/kitty/graphics-protocol).
    case kitty
    /// That of DEC's VT240, which xterm, foot, mlterm and tmux 3.4 know.
    case sixel
}

/// Pixels of a character.
struct CellSize: Equatable, Sendable {
    /// What a terminal may say of itself.
    private static let range = 2...200

    var width: Int
    var height: Int

    /// - Returns: `nil` for a size that no character has.
    init?(width: Int, height: Int) {
        guard Self.range.contains(width), Self.range.contains(height) else { return nil }
        (self.width, self.height) = (width, height)
    }
}

/// Finds out what a terminal can show, by asking it.
///
/// Names of terminals say little: programs set `TERM` to what works, and connections to other machines
/// lose the rest. Every terminal answers what it is (DA1, `ESC [ c`), in the order of the questions:
/// what has not been answered by then is not known to it. Who answers nothing shows nothing.
struct GraphicsQuestion: Equatable {
    /// Number of the picture that kitty is asked about; it is never shown.
    private static let number = 31

    /// What is written to the terminal.
    let text: String
    private let mayBeKitty: Bool
    private var cell: CellSize?
    private var isKitty = false

    /// What came of it.
    struct Answer: Equatable, Sendable {
        var graphics: Graphics
        /// `nil` where the terminal does not say.
        var cell: CellSize?
    }

    enum Outcome: Equatable {
        case waiting
        /// All that was asked is answered; `nil`: it shows no pictures.
        case known(Answer?)
    }

    /// - Parameters:
    ///   - variable: of the environment.
    ///   - cell: as far as the system knows.
    /// - Returns: `nil` for a terminal that is better not asked.
    init?(variable: (String) -> String?, cell: CellSize?) {
        let name = variable("TERM") ?? ""
        // The consoles of Linux and BSD print what they do not know.
        guard !name.isEmpty, !["dumb", "linux", "cons25", "vt52", "emacs"].contains(name),
            !name.hasPrefix("eterm")
        else { return nil }
        // tmux and screen take such a message for the name of a window, and Apple's terminal prints
        // it. A picture that passes through tmux would stay where it is when the window scrolls.
        let isWithin =
            variable("TMUX") != nil || variable("STY") != nil
            || ["screen", "tmux"].contains { name.hasPrefix($0) }
        mayBeKitty = !isWithin && variable("TERM_PROGRAM") != "Apple_Terminal"
        self.cell = cell
        text =
            (mayBeKitty
                ? "\u{1B}_Gi=\(Self.number),s=1,v=1,a=q,t=d,f=24;AAAA\u{1B}\\" : "")
            + (cell == nil ? "\u{1B}[16t" : "") + "\u{1B}[c"
    }

    mutating func take(_ input: TerminalInput) -> Outcome {
        switch input {
        case .message(let text):
            if mayBeKitty, text.hasPrefix("Gi=\(Self.number)"), text.hasSuffix(";OK") {
                isKitty = true
            }
        case .control(let parameters, UInt8(ascii: "t")):
            let words = parameters.split(separator: ";").map { Int($0) }
            if words.count == 3, words[0] == 6, let height = words[1], let width = words[2] {
                cell = CellSize(width: width, height: height) ?? cell
            }
        case .control(let parameters, UInt8(ascii: "c")) where parameters.hasPrefix("?"):
            if isKitty { return .known(Answer(graphics: .kitty, cell: cell)) }
            // The first parameter is a model; of the extensions, 4 is sixel.
            let extensions = parameters.dropFirst().split(separator: ";").dropFirst()
            // Without the size of a cell nobody knows how many lines it covers.
            let isSixel = extensions.contains("4") && cell != nil
            return .known(isSixel ? Answer(graphics: .sixel, cell: cell) : nil)
        default: break
        }
        return .waiting
    }
}
