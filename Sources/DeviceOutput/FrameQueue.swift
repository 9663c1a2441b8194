import Glibc
import Synchronization
import TuttiLinuxHost
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

/// Samples on their way from the output thread to a file, written by a thread of its own.
///
/// The output thread never waits for the disk: what does not fit the queue is lost, counted, and
/// made up for with zeros as soon as there is room, so that frame numbers stay true.
/// `@safe`: the staging buffer is private and lives as long as the object.
@safe
final class FrameQueue {
    private let ring: FrameRing
    private let finishing: LatestValue<Bool>
    /// Samples appended, known to the writer once ``finish()`` has begun.
    private let total: LatestValue<Int64>
    private let writer: RealTimeThread
    private let channelCount: Int
    /// Samples that make pairs, the ring's unit: one may be left over from the time before.
    private let staging: UnsafeMutableBufferPointer<Float>
    private var staged = 0
    private var appended: Int64 = 0
    /// Samples lost and not yet replaced by zeros.
    private var owed = 0
    private(set) var lostFrames: Int64 = 0

    /// Pairs of samples in the queue: 2.7 s of stereo at 48 kHz.
    private static let pairs = 131_072
    private static let stagingSamples = 4096
    /// How often the file is brought up to date.
    private static let interval = Nanoseconds.milliseconds(100)

    /// - Parameters:
    ///   - file: gets the samples behind its first `headerBytes`, which the caller has written.
    ///   - eachRound: on the writer's thread, after samples were written.
    ///   - atEnd: on the writer's thread, with the number of samples in the complete file.
    init(
        file: RecordFile, headerBytes: Int, channelCount: Int,
        eachRound: @escaping @Sendable (_ samplesWritten: Int64) -> Void,
        atEnd: @escaping @Sendable (_ samplesWritten: Int64) -> Void
    ) throws(OutputError) {
        let ring = FrameRing(capacityFrames: Self.pairs)
        let finishing = LatestValue(false)
        let total = LatestValue<Int64>(0)
        do {
            writer = try RealTimeThread.start(name: "tutti-record", priority: 0) {
                while true {
                    let isLast = finishing.load()
                    Self.drain(ring, into: file)
                    if isLast { break }
                    eachRound(ring.firstFrame * 2)
                    HostClock.sleep(until: HostClock.now() + Self.interval)
                }
                // The last pair may hold one sample too many.
                file.truncate(to: headerBytes + 4 * Int(total.load()))
                atEnd(total.load())
                file.close()
            }
        } catch {
            throw OutputError(
                operation: error.operation, code: error.code, device: file.path,
                reason: error.description)
        }
        self.ring = ring
        self.finishing = finishing
        self.total = total
        self.channelCount = channelCount
        unsafe staging = .allocate(capacity: Self.stagingSamples)
        unsafe staging.initialize(repeating: 0)
    }

    deinit { unsafe staging.deallocate() }

    /// Appends frames, or as many zeros in their place.
    ///
    /// - Returns: false when the queue is full and the frames are lost.
    func append(_ source: UnsafePointer<Float>?, frames: Int) -> Bool {
        payDebt()
        let count = frames * channelCount
        guard owed == 0, ring.writableFrames * 2 >= count + 2 else {
            owed += count
            lostFrames += Int64(frames)
            return false
        }
        unsafe push(source, count: count)
        return true
    }

    /// Completes the file and waits until it is on its way to the disk; a dead disk for some
    /// seconds.
    func finish() {
        for _ in 0..<100 {
            payDebt()
            if owed == 0 { break }
            HostClock.sleep(until: HostClock.now() + Self.interval / 2)
        }
        total.store(appended)
        if staged == 1 { unsafe push(nil, count: 1) }
        finishing.store(true)
        writer.join()
    }

    private func payDebt() {
        let count = min(owed, max(0, ring.writableFrames * 2 - 2))
        if count > 0 {
            unsafe push(nil, count: count)
            owed -= count
        }
    }

    /// `count` samples (zeros for `nil`) through the staging buffer; there is room for them.
    private func push(_ source: UnsafePointer<Float>?, count: Int) {
        appended += Int64(count)
        var done = 0
        while done < count {
            let part = min(count - done, Self.stagingSamples - staged)
            for i in 0..<part {
                unsafe staging[staged + i] = unsafe source.map { unsafe $0[done + i] } ?? 0
            }
            done += part
            let ready = staged + part
            let whole = ready / 2 * 2
            _ = unsafe ring.write(UnsafeBufferPointer(rebasing: staging[..<whole]))
            staged = ready - whole
            if staged == 1 { unsafe staging[0] = unsafe staging[whole] }
        }
    }

    private static func drain(_ ring: FrameRing, into file: RecordFile) {
        var first = ring.firstFrame
        while true {
            let end = ring.endFrame
            guard first < end else { return }
            // Straight from the ring's memory, up to where it wraps.
            let capacity = Int64(ring.capacityFrames)
            let count = min(end - first, capacity - (first & (capacity - 1)))
            unsafe file.write(
                UnsafeRawBufferPointer(start: ring.pointer(toFrame: first), count: Int(count) * 8))
            first += count
            ring.release(upTo: first)
        }
    }
}

/// One file that is being written; all calls come from one thread at a time.
///
/// The first error is told and ends the writing; the sound goes on.
final class RecordFile: Sendable {
    let path: String
    private let descriptor: Int32
    private let hasFailed = Mutex(false)
    private let onFailure: (@Sendable (OutputError) -> Void)?

    /// - Parameters:
    ///   - overwrites: whether a file that is there may be written over.
    ///   - onFailure: called at most once, where the writing was asked for.
    /// - Throws: code `EEXIST` for a file that is there; pipes and devices hold nothing to lose.
    init(
        _ path: String, overwrites: Bool = false,
        onFailure: (@Sendable (OutputError) -> Void)? = nil
    ) throws(OutputError) {
        self.path = path
        self.onFailure = onFailure
        var info = stat()
        let exists = unsafe stat(path.cFileName, &info) == 0
        let isFile = info.st_mode & S_IFMT == S_IFREG
        // O_EXCL: what comes into being between the look and the opening is not written over.
        let how = exists ? (isFile ? O_TRUNC : 0) : (overwrites ? O_TRUNC : O_EXCL)
        if exists, isFile, !overwrites {
            descriptor = -1
            errno = EEXIST
        } else {
            descriptor = unsafe Glibc.open(
                path.cFileName, O_RDWR | O_CREAT | how | O_CLOEXEC, 0o644)
        }
        if descriptor < 0 {
            let code = errno
            throw OutputError(
                operation: "open", code: code, device: path,
                reason: Self.reason(code))
        }
    }

    private static func reason(_ code: Int32) -> String {
        let words = unsafe String(cString: strerror(code))
        return switch code {
        case EEXIST: "is there already and is not written over; give another path, or --force"
        case EISDIR: "is a directory; give the path of a file in it"
        case ENOENT, ENOTDIR: "\(words); the folder must exist"
        case EACCES, EROFS, EPERM: "\(words); the folder must be writable"
        default: words
        }
    }

    func write(_ text: String) {
        var text = text
        text.withUTF8 { unsafe write(UnsafeRawBufferPointer($0)) }
    }

    func write(_ bytes: UnsafeRawBufferPointer) {
        guard !hasFailed.withLock(\.self) else { return }
        var rest = unsafe bytes
        while rest.count > 0 {
            let count = unsafe Glibc.write(descriptor, rest.baseAddress, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return fail(code: count < 0 ? errno : ENOSPC) }
            unsafe rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
    }

    private func fail(code: Int32) {
        hasFailed.withLock { $0 = true }
        onFailure?(
            OutputError(
                operation: "write", code: code, device: path,
                reason: unsafe String(cString: strerror(code))
                    + "; the recording ends here"))
    }

    /// Replaces the first bytes of the file; what they say stays true of a file that failed.
    func rewriteBeginning(_ bytes: [UInt8]) {
        guard !hasFailed.withLock(\.self) else { return }
        unsafe bytes.withUnsafeBytes { bytes in
            _ = unsafe pwrite(descriptor, bytes.baseAddress, bytes.count, 0)
        }
    }

    /// Makes the file shorter; never longer.
    func truncate(to length: Int) {
        var info = stat()
        guard unsafe fstat(descriptor, &info) == 0, Int(info.st_size) > length else { return }
        _ = ftruncate(descriptor, off_t(length))
    }

    func close() { _ = Glibc.close(descriptor) }
}
