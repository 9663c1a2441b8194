import Dispatch
import Glibc
import Logging
import Synchronization
import TuttiGroupControl
import TuttiPlayout

/// Who a room is, whatever it is called: a number by which its leader knows a room that comes back
/// from a second one of the same name.
///
/// Kept in the state folder, with what the room was called last where its own name was taken, and
/// whom it followed last. A second process on the same folder is another room: the first one holds
/// a lock.
final class RoomIdentity: Sendable {
    static let heading = "tutti identity 1"

    /// What the folder holds.
    struct Record: Equatable, Sendable {
        var secret: UInt64
        /// What a leader called the room; `nil`: its own name.
        var name: RoomID?
        /// The leader that it followed last.
        var leader: String?
    }

    /// Of the room's hello: nobody else knows it.
    let number: UInt64
    private let record: Mutex<Record>
    private let folder: StateFolder?
    private let file: String
    private let lock: FileLock?
    private let queue = DispatchQueue(label: "tutti.identity")

    /// - Parameter folder: `nil`, or one that cannot be used: the identity ends with the process.
    init(room: RoomID, in folder: StateFolder?, logger: Logger) {
        let file = "identity-" + RoomStore.fileName(of: room).dropFirst("room-".count)
        var record = Record(secret: .random(in: 1 ... .max))
        var isKept = false
        lock = folder.flatMap { FileLock("\($0.path)/\(file).lock", in: $0) }
        if let folder, lock != nil {
            do {
                if let known = try folder.read(file).flatMap(Self.parse) { record = known }
                try folder.write(file, Self.text(record))
                isKept = true
            } catch {
                logger.debug("no identity is kept", metadata: ["reason": "\(error)"])
            }
        }
        self.file = file
        self.folder = isKept ? folder : nil
        self.record = Mutex(record)
        // A copied disk is not the same room.
        let number = fingerprint(hexText(record.secret) + Self.hardware())
        self.number = number == 0 ? 1 : number
    }

    /// What a leader called this room last.
    var name: RoomID? { record.withLock { $0.name } }
    var leader: String? { record.withLock { $0.leader } }

    func keep(name: RoomID?) { change { $0.name = name } }
    func keep(leader: String) { change { $0.leader = leader } }

    private func change(_ change: (inout Record) -> Void) {
        let text = record.withLock { record in
            change(&record)
            return Self.text(record)
        }
        guard let folder else { return }
        // What cannot be kept is asked for again next time.
        queue.async { [file] in try? folder.write(file, text) }
    }

    /// Returns when everything is on the disk.
    func close() { queue.sync {} }

    static func text(_ record: Record) -> String {
        var lines = [heading, hexText(record.secret)]
        if let name = record.name { lines.append("name \(name)") }
        // Text of another node is kept only where it is one line.
        if let leader = record.leader, !leader.contains(where: \.isNewline) {
            lines.append("leader \(leader)")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    static func parse(_ text: String) -> Record? {
        let lines = text.split(whereSeparator: \.isNewline)
        guard lines.count >= 2, lines[0] == heading[...], lines[1].utf8.count == 16,
            let secret = UInt64(lines[1], radix: 16), secret != 0
        else { return nil }
        var record = Record(secret: secret)
        for line in lines.dropFirst(2) {
            if line.hasPrefix("name ") { record.name = try? RoomID(String(line.dropFirst(5))) }
            if line.hasPrefix("leader ") { record.leader = String(line.dropFirst(7)) }
        }
        return record
    }

    /// The addresses of the network cards that are really there, in one text.
    private static func hardware() -> String {
        let cards = "/sys/class/net"
        var addresses: [String] = []
        for name in FolderEntries.names(in: cards) {
            guard access("\(cards)/\(name)/device", F_OK) == 0,
                let address = try? StateFolder(path: "\(cards)/\(name)").read("address")
            else { continue }
            addresses.append(address)
        }
        return addresses.sorted().joined()
    }
}

/// Held by one process, and in it by one of us, for as long as it lives.
final class FileLock: Sendable {
    private let descriptor: CInt

    /// - Returns: `nil` when somebody else holds it, or when there can be no such file.
    init?(_ path: String, in folder: StateFolder) {
        guard (try? folder.makeFolder()) != nil else { return nil }
        descriptor = open(path.cFileName, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o644)
        guard descriptor >= 0 else { return nil }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            Glibc.close(descriptor)
            return nil
        }
    }

    deinit { Glibc.close(descriptor) }
}
