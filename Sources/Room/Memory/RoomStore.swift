import Dispatch
import Logging
import Synchronization
import TuttiClockSync
import TuttiGroupControl
import TuttiLinuxHost
import TuttiTiming

import func Glibc.time

/// Keeps a room's memory on the disk.
///
/// Never in the way: what cannot be read or written is said once, and the room plays on without. What
/// changes again and again is written once a second, as it is then.
final class RoomStore: Sendable {
    private struct State {
        var memory = RoomMemory()
        var hasComplained = false
        /// Somebody will write what is in the memory by then.
        var isWritePlanned = false
        var writtenAt: LocalInstant?
    }

    /// Between two writes of the file. A card of a small computer wears out with them, and each is
    /// forced to the disk.
    static let pause = Nanoseconds.seconds(1)

    private let folder: StateFolder
    private let name: String
    private let ownBoot: UInt64
    private let logger: Logger
    private let state: Mutex<State>
    /// Writes wait for the disk; the room does not.
    private let queue = DispatchQueue(label: "tutti.state")

    /// - Parameter ownBoot: see ``NodeIdentity``.
    init(folder: StateFolder, room: RoomID, ownBoot: UInt64, logger: Logger) {
        self.folder = folder
        self.ownBoot = ownBoot
        self.logger = logger
        name = Self.fileName(of: room)
        folder.removeLeftovers(of: name)
        var memory = RoomMemory()
        do {
            if let text = try folder.read(name) { memory = try RoomMemory(parsing: text) }
        } catch let error as InvalidValue {
            folder.setAside(name)
            logger.warning(
                "what this room remembered cannot be used; it begins anew",
                metadata: ["file": "\(folder.path)/\(name).bad", "reason": "\(error)"])
        } catch {
            logger.warning("this room remembers nothing", metadata: ["reason": "\(error)"])
        }
        state = Mutex(State(memory: memory))
    }

    /// Readable, and different for different names.
    static func fileName(of room: RoomID) -> String {
        let plain = room.name.prefix(40).map {
            $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_"
        }
        return "room-\(String(plain))-\(hexText(fingerprint(room.name)).prefix(8))"
    }

    func offset(of output: String) -> LatencyOffset? {
        state.withLock { $0.memory.offset(of: output) }
    }

    func setOffset(_ offset: LatencyOffset, of output: String) {
        state.withLock { $0.memory.setOffset(offset, of: output) }
        saveSoon()
    }

    /// How loud the room was.
    var settings: RoomSettings? { state.withLock { $0.memory.settings } }

    /// - Parameter settings: the group's volume is the group's.
    func setSettings(_ settings: RoomSettings) {
        guard
            let own = try? RoomSettings(
                volume: settings.volume, muted: settings.muted, role: settings.role)
        else { return }
        let isNews = state.withLock { state in
            defer { state.memory.settings = own }
            return state.memory.settings != own
        }
        if isNews { saveSoon() }
    }

    /// What is known of this leader's rate, and the entry it comes from.
    func storedSkew(of welcome: Welcome) -> (skew: StoredSkew, entry: RoomMemory.Skew?) {
        state.withLock { state in
            (
                state.memory.storedSkew(
                    of: welcome.crystal, leader: welcome.leaderName, ownBoot: ownBoot,
                    at: Int64(time(nil))),
                state.memory.entry(of: welcome.crystal, leader: welcome.leaderName)
            )
        }
    }

    func remember(_ stored: StoredSkew, of welcome: Welcome, before: RoomMemory.Skew?) {
        guard welcome.crystal.node != 0 else { return }
        state.withLock { state in
            state.memory.remember(
                RoomMemory.Skew(
                    crystal: welcome.crystal, ownBoot: ownBoot, leader: welcome.leaderName,
                    skew: stored.skew, deviation: stored.deviation, at: Int64(time(nil))),
                before: before)
        }
        saveSoon()
    }

    /// Now, when the last time is long ago; else once that is so.
    private func saveSoon() {
        let wait = state.withLock { state -> Nanoseconds? in
            guard !state.isWritePlanned else { return nil }
            state.isWritePlanned = true
            let due = state.writtenAt.map { $0 + Self.pause - HostClock.now() }
            return max(.zero, due ?? .zero)
        }
        guard let wait else { return }
        queue.asyncAfter(deadline: .now() + .nanoseconds(Int(wait.count))) { self.save() }
    }

    /// On the queue.
    private func save() {
        let text = state.withLock { state -> String? in
            guard state.isWritePlanned else { return nil }
            state.isWritePlanned = false
            state.writtenAt = HostClock.now()
            return state.memory.text
        }
        guard let text else { return }
        do throws(StateFolder.Failure) {
            try folder.write(name, text)
        } catch {
            let isNews = state.withLock { state in
                defer { state.hasComplained = true }
                return !state.hasComplained
            }
            if isNews {
                logger.warning(
                    "what this room learns is forgotten when it ends",
                    metadata: ["reason": "\(error)"])
            }
        }
    }

    /// Returns when everything is on the disk.
    func close() { queue.sync { save() } }
}

/// Who this node is: a number on its disk, and one for this start of its machine.
enum NodeIdentity {
    static let file = "node"
    static let heading = "tutti node 1"

    /// The crystal of this node; the node's number is made when there is none yet.
    ///
    /// - Returns: node 0 where nothing can be kept, so that nobody relies on it.
    static func crystal(in folder: StateFolder?, logger: Logger) -> CrystalID {
        guard let folder else { return .unknown }
        folder.removeLeftovers(of: file)
        do throws(StateFolder.Failure) {
            if let text = try folder.read(file) {
                if let node = parse(text) { return CrystalID(node: node, boot: boot()) }
                folder.setAside(file)
                logger.warning(
                    "the number of this node cannot be read; it gets another",
                    metadata: ["file": "\(folder.path)/\(file).bad"])
            }
            let node = UInt64.random(in: 1 ... .max)
            try folder.write(file, "\(heading)\n\(hexText(node))\n")
            return CrystalID(node: node, boot: boot())
        } catch {
            logger.warning(
                "rooms cannot remember the rate of this leader's clock",
                metadata: ["reason": "\(error)"])
            return .unknown
        }
    }

    static func parse(_ text: String) -> UInt64? {
        let lines = text.split(separator: "\n")
        guard lines.count == 2, lines[0] == heading[...], lines[1].utf8.count == 16,
            let node = UInt64(lines[1], radix: 16), node != 0
        else { return nil }
        return node
    }

    /// Another number after each start of the machine; 0 where the kernel does not say.
    static func boot() -> UInt64 {
        let kernel = StateFolder(path: "/proc/sys/kernel/random")
        guard let text = try? kernel.read("boot_id") else { return 0 }
        return fingerprint(text)
    }
}
