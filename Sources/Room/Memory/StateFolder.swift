import Glibc
import Playout

/// A folder of small text files that outlive the process.
///
/// A file is replaced as a whole and at once: written next to the old one, forced to the disk,
/// renamed. Whatever happens in between, one of the two is there.
struct StateFolder: Sendable {
    /// Longest file read or written, bytes. Ours have a few kilobytes.
    static let longestFile = 65_536

    let path: String

    /// What went wrong, for a person: the file, the operation, the system's words.
    struct Failure: Error, CustomStringConvertible {
        var description: String

        init(_ operation: String, _ path: String, _ code: CInt = errno) {
            let words = strerror(code).map { String(cString: $0) } ?? "error \(code)"
            description = "\(path): cannot \(operation) (\(words))"
        }
    }

    /// - Returns: `nil` when there is no such file.
    func read(_ name: String) throws(Failure) -> String? {
        let file = "\(path)/\(name)"
        let descriptor = open(file.cFileName, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw Failure("be opened", file)
        }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: Self.longestFile + 1)
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
        guard count <= Self.longestFile else { throw Failure("be read", file, EFBIG) }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }

    /// Replaces a file; makes the folder where it is missing.
    func write(_ name: String, _ text: String) throws(Failure) {
        try makeFolder()
        let file = "\(path)/\(name)"
        let fresh = "\(file).\(getpid())\(Self.freshSuffix)"
        unlink(fresh.cFileName)
        let descriptor = open(
            fresh.cFileName, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o644)
        guard descriptor >= 0 else { throw Failure("be written", file) }
        let bytes = Array(text.utf8)
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
