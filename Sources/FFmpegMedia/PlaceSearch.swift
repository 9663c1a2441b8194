/// Where to look next for a packet that begins shortly before a frame, in a file whose packets are
/// found by reading them: by secants, kept within what is known.
///
/// Each look tells at which frame the first packet behind a byte begins. What packets say may be
/// nonsense; a guess is within the file all the same.
struct PlaceSearch: Sendable {
    private typealias Look = (frame: Int64, byte: Int64)

    /// Frames before the place that are aimed at, and that will do.
    private let margin: Double
    private let reach: Int64
    private let wanted: Int64
    private var low: Look
    private var high: Look
    private var last: Look
    /// Bytes a frame, between the last two looks.
    private var density: Double

    /// - Parameters:
    ///   - wanted: the packet is to begin there, or up to half a second before.
    ///   - firstByte: of the packet of frame 0.
    ///   - end: frames, and bytes, of the whole file.
    /// - Returns: `nil` when there is nothing between.
    init?(of wanted: Int64, firstByte: Int64, end: (frame: Int64, byte: Int64), sampleRate: Int) {
        guard end.frame > 0, firstByte < end.byte else { return nil }
        self.wanted = wanted
        margin = Double(sampleRate) / 5
        reach = Int64(sampleRate / 2)
        low = (0, firstByte)
        high = end
        last = low
        density = Double(end.byte - firstByte) / Double(end.frame)
    }

    /// The next byte to look at; `nil` when what the looks said leaves none.
    var next: Int64? {
        guard low.byte < high.byte else { return nil }
        let aim = Double(wanted - last.frame) - margin
        let guess = Double(last.byte) + aim * density
        return Int64(min(max(guess, Double(low.byte)), Double(high.byte - 1)))
    }

    /// The first packet behind `byte` begins at `frame`.
    ///
    /// - Returns: whether that will do.
    mutating func take(frame: Int64, at byte: Int64) -> Bool {
        if frame <= wanted, wanted - frame <= reach { return true }
        if frame != last.frame {
            let secant = Double(byte - last.byte) / Double(frame - last.frame)
            if secant > 0 { density = secant }
        }
        last = (frame, byte)
        if frame > wanted { high = last } else { low = last }
        return false
    }
}
