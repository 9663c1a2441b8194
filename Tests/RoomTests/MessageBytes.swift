import NIOCore
import TuttiGroupControl
import TuttiTiming
import TuttiWire

/// Messages as they are on the wire, for ends of a link that are no nodes.
enum MessageBytes {
    static func hello(room: String, instance: UInt64) throws -> [UInt8] {
        let hello = Hello(
            room: try RoomID(room), instance: instance, outputLatency: .zero, hasOutput: false)
        return FrameEncoder.frame(MessageCodec.encode(.hello(hello)))
    }

    /// The reasons of all refusals in what a leader said.
    static func refusals(in bytes: ByteBuffer) throws -> [String] {
        var decoder = FrameDecoder(limit: FrameDecoder.roomLimit)
        return try decoder.feed(bytes.readableBytesView).compactMap { message in
            guard case .toRoom(.refused(let reason)) = try MessageCodec.decode(message) else {
                return nil
            }
            return reason
        }
    }
}
