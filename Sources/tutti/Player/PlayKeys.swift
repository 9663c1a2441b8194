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

/// Bytes of a terminal as keys: arrows come as three bytes (ECMA-48, 5.4).
struct PlayKeyParser {
    private var pending: [UInt8] = []

    mutating func take(_ byte: UInt8) -> PlayKey? {
        pending.append(byte)
        switch pending {
        case [0x1B], [0x1B, UInt8(ascii: "[")], [0x1B, UInt8(ascii: "O")]: return nil
        default: break
        }
        defer { pending = [] }
        guard pending.count == 3, pending[0] == 0x1B else { return Self.letter(byte) }
        return switch byte {
        case UInt8(ascii: "A"): .volume(5)
        case UInt8(ascii: "B"): .volume(-5)
        case UInt8(ascii: "C"): .seek(10)
        case UInt8(ascii: "D"): .seek(-10)
        default: nil
        }
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
