import ArgumentParser
import Glibc
import TuttiPlayout
import TuttiRoom

/// `tutti backup`.
struct Backup: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Keep what this node is in one file: its key, household and what it remembers.",
        discussion: """
            Whoever has the file can be this node: keep it where nobody else reads it. An existing file \
            is not replaced without --force.

            Examples:
              tutti backup kitchen.backup
              tutti restore kitchen.backup
            """)

    @Argument(help: "The file.", completion: .file())
    var file: String

    @Flag(help: "Replace a file that is there.")
    var force = false

    @OptionGroup var options: ControlOptions

    func run() async throws {
        let settings = try await options.settings()
        let bytes = try NodeBackup.make(of: settings.stateFolder)
        try writeSecret(bytes, to: file, replaces: force)
        Terminal.output.say(
            "this node is kept in \(file.printable); keep it safe, its key is in it")
    }
}

/// `tutti restore`.
struct Restore: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Make this machine the node that a backup was made of.",
        discussion: """
            The node must not run meanwhile, nor the machine that the backup is of: two nodes with one \
            key are one to the others. Where another node is, it is lost only with --force.

            Example:
              tutti restore kitchen.backup
            """)

    @Argument(help: "The file.", completion: .file())
    var file: String

    @Flag(help: "Replace another node that is there.")
    var force = false

    @OptionGroup var options: ControlOptions

    func run() async throws {
        let settings = try await options.settings()
        let bytes = try readBytes(ofFile: file, most: NodeBackup.longest)
        let names = try NodeBackup.restore(
            bytes, to: settings.stateFolder, overwrites: force)
        Terminal.output.say(
            "this machine is that node now: \(names.count) files in \(settings.stateFolder.printable); where tutti runs here already, start it anew"
        )
    }
}

/// Writes a file that nobody but its owner can read, from its first byte on. One that it replaces is there
/// until all of the new one is: a disk that is full does not take the backup of before.
func writeSecret(_ bytes: [UInt8], to path: String, replaces: Bool) throws(CommandError) {
    func failure(_ what: String) -> CommandError {
        CommandError("\(path.printable): cannot be \(what) (\(String(cString: strerror(errno))))")
    }
    let fresh = replaces ? "\(path).\(getpid()).new" : path
    let descriptor = open(
        fresh.cFileName, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else {
        throw errno == EEXIST
            ? CommandError(
                "\(path.printable) is there already: choose another name, or say --force")
            : failure("written")
    }
    defer { close(descriptor) }
    /// - Returns: the error, after half a file is gone.
    func abandoned() -> CommandError {
        let error = failure("written")
        unlink(fresh.cFileName)
        return error
    }
    var count = 0
    while count < bytes.count {
        let more = bytes[count...].withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
        if more < 0 && errno == EINTR { continue }
        guard more > 0 else { throw abandoned() }
        count += more
    }
    guard fsync(descriptor) == 0,
        fresh == path || rename(fresh.cFileName, path.cFileName) == 0
    else { throw abandoned() }
}

/// - Parameter most: bytes that are read; a longer file is not what is meant.
func readBytes(ofFile path: String, most: Int) throws(CommandError) -> [UInt8] {
    func failure() -> CommandError {
        CommandError("\(path.printable): cannot be read (\(String(cString: strerror(errno))))")
    }
    let descriptor = open(path.cFileName, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure() }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 65_536)
    while bytes.count <= most {
        let count = part.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
        if count < 0 && errno == EINTR { continue }
        guard count >= 0 else { throw failure() }
        if count == 0 { return bytes }
        bytes += part[..<count]
    }
    throw CommandError("\(path.printable) is too long to be a backup of a node")
}
