import SwiftProtobuf
package import TuttiGroupControl

/// Anything that is said on the control port; one port serves rooms and control clients.
package enum Envelope: Equatable, Sendable {
    case toLeader(RoomToLeader)
    case toRoom(LeaderToRoom)
    case request(ControlRequest)
    case reply(ControlReply)
}

/// Messages as bytes and back.
///
/// Reading trusts nothing: whatever the bytes are, the result is a checked value or a
/// ``WireError`` that names what is wrong.
package enum MessageCodec {
    /// Version of the format; see `tutti.proto`. The protocol version in hello and welcome changes
    /// more often and can be answered in words.
    package static let format: UInt32 = 1

    package static func encode(_ message: RoomToLeader) -> [UInt8] { encode(.toLeader(message)) }
    package static func encode(_ message: LeaderToRoom) -> [UInt8] { encode(.toRoom(message)) }
    package static func encode(_ message: ControlRequest) -> [UInt8] { encode(.request(message)) }
    package static func encode(_ message: ControlReply) -> [UInt8] { encode(.reply(message)) }

    /// The bytes of a message, without its length in front.
    package static func encode(_ envelope: Envelope) -> [UInt8] {
        var raw = PBEnvelope()
        raw.format = format
        switch envelope {
        case .toLeader(let message): raw.toLeader = PBRoomToLeader(message)
        case .toRoom(let message): raw.toRoom = PBLeaderToRoom(message)
        case .request(let message): raw.request = PBControlRequest(message)
        case .reply(let message): raw.reply = PBControlReply(message)
        }
        do {
            return try raw.serializedBytes()
        } catch {
            // Only a missing required field (proto2) or 2 GiB of content can fail.
            preconditionFailure("a message of our own cannot be written: \(error)")
        }
    }

    /// Reads one message.
    package static func decode(_ bytes: [UInt8]) throws(WireError) -> Envelope {
        let raw: PBEnvelope
        do {
            raw = try PBEnvelope(serializedBytes: bytes)
        } catch {
            throw WireError(.malformed, "message", "\(bytes.count) bytes cannot be read")
        }
        return try checked(raw)
    }

    /// Longest datagram of a notice; a few numbers and a hash are far below.
    package static let longestNotice = 256

    /// The bytes of a datagram.
    package static func encode(_ notice: CommitDatagram) -> [UInt8] {
        do {
            return try PBCommitDatagram(notice).serializedBytes()
        } catch {
            preconditionFailure("a notice of our own cannot be written: \(error)")
        }
    }

    /// Reads a datagram.
    package static func decodeNotice(_ bytes: [UInt8]) throws(WireError) -> CommitDatagram {
        guard bytes.count <= longestNotice else {
            throw WireError(.tooLong, "notice", "\(bytes.count) bytes")
        }
        let raw: PBCommitDatagram
        do {
            raw = try PBCommitDatagram(serializedBytes: bytes)
        } catch {
            throw WireError(.malformed, "notice", "\(bytes.count) bytes cannot be read")
        }
        return try raw.checked()
    }

    static func checked(_ raw: PBEnvelope) throws(WireError) -> Envelope {
        guard raw.format == format else {
            throw WireError(.otherVersion, "format", "\(raw.format), this node speaks \(format)")
        }
        switch raw.content {
        case .toLeader(let message): return .toLeader(try message.checked())
        case .toRoom(let message): return .toRoom(try message.checked())
        case .request(let message): return .request(try message.checked())
        case .reply(let message): return .reply(try message.checked())
        case nil: throw WireError(.missing, "message", "the envelope is empty")
        }
    }
}
