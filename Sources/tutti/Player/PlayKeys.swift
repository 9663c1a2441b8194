/// What a key of the player's terminal asks for.
enum PlayKey: Equatable, Sendable {
    case togglePause, next, previous, quit
    /// Seconds from here.
    case seek(Double)
    /// Percent.
    case volume(Int)
    case mute
    /// 1: the next one; −1: the one before.
    case chapter(Int)
    /// Hundredths of the rate; `nil`: back to 1.
    case rate(Int?)
}

extension PlayKey {
    /// - Returns: `nil` for what is no key of the player.
    init?(_ input: TerminalInput) {
        let key: PlayKey? =
            switch input {
            case .byte(let byte): Self.letter(byte)
            // Arrows with Shift, Alt or Ctrl have parameters, and are arrows.
            case .control(_, UInt8(ascii: "A")): .volume(5)
            case .control(_, UInt8(ascii: "B")): .volume(-5)
            case .control(_, UInt8(ascii: "C")): .seek(10)
            case .control(_, UInt8(ascii: "D")): .seek(-10)
            case .control, .message: nil
            }
        guard let key else { return nil }
        self = key
    }

    private static func letter(_ byte: UInt8) -> PlayKey? {
        switch UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte | 0x20 : byte {
        case UInt8(ascii: " "): .togglePause
        case UInt8(ascii: "n"): .next
        case UInt8(ascii: "p"): .previous
        case UInt8(ascii: "q"): .quit
        case UInt8(ascii: "m"): .mute
        case UInt8(ascii: "+"), UInt8(ascii: "="): .volume(5)
        case UInt8(ascii: "-"): .volume(-5)
        case UInt8(ascii: "]"), UInt8(ascii: ">"): .rate(5)
        case UInt8(ascii: "["), UInt8(ascii: "<"): .rate(-5)
        case UInt8(ascii: "1"): .rate(nil)
        case UInt8(ascii: "."): .chapter(1)
        case UInt8(ascii: ","): .chapter(-1)
        default: nil
        }
    }

    static let help =
        "space pause · ←/→ 10 s · ↑/↓ volume · n/p next, previous · , . chapter · [ ] rate · m mute · q quit"
}
