import Glibc
import TuttiPlayout

/// A folder of small files that outlive the process.
///
/// A file is replaced as a whole and at once: written next to the old one, forced to the disk,
/// renamed, and the folder forced to the disk. Whatever happens in between, one of the two is there;
/// afterwards it is the new one.
struct StateFolder: Sendable {
    /// Longest file read or written, bytes. Ours have a few kilobytes.
    static let longestFile = 65_536

    let path: String

    /// What went wrong, for a person: the file, the operation, the system's words.
    struct Failure: Error, CustomStringConvertible {
        var description: String
        /// The system's number of what went wrong.
        var code: CInt

        init(_ operation: String, _ path: String, _ code: CInt = errno) {
            self.code = code
            let words = strerror(code).map { String(cString: $0) } ?? "error \(code)"
            description = "\(path): cannot \(operation) (\(words))"
        }
    }

    /// - Returns: `nil` when there is no such file.
    func read(_ name: String) throws(Failure) -> String? {
        try readBytes(name, most: Self.longestFile).map { String(decoding: $0, as: UTF8.self) }
    }

    /// - Parameter most: bytes that the file may have.
    /// - Returns: `nil` when there is no such file.
    func readBytes(_ name: String, most: Int) throws(Failure) -> [UInt8]? {
        let file = "\(path)/\(name)"
        let descriptor = open(file.cFileName, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw Failure("be opened", file)
        }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: most + 1)
        var count = 0
        while count < bytes.count {
            let more = bytes.withUnsafeMutableBytes {
                Glibc.read(descriptor, $0.baseAddress! + count, $0.count - count)
            }
            if more < 0 && errno == EINTR { continue }
            guard more >= 0 else { throw Failure("be read", file) }
            if more == 0 { break }
            count += more
        }
        guard count <= most else { throw Failure("be read", file, EFBIG) }
        return Array(bytes[..<count])
    }

    /// Replaces a file; makes the folder where it is missing.
    func write(_ name: String, _ text: String) throws(Failure) {
        try write(name, Array(text.utf8))
    }

    /// - Parameter isSecret: nobody but its owner can read it, from the first byte on.
    func write(_ name: String, _ bytes: [UInt8], isSecret: Bool = false) throws(Failure) {
        try makeFolder()
        let file = "\(path)/\(name)"
        let fresh = "\(file).\(getpid())\(Self.freshSuffix)"
        unlink(fresh.cFileName)
        let descriptor = open(
            fresh.cFileName, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
            isSecret ? 0o600 : 0o644)
        guard descriptor >= 0 else { throw Failure("be written", file) }
        giveToOwner(descriptor)
        var count = 0
        while count < bytes.count {
            let more = bytes.withUnsafeBytes {
                Glibc.write(descriptor, $0.baseAddress! + count, $0.count - count)
            }
            if more < 0 && errno == EINTR { continue }
            guard more > 0 else { break }
            count += more
        }
        let isWritten = count == bytes.count && fsync(descriptor) == 0
        let code = errno
        close(descriptor)
        guard isWritten else {
            unlink(fresh.cFileName)
            throw Failure("be written", file, code)
        }
        guard rename(fresh.cFileName, file.cFileName) == 0 else {
            let code = errno
            unlink(fresh.cFileName)
            throw Failure("be replaced", file, code)
        }
        settleFolder()
    }

    /// What was renamed stays so when the power fails. A file system that cannot has done what it can.
    private func settleFolder() {
        let descriptor = open(path.cFileName, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }

    /// What the superuser does in a node's folder, like restoring a backup, leaves nothing there that the
    /// node cannot read.
    private func giveToOwner(_ descriptor: CInt) {
        var facts = stat()
        guard geteuid() == 0, stat(path.cFileName, &facts) == 0, facts.st_uid != 0 else { return }
        _ = fchown(descriptor, facts.st_uid, facts.st_gid)
    }

    private static let freshSuffix = ".new"

    /// Removes what processes that were killed in the middle of ``write(_:_:)`` left of this file.
    /// The number in its name says whose it is: what one that lives is writing stays.
    func removeLeftovers(of name: String) {
        for file in FolderEntries.names(in: path) {
            guard file.hasPrefix("\(name)."), file.hasSuffix(Self.freshSuffix),
                let writer = pid_t(
                    file.dropFirst(name.utf8.count + 1).dropLast(Self.freshSuffix.utf8.count)),
                writer == getpid() || (kill(writer, 0) != 0 && errno == ESRCH)
            else { continue }
            unlink("\(path)/\(file)".cFileName)
        }
    }

    func remove(_ name: String) {
        unlink("\(path)/\(name)".cFileName)
        settleFolder()
    }

    /// Changes when the file does; 0 without one.
    func stamp(_ name: String) -> UInt64 {
        var facts = stat()
        guard stat("\(path)/\(name)".cFileName, &facts) == 0 else { return 0 }
        // Each write is another file.
        return UInt64(facts.st_ino) &* 0x9E37_79B9_7F4A_7C15
            ^ UInt64(bitPattern: Int64(facts.st_mtim.tv_sec)) << 30
            ^ UInt64(bitPattern: Int64(facts.st_mtim.tv_nsec))
    }

    /// Does something while no other process does something under the same name.
    ///
    /// - Throws: what `body` throws, or that there can be no such file.
    func exclusively<T>(
        _ name: String, _ body: () throws(RoomError) -> T
    ) throws(RoomError) -> T {
        do throws(Failure) {
            try makeFolder()
        } catch {
            throw RoomError(.badState, "\(error)")
        }
        let file = "\(path)/\(name).lock"
        let descriptor = open(file.cFileName, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            throw RoomError(.badState, "\(Failure("be written", file))")
        }
        defer { close(descriptor) }
        giveToOwner(descriptor)
        while flock(descriptor, LOCK_EX) != 0 {
            guard errno == EINTR else {
                throw RoomError(.badState, "\(Failure("be locked", file))")
            }
        }
        return try body()
    }

    /// Moves a file out of the way, for its owner to look at.
    func setAside(_ name: String) { rename("\(path)/\(name)", "\(path)/\(name).bad") }

    func makeFolder() throws(Failure) {
        var end = path.startIndex
        while end < path.endIndex {
            end = path[path.index(after: end)...].firstIndex(of: "/") ?? path.endIndex
            if mkdir(String(path[..<end]).cFileName, 0o755) != 0, errno != EEXIST {
                throw Failure("be made", String(path[..<end]))
            }
        }
    }
}

/// A number for a text, the same in every process (FNV-1a, 64 bits).
func fingerprint(_ text: String) -> UInt64 {
    text.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
}

/// Sixteen hexadecimal digits.
func hexText(_ number: UInt64) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
}
