import Glibc
import TuttiGroupControl

/// stdout or stderr, and what it can show.
///
/// Writes go straight to the descriptor: `stdout` and `stderr` of the C library are global
/// variables that Swift 6 does not let several threads share.
struct Terminal: Sendable {
    static let output = Terminal(descriptor: STDOUT_FILENO)
    static let error = Terminal(descriptor: STDERR_FILENO)

    let descriptor: Int32

    /// Whether a person looks at it; a pipe or a file gets plain lines.
    var isInteractive: Bool {
        isatty(descriptor) == 1 && getenv("TERM").map { strcmp($0, "dumb") != 0 } ?? false
    }

    /// Colours are for people, unless NO_COLOR asks for none (no-color.org).
    var showsColour: Bool {
        isInteractive && (getenv("NO_COLOR").map { $0.pointee == 0 } ?? true)
    }

    /// Columns; 80 where nobody knows.
    var width: Int {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }

    /// Lines; 24 where nobody knows.
    var height: Int {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_row > 0 else { return 24 }
        return Int(size.ws_row)
    }

    /// Pixels of a character; `nil` where the system was not told.
    var cell: CellSize? {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0
        else { return nil }
        return CellSize(
            width: Int(size.ws_xpixel / size.ws_col), height: Int(size.ws_ypixel / size.ws_row))
    }

    /// Writes a sentence on a line of its own, whoever wrote parts of it: many hold reasons and
    /// names of other nodes.
    @discardableResult
    func say(_ sentence: String) -> Bool {
        write(sentence.shown(limit: Self.longestSentence) + "\n")
    }

    /// Bytes. Twenty leaders with their addresses fit.
    static let longestSentence = 4_096

    /// Writes all of `text`; a reader that went away is no error of ours.
    ///
    /// - Returns: false when nobody reads any more, so that whatever goes on for ever can end.
    @discardableResult
    func write(_ text: String) -> Bool {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                bytes = bytes.dropFirst(count)
            } else if errno != EINTR {
                return false
            }
        }
        return true
    }

    /// Writes, unless that would have to wait: a terminal that is stopped (Ctrl-S), or a pager
    /// that is not scrolled, must not stop what reports to it.
    ///
    /// Text longer than PIPE_BUF bytes may still wait for the rest of it.
    ///
    /// - Returns: false when it would have to wait. What cannot be written at all counts as
    ///   written.
    func writeIfRead(_ text: String) -> Bool {
        var descriptor = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        // A pipe that can be written to has room for PIPE_BUF bytes: a line.
        guard poll(&descriptor, 1, 0) > 0 else { return false }
        write(text)
        return true
    }
}

/// `tutti status | head -1` must end quietly, not by a signal.
func ignoreBrokenPipes() { signal(SIGPIPE, SIG_IGN) }
