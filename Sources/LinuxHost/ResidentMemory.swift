import CTuttiLinux
import Dispatch
import Glibc
import TuttiTiming

/// Keeps what this process holds in memory to what it works with.
///
/// Linking FFmpeg brings 130 libraries, for pictures, cryptography and protocols of all kinds. To
/// load them the dynamic linker reads their symbol and relocation tables, opening a file runs code
/// that is not run again, and the kernel maps 16 pages or more around each page that is touched:
/// of the 61 MB that a playing room holds, 51 MB are pages of such files. They are as in the file,
/// so letting go of them costs nothing but a page fault for those that are wanted again, from the
/// page cache and below 2 µs; what is left afterwards is what playing touches, 23 MB.
///
/// Memory that only this process has, 10 MB, is not changed by it. See `man 2 madvise`,
/// MADV_DONTNEED.
public enum ResidentMemory {
    /// Bytes. A block of so many is mapped by itself, and given back when it is freed.
    private static let largeBlock: Int32 = 512 << 10

    /// Has the allocator map each large block by itself, so that it is given back when it is freed.
    ///
    /// Once a large block is freed, glibc takes others of its size from an arena, where a smaller
    /// block behind them keeps them from being given back: of the ring of frames that a seek leaves
    /// behind, 1 MB, that was so. See `man 3 mallopt`, M_MMAP_THRESHOLD. Before threads are started.
    public static func mapLargeBlocks() {
        // Refused, the memory is kept.
        _ = mallopt(M_MMAP_THRESHOLD, largeBlock)
    }

    /// Trims when ``TrimSchedule`` says so, for as long as it lives.
    ///
    /// On a thread that does nothing else, with the kernel's account left open: a look costs a
    /// third of what it does where `Task.sleep` wakes three and the account is opened anew.
    public final class Keeper: Sendable {
        private let stopping = DispatchSemaphore(value: 0)
        private let thread: RealTimeThread

        /// - Throws: where there can be no thread.
        public init() throws(HostError) {
            thread = try RealTimeThread.start(name: "tutti-memory", priority: 0) { [stopping] in
                let account = openAccount()
                defer { close(account) }
                var schedule = TrimSchedule()
                func isOver() -> Bool {
                    let pause = DispatchTimeInterval.nanoseconds(Int(schedule.pause.count))
                    return stopping.wait(timeout: .now() + pause) == .success
                }
                while !isOver() {
                    if schedule.isTrimDue(holding: resident(by: account)) { trim() }
                }
            }
        }

        deinit { stop() }

        /// Ends it; returns when it has ended, within milliseconds. May be called again.
        public func stop() {
            stopping.signal()
            thread.join()
        }
    }

    /// Bytes of memory that this process has mapped and present (RSS); 0 where Linux does not tell.
    public static var resident: Int {
        let account = openAccount()
        defer { close(account) }
        return resident(by: account)
    }

    /// The kernel's account of this process; it may be read again and again.
    private static func openAccount() -> Int32 {
        unsafe open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
    }

    private static func resident(by account: Int32) -> Int {
        var line = [CChar](repeating: 0, count: 128)
        // Without an account the line is empty, and so are its numbers.
        _ = unsafe pread(account, &line, line.count - 1, 0)
        // Pages: in all, resident, …
        let pages = unsafe line.withUnsafeBufferPointer { line in
            var rest: UnsafeMutablePointer<CChar>?
            _ = unsafe strtol(line.baseAddress!, &rest, 10)
            return unsafe rest.map { unsafe strtol($0, nil, 10) } ?? 0
        }
        return pages * sysconf(Int32(_SC_PAGESIZE))
    }

    /// Gives back free memory of the allocator, and the pages of all loaded code and tables; what
    /// is in use comes back page by page.
    ///
    /// About 3 ms; blocks. Any thread; the others go on meanwhile, but for a page fault wherever they
    /// want something again.
    public static func trim() {
        malloc_trim(0)
        for range in constantRanges() {
            // Refused, the pages stay where they are.
            unsafe madvise(
                UnsafeMutableRawPointer(bitPattern: range.lowerBound), range.count, MADV_DONTNEED)
        }
    }

    /// Page-aligned addresses of all segments that are mapped without the right to write.
    ///
    /// What is relocated first and protected then (RELRO) lies in a segment that may be written,
    /// and is not among them.
    static func constantRanges() -> [Range<UInt>] {
        // Collected first: an object's list of segments lies in one of them.
        var ranges: [Range<UInt>] = []
        unsafe withUnsafeMutablePointer(to: &ranges) { ranges in
            _ = unsafe tutti_each_loaded_object(
                { object, _, context in
                    guard let object = unsafe object, let context = unsafe context else { return 0 }
                    unsafe ResidentMemory.collect(
                        object.pointee,
                        into: &context.assumingMemoryBound(to: [Range<UInt>].self)
                            .pointee)
                    return 0
                }, ranges)
        }
        return ranges
    }

    private static func collect(_ object: tutti_loaded_object, into ranges: inout [Range<UInt>]) {
        guard unsafe !hasRelocatedText(object) else { return }
        let page = UInt(sysconf(Int32(_SC_PAGESIZE)))
        for index in 0..<Int(unsafe object.header_count) {
            let segment = unsafe object.headers[index]
            guard segment.p_type == PT_LOAD, segment.p_flags & UInt32(PF_W) == 0 else { continue }
            let start = unsafe UInt(object.address) &+ UInt(segment.p_vaddr)
            let end = start + UInt(segment.p_memsz)
            ranges.append(start & ~(page - 1)..<(end + page - 1) & ~(page - 1))
        }
    }

    /// Code that the linker had to change is not as in its file. Not found in Debian's libraries,
    /// but possible.
    private static func hasRelocatedText(_ object: tutti_loaded_object) -> Bool {
        for index in 0..<Int(unsafe object.header_count) {
            let segment = unsafe object.headers[index]
            guard segment.p_type == PT_DYNAMIC else { continue }
            let address = unsafe UInt(object.address) &+ UInt(segment.p_vaddr)
            guard var entry = unsafe UnsafePointer<tutti_dynamic>(bitPattern: address) else {
                break
            }
            while unsafe Int32(entry.pointee.d_tag) != DT_NULL {
                if unsafe Int32(entry.pointee.d_tag) == DT_TEXTREL { return true }
                if unsafe Int32(entry.pointee.d_tag) == DT_FLAGS,
                    unsafe Int32(entry.pointee.d_un.d_val) & DF_TEXTREL != 0
                {
                    return true
                }
                unsafe entry += 1
            }
        }
        return false
    }
}
