import Crypto
import Glibc
import Logging
import TuttiTrust

/// The node's key and its household in the state folder: read, made at the first start, written.
///
/// Both are readable for their owner only. What is damaged is set aside with one message; what a
/// newer Tutti wrote is left as it is, and the node does not begin.
struct NodeSecrets: Sendable {
    static let keyFile = "key"
    static let householdFile = "household"
    private static let keyHeading = "tutti key 1"
    private static let longestKeyFile = 256

    let folder: StateFolder
    let logger: Logger

    /// The node's key; made at the first start. Two processes that start first get the same.
    func key() throws(RoomError) -> NodeKey {
        try folder.exclusively(Self.keyFile) { () throws(RoomError) in
            if let known = try read(Self.keyFile, most: Self.longestKeyFile) {
                do throws(TrustError) {
                    return try Self.key(known)
                } catch {
                    try setAside(Self.keyFile, error)
                }
            }
            let key = try Self.fresh()
            do throws(StateFolder.Failure) {
                try folder.write(Self.keyFile, Self.text(of: key), isSecret: true)
            } catch {
                throw RoomError(
                    .badState,
                    "this node's key cannot be kept: \(error); choose a folder that can be written with --state-folder"
                )
            }
            return key
        }
    }

    /// - Returns: `nil` for a node that belongs to nobody.
    func household() throws(RoomError) -> Household? {
        guard let bytes = try read(Self.householdFile, most: Household.longest) else { return nil }
        do throws(TrustError) {
            return try Household(bytes: bytes)
        } catch {
            try setAside(Self.householdFile, error)
            return nil
        }
    }

    /// Replaces what is there; within ``exclusively(_:)``.
    func write(_ household: Household?) throws(RoomError) {
        guard let household else { return folder.remove(Self.householdFile) }
        do throws(StateFolder.Failure) {
            try folder.write(Self.householdFile, household.bytes, isSecret: true)
        } catch {
            throw RoomError(.badState, "the household cannot be kept: \(error)")
        }
    }

    /// Between reading the household and writing it nobody else does.
    func exclusively<T>(_ body: () throws(RoomError) -> T) throws(RoomError) -> T {
        try folder.exclusively(Self.householdFile, body)
    }

    /// Another one when somebody has written the household.
    var householdStamp: UInt64 { folder.stamp(Self.householdFile) }

    private func read(_ name: String, most: Int) throws(RoomError) -> [UInt8]? {
        do throws(StateFolder.Failure) {
            return try folder.readBytes(name, most: most)
        } catch  where error.code == EFBIG {
            try setAside(name, TrustError(.tooMany, name, "has more than \(most) bytes"))
            return nil
        } catch {
            throw RoomError(
                .badState,
                "\(error): it belongs to another user, perhaps; start as that user, or give a folder of your own with --state-folder"
            )
        }
    }

    private func setAside(_ name: String, _ error: TrustError) throws(RoomError) {
        let file = "\(folder.path)/\(name)"
        guard error.code != .otherVersion else { throw RoomError(.badState, "\(file): \(error)") }
        folder.setAside(name)
        logger.error(
            "a damaged file was set aside; this node has to be paired anew (tutti join)",
            metadata: ["file": "\(file).bad", "reason": "\(error)"])
    }

    /// A key of chance.
    static func fresh() throws(RoomError) -> NodeKey {
        do throws(TrustError) {
            return try NodeKey(bytes: Array(P256.Signing.PrivateKey().rawRepresentation))
        } catch {
            throw RoomError(.badState, "no key can be made: \(error)")
        }
    }

    static func text(of key: NodeKey) -> [UInt8] {
        let digits = key.secretBytes.map { byte in
            let text = String(byte, radix: 16)
            return text.utf8.count == 1 ? "0\(text)" : text
        }
        return Array("\(keyHeading)\n\(digits.joined())\n".utf8)
    }

    static func key(_ bytes: [UInt8]) throws(TrustError) -> NodeKey {
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        guard let heading = lines.first, heading.hasPrefix("tutti key ") else {
            throw TrustError(.malformed, "node key", "does not begin as one")
        }
        guard heading == keyHeading else {
            throw TrustError(
                .otherVersion, "node key", "is of a newer version; update this machine")
        }
        let digits = Array((lines.dropFirst().first ?? "").utf8)
        var key: [UInt8] = []
        for start in stride(from: 0, to: digits.count - 1, by: 2) {
            let pair = String(decoding: digits[start..<start + 2], as: UTF8.self)
            guard let byte = UInt8(pair, radix: 16) else {
                throw TrustError(.malformed, "node key", "is not 64 hexadecimal digits")
            }
            key.append(byte)
        }
        return try NodeKey(bytes: key)
    }
}

/// Bytes that nobody can guess.
func randomBytes(_ count: Int) -> [UInt8] {
    SymmetricKey(size: SymmetricKeySize(bitCount: count * 8)).withUnsafeBytes { Array($0) }
}
