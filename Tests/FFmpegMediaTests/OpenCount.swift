import CTuttiFFmpeg
import Glibc

/// How often a file has been opened since, by anybody (inotify).
final class OpenCount {
    private let descriptor: Int32
    private var opened = 0

    init(of path: String) {
        descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
        // The system takes two equal events in a row for one: what is opened is read before it is
        // opened again, so that events of reading lie between.
        inotify_add_watch(descriptor, path, UInt32(IN_OPEN | IN_ACCESS))
    }

    deinit { close(descriptor) }

    var value: Int {
        var events = [UInt8](repeating: 0, count: 65_536)
        while case let count = read(descriptor, &events, events.count), count > 0 {
            events.withUnsafeBytes { bytes in
                var offset = 0
                while offset < count {
                    let event = bytes.loadUnaligned(
                        fromByteOffset: offset, as: inotify_event.self)
                    if event.mask & UInt32(IN_OPEN) != 0 { opened += 1 }
                    offset += MemoryLayout<inotify_event>.size + Int(event.len)
                }
            }
        }
        return opened
    }
}
