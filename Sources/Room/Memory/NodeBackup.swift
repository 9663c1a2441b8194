import Crypto
import TuttiTrust

/// What a node must not lose, as one file: its key, its household, its name and number, and what it has
/// learnt of outputs and leaders. A machine that is installed anew is the same node with it.
///
/// Text lines and the files' bytes in between:
///
///     tutti backup 1
///     file NAME BYTES          for each file, then its bytes and a line feed
///     end SHA-256              of all before, in hexadecimal
///
/// It holds the key: whoever has it can be this node.
public enum NodeBackup {
    private static let heading = "tutti backup 1"
    private static let anyHeading = "tutti backup "
    /// Files of a node; those of a few outputs and rooms.
    static let mostFiles = 256
    /// Bytes of a backup.
    public static let longest = 4 << 20

    /// Packs a state folder.
    ///
    /// - Throws: `RoomError`, code `badState`, where there is nothing to keep, or it cannot be read.
    public static func make(of stateFolder: String) throws(RoomError) -> [UInt8] {
        let folder = StateFolder(path: stateFolder)
        let names = FolderEntries.names(in: stateFolder).filter(isFile).sorted()
        guard names.contains(NodeSecrets.keyFile) else {
            throw RoomError(
                .badState,
                "\(stateFolder) holds no node: its key is made when it starts first; is --state-folder right?"
            )
        }
        var bytes = Array("\(heading)\n".utf8)
        for name in names.prefix(mostFiles) {
            do throws(StateFolder.Failure) {
                guard let content = try folder.readBytes(name, most: longest) else { continue }
                bytes += Array("file \(name) \(content.count)\n".utf8) + content + [newLine]
            } catch {
                throw RoomError(.badState, "\(error)")
            }
        }
        bytes += Array("end \(digest(of: bytes))\n".utf8)
        guard bytes.count <= longest else {
            throw RoomError(
                .badState, "\(stateFolder) holds \(bytes.count) bytes, more than a node has")
        }
        return bytes
    }

    /// Unpacks a backup.
    ///
    /// - Parameter overwrites: another node may be there, and is lost.
    /// - Returns: the names of the files that are there now.
    /// - Throws: `RoomError`, code `badState`: nothing was changed, unless writing failed.
    @discardableResult
    public static func restore(
        _ bytes: [UInt8], to stateFolder: String, overwrites: Bool = false
    ) throws(RoomError) -> [String] {
        let files = try parse(bytes)
        let folder = StateFolder(path: stateFolder)
        let known: [UInt8]?
        do throws(StateFolder.Failure) {
            known = try folder.readBytes(NodeSecrets.keyFile, most: longest)
        } catch {
            throw RoomError(.badState, "\(error)")
        }
        let own = files.first { $0.name == NodeSecrets.keyFile }?.content
        if let known, known != own, !overwrites {
            throw RoomError(
                .badState,
                "\(stateFolder) belongs to another node, whose key would be lost: choose another --state-folder, or say --force"
            )
        }
        for file in files {
            do throws(StateFolder.Failure) {
                // Whether others may read a file matters for some alone; this way none are forgotten.
                try folder.write(file.name, file.content, isSecret: true)
            } catch {
                throw RoomError(.badState, "\(error)")
            }
        }
        return files.map(\.name)
    }

    // MARK: The format

    private static let newLine = UInt8(ascii: "\n")

    /// Neither locks and what is being written, nor what was set aside.
    private static func isFile(_ name: String) -> Bool {
        isName(name) && !name.hasSuffix(".lock") && !name.hasSuffix(".new")
            && !name.hasSuffix(".bad")
            // What it leads just now: a group of weeks ago is nobody's wish.
            && name != SavedSession.queueFile && name != SavedSession.placeFile
    }

    /// One that leads out of no folder.
    private static func isName(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.count <= 255 && !name.hasPrefix(".")
            && name.allSatisfy {
                $0.isASCII && ($0.isLetter || $0.isNumber || "-_.".contains($0))
            }
    }

    private static func digest(of bytes: [UInt8]) -> String {
        SHA256.hash(data: bytes).map { byte in
            let digits = String(byte, radix: 16)
            return digits.count == 1 ? "0\(digits)" : digits
        }.joined()
    }

    private struct File {
        var name: String
        var content: [UInt8]
    }

    private static func parse(_ bytes: [UInt8]) throws(RoomError) -> [File] {
        func damaged(_ what: String) -> RoomError {
            RoomError(.badState, "the backup is damaged or cut off: \(what)")
        }
        guard bytes.count <= longest else {
            throw RoomError(.badState, "this is no backup of a node: it has \(bytes.count) bytes")
        }
        var place = 0
        func line() -> String? {
            guard let end = bytes[place...].prefix(512).firstIndex(of: newLine) else { return nil }
            defer { place = end + 1 }
            return String(decoding: bytes[place..<end], as: UTF8.self)
        }
        guard let first = line(), first.hasPrefix(anyHeading) else {
            throw RoomError(.badState, "this is no backup of a node")
        }
        guard first == heading else {
            throw RoomError(
                .badState, "the backup was made by a newer Tutti (\"\(first)\"): install that first"
            )
        }
        var files: [File] = []
        while true {
            let begin = place
            guard let text = line() else { throw damaged("it has no end") }
            let words = text.split(separator: " ", omittingEmptySubsequences: false)
            if words.count == 2, words[0] == "end" {
                guard String(words[1]) == digest(of: Array(bytes[..<begin])),
                    place == bytes.count
                else { throw damaged("its checksum is wrong") }
                guard files.contains(where: { $0.name == NodeSecrets.keyFile }) else {
                    throw damaged("it has no key")
                }
                return files
            }
            guard words.count == 3, words[0] == "file", files.count < mostFiles,
                isName(String(words[1])), let count = Int(words[2]), count >= 0,
                count < bytes.count - place, bytes[place + count] == newLine
            else { throw damaged("at byte \(begin)") }
            files.append(
                File(name: String(words[1]), content: Array(bytes[place..<place + count])))
            place += count + 1
        }
    }
}
