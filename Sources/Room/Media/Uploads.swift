import Glibc
import NIOCore
import Synchronization
import TuttiFFmpegMedia
import TuttiGroupControl
import TuttiPlayout
import TuttiTiming

/// Files that other machines have added to the queue, kept as long as they are in it.
///
/// They lie beside the cache, and not in it: what is in the cache may go when space is needed, because
/// it can be fetched again, and these cannot. Each leader has a folder of its own, which it has locked;
/// one that nobody has locked is left of a leader that is gone, and is removed.
///
/// Calls block on the disk.
final class Uploads: Sendable {
    /// Files that nobody has put into the queue after this long go.
    static let patience = Nanoseconds.seconds(3_600)
    /// At once: a machine that sends several sends them one after the other.
    static let mostAtOnce = 8

    /// Why one is not taken.
    struct Refusal: Error, Equatable {
        /// Of HTTP.
        var status: Int
        var reason: String
    }

    /// One that is arriving.
    ///
    /// An object: with the hasher in the frame of an async function the compiler of Swift 6.3 ends with a
    /// signal when it optimises.
    final class Arrival {
        let id: String
        let path: String
        let size: Int64
        fileprivate let descriptor: Int32
        fileprivate var hasher = ByteHasher()
        fileprivate(set) var count: Int64 = 0

        fileprivate init(id: String, path: String, size: Int64, descriptor: Int32) {
            (self.id, self.path, self.size) = (id, path, size)
            self.descriptor = descriptor
        }

        /// Of the bytes so far.
        fileprivate var hash: String? { try? ContentHash(bytes: hasher.hash()).hex }
    }

    private struct Kept {
        var path: String
        var size: Int64
        /// Items of the queue that are this file; with none it goes at `until`.
        var users = 0
        var until: LocalInstant
    }

    private struct State {
        var folder: UploadFolder?
        var kept: [String: Kept] = [:]
        var arriving: [String: Int64] = [:]
        /// Names of folders that stay after this process.
        var heirlooms: Set<String> = []

        var bytes: Int64 {
            kept.values.reduce(arriving.values.reduce(0, +)) { $0 + $1.size }
        }
    }

    private let base: String
    private let limit: Int64
    private let now: @Sendable () -> LocalInstant
    private let state = Mutex(State())

    /// - Parameters:
    ///   - base: the folder of the cache.
    ///   - limit: bytes of all together.
    init(base: String, limit: Int64, now: @escaping @Sendable () -> LocalInstant) {
        self.base = base
        self.limit = limit
        self.now = now
    }

    var hasAny: Bool { state.withLock { !$0.kept.isEmpty } }

    /// Where the files are.
    var paths: Set<String> { state.withLock { Set($0.kept.values.map(\.path)) } }

    /// Whether all of it is here already.
    func contains(_ id: String) -> Bool { path(of: id) != nil }

    /// Where the file is; `nil` when it was not sent, or somebody has removed it.
    func path(of id: String) -> String? {
        guard let path = state.withLock({ $0.kept[id]?.path }) else { return nil }
        let isThere = access(path.cFileName, R_OK) == 0
        return state.withLock { state in
            if isThere {
                state.kept[id]?.until = now() + Self.patience
            } else {
                state.kept[id] = nil
            }
            return state.kept[id]?.path
        }
    }

    // MARK: Arriving

    /// Whether one would be taken.
    func check(_ id: String, size: Int64) throws(Refusal) {
        sweep()
        if let refusal = state.withLock({ refusal(of: id, size, $0) }) { throw refusal }
    }

    private func refusal(of id: String, _ size: Int64, _ state: State) -> Refusal? {
        // As the leader writes it: one file has one name here.
        guard (try? ContentHash(hex: id))?.hex == id else {
            return Refusal(status: 400, reason: "the address of an upload ends with its SHA-256")
        }
        guard size > 0 else {
            return Refusal(status: 411, reason: "an upload says how long it is, and is not empty")
        }
        guard state.arriving[id] == nil, state.kept[id] == nil else {
            return Refusal(status: 409, reason: "it is being sent already")
        }
        guard state.arriving.count < Self.mostAtOnce else {
            return Refusal(status: 503, reason: "too many files are being sent at once; try again")
        }
        guard size <= limit - state.bytes else {
            return Refusal(
                status: 507,
                reason:
                    "the leader keeps at most \(limit.megabytes) MB of files of other machines, has \(state.bytes.megabytes), and this one is \(size.megabytes): remove items from the queue, give the leader a larger --cache-uploads-mb, or name an address (http://...)"
            )
        }
        return nil
    }

    /// - Parameters:
    ///   - id: the SHA-256 of the bytes, 64 lower-case hexadecimal digits.
    ///   - name: of the file where it came from; people see it where there is no title.
    func begin(_ id: String, name: String, size: Int64) throws(Refusal) -> Arrival {
        sweep()
        let refused = state.withLock { state -> Refusal? in
            if let refusal = refusal(of: id, size, state) { return refusal }
            state.arriving[id] = size
            return nil
        }
        if let refused { throw refused }
        let folder: String
        do throws(Refusal) {
            folder = try place(for: id)
        } catch {
            state.withLock { _ = $0.arriving.removeValue(forKey: id) }
            throw error
        }
        let path = folder + "/" + UploadFolder.fileName(name)
        let descriptor = open(
            path.cFileName, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            let reason = String(cString: strerror(errno))
            state.withLock { _ = $0.arriving.removeValue(forKey: id) }
            throw Refusal(status: 507, reason: "it cannot be kept: \(reason)")
        }
        return Arrival(id: id, path: path, size: size, descriptor: descriptor)
    }

    func take(_ bytes: ByteBuffer, of arrival: Arrival) throws(Refusal) {
        arrival.count += Int64(bytes.readableBytes)
        guard arrival.count <= arrival.size else {
            throw Refusal(status: 400, reason: "it is longer than was said")
        }
        let written = bytes.withUnsafeReadableBytes { bytes in
            arrival.hasher.update(bytes)
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = write(
                    arrival.descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress,
                    rest.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return false }
                rest = rest.dropFirst(count)
            }
            return true
        }
        guard written else {
            throw Refusal(
                status: 507, reason: "it cannot be kept: \(String(cString: strerror(errno)))")
        }
    }

    /// All has come.
    func finish(_ arrival: Arrival) throws(Refusal) {
        guard arrival.count == arrival.size, arrival.hash == arrival.id else {
            abandon(arrival)
            throw Refusal(
                status: 422, reason: "other bytes came than were announced; send it again")
        }
        close(arrival.descriptor)
        state.withLock { state in
            state.arriving[arrival.id] = nil
            state.kept[arrival.id] = Kept(
                path: arrival.path, size: arrival.size, until: now() + Self.patience)
        }
    }

    /// It will not be finished.
    func abandon(_ arrival: Arrival) {
        close(arrival.descriptor)
        UploadFolder.removeFile(arrival.path)
        state.withLock { _ = $0.arriving.removeValue(forKey: arrival.id) }
    }

    // MARK: Keeping

    /// An item of the queue is at this place; others are none of ours.
    func use(_ path: String) { change(path) { $0.users += 1 } }

    /// The item has left the queue.
    func release(_ path: String) {
        change(path) {
            $0.users -= 1
            // Nobody waits for one that was played.
            if $0.users <= 0 { $0.until = now() }
        }
        sweep()
    }

    private func change(_ path: String, _ change: (inout Kept) -> Void) {
        state.withLock { state in
            guard let id = state.kept.first(where: { $0.value.path == path })?.key else { return }
            if var kept = state.kept[id] {
                change(&kept)
                state.kept[id] = kept
            }
        }
    }

    private func place(for id: String) throws(Refusal) -> String {
        let place = state.withLock { state -> String? in
            if state.folder?.isThere != true {
                state.folder = UploadFolder(in: base, but: state.heirlooms)
            }
            return state.folder?.place(for: id)
        }
        guard let place else {
            let reason = String(cString: strerror(errno))
            throw Refusal(status: 507, reason: "\(base) cannot take files: \(reason)")
        }
        return place
    }

    /// Removes what nobody wants.
    private func sweep() {
        let gone = state.withLock { state in
            let ids = state.kept.filter { $0.value.users <= 0 && $0.value.until <= now() }.keys
            return ids.compactMap { state.kept.removeValue(forKey: $0)?.path }
        }
        for path in gone { UploadFolder.removeFile(path) }
    }

    /// Removes all of them, with the folder.
    func end() {
        let before = state.withLock { state in
            defer { state = State() }
            return state.folder
        }
        withExtendedLifetime(before) {}
    }

    /// Removes what leaders have left that are gone.
    func removeLeftovers() {
        UploadFolder.removeThoseOfOthers(in: base, but: state.withLock { $0.heirlooms })
    }

    /// Files that a session needs which goes on after this process: their folders stay, and those that
    /// stayed for it until now may go.
    func keep(_ paths: [String]) {
        let names = Set(paths.compactMap { UploadFolder.name(of: $0, in: base) })
        let before = state.withLock { state in
            defer { state.heirlooms = names }
            return state.heirlooms
        }
        for name in names { UploadFolder.mark(base + "/" + name) }
        for name in before.subtracting(names) { UploadFolder.unmark(base + "/" + name) }
    }
}
