// Messages on a byte stream: each is preceded by its length as a 32-bit big-endian number.

/// Puts the length before a message.
package enum FrameEncoder {
    /// - Parameter message: at most `UInt32.max` bytes; our own messages are far below 4 MiB.
    /// - Returns: the four bytes of the length and the message.
    package static func frame(_ message: [UInt8]) -> [UInt8] {
        let length = UInt32(clamping: message.count)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(message.count + 4)
        for shift in [24, 16, 8, 0] as [UInt32] {
            bytes.append(UInt8(truncatingIfNeeded: length >> shift))
        }
        return bytes + message
    }
}

/// Cuts a stream of bytes into messages, however the network has cut it.
///
/// Memory grows only with bytes that have arrived, never with a length that a peer merely claims;
/// a claim above the limit ends the stream.
package struct FrameDecoder: Sendable {
    /// Longest message a room accepts from its leader: a state with a full queue.
    package static let roomLimit = 1 << 22
    /// Longest message a leader accepts: rooms and control clients only send short ones, and
    /// anybody on the network may try.
    package static let leaderLimit = 1 << 14
    /// Longest message a control client accepts: the status of a full group.
    package static let clientLimit = 1 << 21

    private let limit: Int
    private var buffer: [UInt8] = []
    private var failure: WireError?

    /// - Parameter limit: longest message accepted, bytes.
    package init(limit: Int) { self.limit = limit }

    /// Bytes of a message that has begun and not ended.
    package var pendingByteCount: Int { buffer.count }

    /// Whether a whole message waits that was not wanted yet, or one that is too long.
    package var hasMessage: Bool {
        guard buffer.count >= 4 else { return false }
        let length = buffer[..<4].reduce(0) { $0 << 8 | Int($1) }
        return length > limit || buffer.count - 4 >= length
    }

    /// Takes bytes as they came.
    ///
    /// - Parameter most: messages that are wanted now; others wait for the next call.
    /// - Returns: the messages they complete, in order.
    /// - Throws: ``WireError`` when a message is too long; the stream cannot be read any further,
    ///   and every later call throws the same.
    package mutating func feed(
        _ bytes: some Collection<UInt8>, most: Int = .max
    ) throws(WireError) -> [[UInt8]] {
        if let failure { throw failure }
        buffer.append(contentsOf: bytes)
        var messages: [[UInt8]] = []
        var start = 0
        while messages.count < most, buffer.count - start >= 4 {
            let length = buffer[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
            guard length <= limit else {
                let error = WireError(.tooLong, "frame", "\(length) bytes of at most \(limit)")
                failure = error
                buffer = []
                throw error
            }
            guard buffer.count - start - 4 >= length else { break }
            messages.append(Array(buffer[start + 4..<start + 4 + length]))
            start += 4 + length
        }
        buffer.removeFirst(start)
        return messages
    }
}
