/// What comes from a terminal: what somebody types, and its answers to what it was asked.
enum TerminalInput: Equatable, Sendable {
    /// A letter, or one byte of one.
    case byte(UInt8)
    /// A control sequence: an arrow is one without parameters that ends in A, B, C or D.
    case control(parameters: String, final: UInt8)
    /// What a program says to a terminal and it back, such as `Gi=31;OK` of the graphics protocol.
    case message(String)
}

/// Takes a terminal's bytes apart (ECMA-48, 5.4 and 5.6), so that no part of a sequence is taken for
/// a key.
struct TerminalInputParser {
    private enum State {
        case ground, escape
        /// One more byte: the arrows of some keyboards.
        case single
        case control([UInt8])
        case message([UInt8], hasEscape: Bool)
    }

    /// Longer than any sequence that means something here; what is beyond is left out.
    private static let longest = 64

    private var state = State.ground
    /// Whether a message may come: otherwise what begins one is a key that was pressed with Alt, and
    /// all keys after it would be lost.
    var expectsMessages = false

    /// - Returns: what ends with this byte.
    mutating func take(_ byte: UInt8) -> TerminalInput? {
        switch state {
        case .ground: return ground(byte)
        case .escape:
            switch byte {
            case UInt8(ascii: "["): state = .control([])
            case UInt8(ascii: "O"): state = .single
            case UInt8(ascii: "_") where expectsMessages: state = .message([], hasEscape: false)
            default: return ground(byte)
            }
            return nil
        case .single:
            state = .ground
            return .control(parameters: "", final: byte)
        case .control(let bytes): return control(bytes, byte)
        case .message(let bytes, let hasEscape): return message(bytes, hasEscape, byte)
        }
    }

    private mutating func ground(_ byte: UInt8) -> TerminalInput? {
        state = byte == 0x1B ? .escape : .ground
        return byte == 0x1B ? nil : .byte(byte)
    }

    private mutating func control(_ bytes: [UInt8], _ byte: UInt8) -> TerminalInput? {
        switch byte {
        case 0x20...0x3F:
            state = .control(bytes.count < Self.longest ? bytes + [byte] : bytes)
            return nil
        case 0x40...0x7E:
            state = .ground
            return .control(parameters: String(decoding: bytes, as: UTF8.self), final: byte)
        // Broken off: another one begins, or a key was pressed.
        default: return ground(byte)
        }
    }

    private mutating func message(
        _ bytes: [UInt8], _ hasEscape: Bool, _ byte: UInt8
    ) -> TerminalInput? {
        switch byte {
        case UInt8(ascii: "\\") where hasEscape:
            state = .ground
            return .message(String(decoding: bytes, as: UTF8.self))
        case 0x1B: state = .message(bytes, hasEscape: true)
        // What is cancelled, and what ends without an end.
        case 0x18, 0x1A: state = .ground
        default:
            if hasEscape {
                state = .escape
                return take(byte)
            }
            state = .message(
                bytes.count < Self.longest ? bytes + [byte] : bytes, hasEscape: false)
        }
        return nil
    }
}
