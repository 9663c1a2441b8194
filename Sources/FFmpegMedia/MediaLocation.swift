import CTuttiFFmpeg
import Glibc
import TuttiPlayout

/// Where an asset is: a local file or an http(s) address, told apart before FFmpeg sees the text.
///
/// FFmpeg takes anything before a colon for a protocol (`concat:`, `pipe:`, `a:b.mp3`), so a local
/// path is always handed over as `file:…`, with only that protocol allowed.
struct MediaLocation: Sendable, Equatable {
    /// As the user wrote it; for messages.
    let subject: String
    /// Whether that is an address, wherever the bytes are by now.
    let isAddress: Bool
    /// What FFmpeg opens.
    private(set) var address: String
    private(set) var isRemote: Bool
    /// The local path; `nil` for an address.
    private(set) var path: String?
    /// The file at ``path``, open for all who read it.
    private(set) var file: OpenFile?
    /// Being fetched; then this is read, and the address only names it.
    private(set) var incoming: IncomingFile?
    /// Frames that others count in the same bytes.
    private(set) var knownFrameCount: Int64?

    /// The stream that was asked for; `nil`: the one that ``Demuxer`` chooses.
    var track: Int?

    /// What to play of an output's channels; `nil`: all in two.
    var channels: ChannelPair?

    /// To play an MP4's media from its first packet to its last, whatever its edit list says.
    var ignoresEdits = false

    /// To play all frames as they come, whatever their rate.
    var followsRates = false

    /// To play what is on a server from its first byte on, if possible, before all of it is here.
    var beginsEarly = false

    /// Where bytes go that are read so.
    var spool: SpoolFile?

    /// Bytes that are to be opened as if they were the whole.
    var part: Range<Int64>?

    /// What FFmpeg opens of ``part``.
    var partAddress: String {
        guard let part else { return address }
        return "subfile,,start,\(part.lowerBound),end,\(part.upperBound),,:" + address
    }

    /// An interrupted transfer is no end.
    var mayBreak: Bool { isRemote || incoming != nil }

    init(_ file: IncomingFile, frameCount: Int64?) {
        knownFrameCount = frameCount
        subject = file.location.subject
        address = file.location.address
        isAddress = true
        isRemote = false
        path = nil
        incoming = file
    }

    /// - Throws: `.unsupported` for another kind of address.
    init(_ text: String) throws(MediaError) {
        subject = text.readableFileName
        let scheme = text.prefix(8).lowercased()
        if scheme.hasPrefix("http://") || scheme.hasPrefix("https://") {
            // FFmpeg knows its protocols in lower case only (RFC 3986, 3.1: either is meant).
            let mark = text.firstIndex(of: ":") ?? text.endIndex
            address = text[..<mark].lowercased() + text[mark...]
            guard WebAddress(address) != nil else {
                throw MediaError(
                    .unsupported, operation: "open", subject: subject,
                    reason: "names no server, or holds a character that no address has; an "
                        + "address is http://HOST/PATH, or http://HOST:PORT/PATH with a port "
                        + "from 1 to 65535")
            }
            isAddress = true
            isRemote = true
            path = nil
            return
        }
        if !scheme.hasPrefix("file://"), let range = text.firstRange(of: "://"),
            text[..<range.lowerBound].allSatisfy({ $0.isASCII && $0.isLetter })
        {
            throw MediaError(
                .unsupported, operation: "open", subject: text,
                reason: "only files, http and https addresses can be opened")
        }
        let local = scheme.hasPrefix("file://") ? try Self.path(ofFileURL: text) : text
        isAddress = false
        isRemote = false
        path = local
        address = "file:" + local
    }

    /// The path in `file:///a%20b.mp3` or `file://localhost/a.mp3` (RFC 8089).
    private static func path(ofFileURL text: String) throws(MediaError) -> String {
        let rest = text.dropFirst(7)
        let host = rest.prefix { $0 != "/" }
        guard host.isEmpty || host.lowercased() == "localhost" else {
            throw MediaError(
                .unsupported, operation: "open", subject: text,
                reason: "is on another machine (\(host)); give its path here, or an http address")
        }
        let bytes = unescaped(Array(rest.dropFirst(host.count).utf8))
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The bytes that an address stands for (RFC 3986, 2.1).
    static func unescaped(_ escaped: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        var left = escaped[...]
        while let byte = left.popFirst() {
            let digits = left.prefix(2)
            if byte == UInt8(ascii: "%"), digits.count == 2,
                let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
            {
                left = left.dropFirst(2)
                bytes.append(value)
            } else {
                bytes.append(byte)
            }
        }
        return bytes
    }

    /// The same item at the address where it was found to be.
    func moved(to address: WebAddress) -> MediaLocation {
        var location = self
        location.address = address.text
        return location
    }

    /// The same item in a file that has all of its bytes.
    func held(in file: OpenFile) -> MediaLocation {
        var location = self
        location.file = file
        location.path = file.path
        location.address = "file:" + file.path
        location.isRemote = false
        return location
    }

    /// Host and port of a remote one.
    var webAddress: WebAddress? { isRemote ? WebAddress(address) : nil }

    /// Whether it is the same part of the same thing.
    static func == (one: MediaLocation, other: MediaLocation) -> Bool {
        one.address == other.address && one.part == other.part && one.track == other.track
            && one.channels == other.channels && one.ignoresEdits == other.ignoresEdits
            && one.followsRates == other.followsRates
    }

    /// The same with its file open, where it is a local one.
    func opened() throws(MediaError) -> MediaLocation {
        guard let path, file == nil else { return self }
        try checkReadable()
        // What has become something else since the look does not block either.
        let descriptor = unsafe open(path.cFileName, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw MediaError(library: cff_error(errno), operation: "open", location: self)
        }
        var location = self
        location.file = OpenFile(descriptor)
        return location
    }

    /// Refuses a pair that the output does not have.
    func checkChannels() throws(MediaError) {
        guard let channels else { return }
        let count = channels.layout.pairCount
        guard !(0..<count).contains(channels.index) else { return }
        let names = channels.layout.channels.map(\.rawValue).joined(separator: " ")
        throw MediaError(
            .unsupported, operation: "open", subject: subject,
            reason: "cannot be played on pair \(channels.index) of an output "
                + (count == 0
                    ? "without channels"
                    : "with the channels \(names); its pairs are 0 to \(count - 1)"))
    }

    /// What the system says of a local file: of the one that is open, or else of what has its name.
    var status: stat? {
        var status = stat()
        if let file { return unsafe fstat(file.descriptor, &status) == 0 ? status : nil }
        guard let path else { return nil }
        return unsafe stat(path.cFileName, &status) == 0 ? status : nil
    }

    /// Refuses what would block or mislead before anything is opened: folders, pipes, devices.
    func checkReadable() throws(MediaError) {
        guard let path else { return }
        func failure(_ code: MediaError.Code, _ reason: String) -> MediaError {
            MediaError(code, operation: "stat", subject: subject, reason: reason)
        }
        var status = stat()
        guard unsafe stat(path.cFileName, &status) == 0 else {
            let code = errno
            if code == EACCES { throw failure(.notReadable, "is in a folder that may not be read") }
            if code == ENOENT || code == ENOTDIR {
                throw failure(.notFound, "is not there; check the name")
            }
            throw failure(.notReadable, "cannot be read: \(libraryText(cff_error(code)))")
        }
        switch status.st_mode & S_IFMT {
        case S_IFREG: break
        case S_IFDIR: throw failure(.notReadable, "is a folder; name a file in it")
        default: throw failure(.notReadable, "is not a regular file; copy it into one")
        }
        guard unsafe access(path.cFileName, R_OK) == 0 else {
            throw failure(.notReadable, "may not be read by this user; change its permissions")
        }
        guard status.st_size > 0 else {
            throw MediaError(
                .notMedia, operation: "stat", subject: subject,
                reason: "is empty; was it copied completely?")
        }
    }
}
