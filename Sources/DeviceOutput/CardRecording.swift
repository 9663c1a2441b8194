import Glibc
public import TuttiPlayout
public import TuttiTiming

/// What left a virtual card, and when: reads back what `virtual:record=PATH` has written.
///
/// Frames are counted from the first that ever left the card. A card that ran dry leaves a gap in
/// time but not in frames: ``segments`` are the stretches in between, and ``instant(ofFrame:)`` is
/// piecewise linear, and exact to a nanosecond, in each.
public struct CardRecording: Sendable {
    /// Nominal frames per second.
    public let sampleRate: Int
    /// Channels of a frame, at least 1.
    public let channelCount: Int
    /// Interleaved, `frameCount × channelCount`.
    public let samples: [Float]
    /// Stretches of sound in their order; empty where nothing was heard.
    public let segments: [Segment]
    /// Times the card ran dry.
    public let underruns: Int
    /// Frames that the recorder replaced by zeros because the disk was too slow.
    public let lostFrames: Int

    /// Frames that left the card while it was recorded.
    public var frameCount: Int { samples.count / channelCount }

    /// A stretch of uninterrupted sound.
    public struct Segment: Sendable {
        /// The first frame, and one behind the last.
        public var frames: Range<Double>
        /// Whether it ended because the card ran dry.
        public var ranDry: Bool
        var knots: [Knot]

        /// When its last frame left.
        public var end: LocalInstant { knots[knots.count - 1].instant }
    }

    /// Between two knots the card's rate is constant.
    struct Knot: Sendable {
        var frame: Double
        var instant: LocalInstant
        /// Part of a nanosecond, 0..<1.
        var fraction: Double
    }

    /// - Parameter path: as given to `record=`, without `.f32` or `.times`.
    /// - Throws: when a file is missing or not a recording; says which line.
    public static func load(path: String) throws(OutputError) -> CardRecording {
        let times = try contents(of: path + ".times")
        let data = try contents(of: path + ".f32")
        return try CardRecording(
            times: String(decoding: times, as: UTF8.self), data: data, path: path)
    }

    init(times: String, data: [UInt8], path: String) throws(OutputError) {
        func bad(_ line: Substring) -> OutputError {
            OutputError(
                operation: "load", code: 0, device: path + ".times",
                reason: "“\(line)” is not a line of a card recording")
        }
        let lines = times.split(separator: "\n")
        guard let header = lines.first, header.hasPrefix("TUTTI-CARD 1 "),
            let rate = Self.value("rate", in: header).flatMap({ Int($0) }), rate > 0,
            let channels = Self.value("channels", in: header).flatMap({ Int($0) }), channels > 0
        else { throw bad(lines.first ?? "") }

        var segments: [(knots: [Knot], ranDry: Bool)] = []
        var (underruns, lost, isInside) = (0, 0, false)
        for line in lines.dropFirst() {
            let kind = line.prefix { $0 != " " }
            if kind == "LOST" {
                guard let count = Self.value("frames", in: line).flatMap({ Int($0) }) else {
                    throw bad(line)
                }
                lost = count
                continue
            }
            guard let knot = Self.knot(in: line) else { throw bad(line) }
            switch kind {
            case "START" where !isInside:
                segments.append(([knot], false))
                isInside = true
            case "ANCHOR" where isInside:
                segments[segments.count - 1].knots.append(knot)
            case "UNDERRUN" where isInside, "END" where isInside:
                segments[segments.count - 1].knots.append(knot)
                isInside = false
                segments[segments.count - 1].ranDry = kind == "UNDERRUN"
                underruns += kind == "UNDERRUN" ? 1 : 0
            default: throw bad(line)
            }
        }
        sampleRate = rate
        channelCount = channels
        self.underruns = underruns
        lostFrames = lost
        self.segments = segments.compactMap { knots, ranDry in
            guard let first = knots.first, let last = knots.last, last.frame > first.frame else {
                return nil
            }
            return Segment(frames: first.frame..<last.frame, ranDry: ranDry, knots: knots)
        }
        samples = Self.floats(data, channelCount: channels)
    }

    /// When a frame left the card.
    ///
    /// - Parameter frame: may be fractional.
    /// - Returns: `nil` outside of all segments.
    public func instant(ofFrame frame: Double) -> LocalInstant? {
        guard let (a, b) = interval(containing: { $0.frame <= frame }, in: segment(of: frame))
        else { return nil }
        let span = Double((b.instant - a.instant).count) + b.fraction - a.fraction
        let elapsed = (frame - a.frame) / (b.frame - a.frame) * span
        return a.instant + Nanoseconds(Int64(saturating: elapsed + a.fraction))
    }

    /// The frame that left the card at an instant, with its fraction; `nil` while it stood still.
    public func frame(at instant: LocalInstant) -> Double? {
        let segment = segments.first {
            $0.knots[0].instant <= instant && instant <= $0.knots[$0.knots.count - 1].instant
        }
        guard let (a, b) = interval(containing: { $0.instant <= instant }, in: segment) else {
            return nil
        }
        let span = Double((b.instant - a.instant).count) + b.fraction - a.fraction
        let elapsed = Double((instant - a.instant).count) - a.fraction
        return a.frame + elapsed / span * (b.frame - a.frame)
    }

    private func segment(of frame: Double) -> Segment? {
        segments.first { $0.frames.contains(frame) || $0.frames.upperBound == frame }
    }

    /// The two knots around a place; `isBefore` holds for all knots up to it.
    private func interval(
        containing isBefore: (Knot) -> Bool, in segment: Segment?
    ) -> (Knot, Knot)? {
        guard let knots = segment?.knots, knots.count >= 2 else { return nil }
        var low = 0
        var high = knots.count - 1
        while high - low > 1 {
            let middle = (low + high) / 2
            if isBefore(knots[middle]) { low = middle } else { high = middle }
        }
        return knots[high].frame > knots[low].frame ? (knots[low], knots[high]) : nil
    }

    // MARK: - Text

    /// The text behind `key=`, up to the next blank.
    private static func value(_ key: String, in line: Substring) -> Substring? {
        for part in line.split(separator: " ") where part.hasPrefix(key + "=") {
            return part.dropFirst(key.count + 1)
        }
        return nil
    }

    private static func knot(in line: Substring) -> Knot? {
        guard let frame = value("frame", in: line).flatMap({ Double($0) }), frame.isFinite,
            let time = value("raw_ns", in: line)?.split(separator: "."), time.count == 2,
            let nanoseconds = Int64(time[0]), let thousandths = Int(time[1])
        else { return nil }
        return Knot(
            frame: frame, instant: LocalInstant(nanoseconds: nanoseconds),
            fraction: Double(thousandths) / 1000)
    }

    /// Whole frames only: the file of a process that was killed may end anywhere.
    private static func floats(_ data: [UInt8], channelCount: Int) -> [Float] {
        let count = data.count / (4 * channelCount) * channelCount
        return unsafe data.withUnsafeBytes { bytes in
            (0..<count).map { i in
                let bits = unsafe bytes.loadUnaligned(fromByteOffset: 4 * i, as: UInt32.self)
                return Float(bitPattern: UInt32(littleEndian: bits))
            }
        }
    }

    private static func contents(of path: String) throws(OutputError) -> [UInt8] {
        func failure(_ operation: String) -> OutputError {
            let code = errno
            return OutputError(
                operation: operation, code: code, device: path,
                reason: unsafe String(cString: strerror(code)))
        }
        let descriptor = unsafe open(path.cFileName, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure("open") }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 1 << 20)
        while true {
            let count = unsafe read(descriptor, &block, block.count)
            if count < 0 { throw failure("read") }
            if count == 0 { return bytes }
            bytes += block[..<count]
        }
    }
}
