public import TuttiPlayout
import TuttiTiming

/// Tracks of an item added up, each as loud as an ``AudioMix`` says.
///
/// Each frame has a volume of its own, which depends on its number only; what was sought sounds as
/// what was played until there. The sum may exceed full scale: it is clipped, if at all, where it
/// leaves for the card. One track that is as loud as it is costs nothing, and is left as it is to
/// the last bit.
///
/// Use from one thread at a time.
public final class MixedReader: FrameReader {
    /// A track with its number in the mix.
    public struct Input {
        /// Where the track's frames come from: its frame 0 is the mix's.
        public var reader: any FrameReader
        /// By which an ``AudioMix`` names it.
        public var trackID: Int

        /// A track under the number by which a mix names it.
        public init(reader: any FrameReader, trackID: Int) {
            self.reader = reader
            self.trackID = trackID
        }
    }

    /// How long it takes another mix to be in force: shorter clicks, longer is heard to lag.
    public static let changeSeconds = 0.005
    /// Frames that are mixed at once, as many as a feed decodes.
    static let chunkFrames = 4_096

    private final class Track {
        let input: Input
        var curve: GainCurve
        /// How loud it was when the mix was changed.
        var held = 1.0
        /// Where it was found to end: beyond that it is not asked again.
        var end: Int64?

        init(_ input: Input, curve: GainCurve) { (self.input, self.curve) = (input, curve) }
    }

    /// What is in force, or comes into force with the next frames that are read.
    public private(set) var mix: AudioMix
    private let sampleRate: Int
    private let tracks: [Track]
    private var whole: GainCurve
    /// Where the last read ended.
    private var next: Int64?
    private var change: Change?
    private var scratch: [Float] = []
    private var gains: [Double] = []

    /// The mix was changed: its first frame, once that has been read.
    private struct Change { var start: Int64? }

    /// - Parameters:
    ///   - inputs: of one sample rate; those of one number are equally loud. The first that fails
    ///     decides where reading ends.
    ///   - sampleRate: frames per second of item time.
    public init(_ inputs: [Input], mix: AudioMix = AudioMix(), sampleRate: Int) {
        self.mix = mix
        self.sampleRate = sampleRate
        tracks = inputs.map {
            Track($0, curve: GainCurve(mix, track: $0.trackID, sampleRate: sampleRate))
        }
        whole = GainCurve(mix, track: nil, sampleRate: sampleRate)
    }

    /// Another mix from the next frame on that is read, reached within ``changeSeconds``.
    public func setMix(_ mix: AudioMix) {
        guard mix != self.mix else { return }
        if let next {
            let last = next.subtracting(saturating: 1)
            for track in tracks { track.held = gain(of: track, at: last) }
            change = Change()
        }
        self.mix = mix
        for track in tracks {
            track.curve = GainCurve(mix, track: track.input.trackID, sampleRate: sampleRate)
        }
        whole = GainCurve(mix, track: nil, sampleRate: sampleRate)
    }

    /// - Returns: frames written; 0 where all tracks have ended.
    public func read(
        at frame: Int64, into buffer: UnsafeMutableBufferPointer<Float>
    ) throws(MediaError) -> Int {
        proceed(to: frame)
        let wanted = min(buffer.count / 2, Self.chunkFrames)
        let count =
            if tracks.count == 1, isAsItIs(at: frame, buffer.count / 2) {
                try tracks[0].input.reader.read(at: frame, into: buffer)
            } else if tracks.count == 1 {
                try readOne(at: frame, into: buffer, wanted)
            } else {
                try readAll(at: frame, into: buffer, wanted)
            }
        next = frame.adding(saturating: Int64(count))
        return count
    }

    /// Whether the first track is neither louder nor quieter in these frames.
    private func isAsItIs(at frame: Int64, _ count: Int) -> Bool {
        let frames = frame..<frame.adding(saturating: Int64(count))
        return change == nil && constantGain(of: tracks[0], over: frames) == 1
    }

    /// A change of the mix ends in time, and where reading goes on elsewhere.
    private func proceed(to frame: Int64) {
        guard let start = change?.start else {
            if change != nil { change = Change(start: frame) }
            return
        }
        if frame != next || frame - start >= changeFrames { change = nil }
    }

    private var changeFrames: Int64 {
        max(1, Int64(saturating: Double(sampleRate) * Self.changeSeconds))
    }
}

// MARK: Reading

extension MixedReader {
    private func readOne(
        at frame: Int64, into buffer: UnsafeMutableBufferPointer<Float>, _ wanted: Int
    ) throws(MediaError) -> Int {
        let part = UnsafeMutableBufferPointer(rebasing: buffer[..<(2 * wanted)])
        let count = try tracks[0].input.reader.read(at: frame, into: part)
        apply(tracks[0], to: UnsafeMutableBufferPointer(rebasing: part[..<(2 * count)]), at: frame)
        return count
    }

    private func readAll(
        at frame: Int64, into buffer: UnsafeMutableBufferPointer<Float>, _ wanted: Int
    ) throws(MediaError) -> Int {
        if scratch.count < 2 * wanted {
            scratch = [Float](repeating: 0, count: 2 * wanted)
        }
        var (longest, limit) = (0, wanted)
        for track in tracks where limit > 0 {
            let (done, bound) = (longest, limit)
            let (count, failure) = scratch.withUnsafeMutableBufferPointer { scratch in
                let part = UnsafeMutableBufferPointer(rebasing: scratch[..<(2 * bound)])
                let (count, failure) = fill(part, from: track, at: frame)
                let new = UnsafeMutableBufferPointer(rebasing: scratch[..<(2 * count)])
                apply(track, to: new, at: frame)
                for i in 0..<2 * count {
                    buffer[i] = i < 2 * done ? buffer[i] + new[i] : new[i]
                }
                return (count, failure)
            }
            longest = max(longest, count)
            guard let failure else { continue }
            // What lies before the place that cannot be read is read; the next read is refused.
            guard count > 0 else { throw failure }
            limit = count
        }
        return min(longest, limit)
    }

    /// As many frames as there are, up to a failure.
    private func fill(
        _ buffer: UnsafeMutableBufferPointer<Float>, from track: Track, at frame: Int64
    ) -> (count: Int, failure: MediaError?) {
        var count = 0
        while 2 * count < buffer.count {
            let place = frame.adding(saturating: Int64(count))
            if let end = track.end, place >= end { break }
            do throws(MediaError) {
                let read = try track.input.reader.read(
                    at: place, into: UnsafeMutableBufferPointer(rebasing: buffer[(2 * count)...]))
                if read == 0 { track.end = place }
                count += read
            } catch {
                return (count, error)
            }
        }
        return (count, nil)
    }
}

// MARK: Volume

extension MixedReader {
    private func apply(
        _ track: Track, to samples: UnsafeMutableBufferPointer<Float>, at frame: Int64
    ) {
        let count = samples.count / 2
        let frames = frame..<frame.adding(saturating: Int64(count))
        if change == nil, let gain = constantGain(of: track, over: frames) {
            if gain != 1 { for i in samples.indices { samples[i] *= Float(gain) } }
            return
        }
        gains.removeAll(keepingCapacity: true)
        gains.append(contentsOf: repeatElement(1, count: count))
        whole.multiply(&gains, from: frame)
        track.curve.multiply(&gains, from: frame)
        for k in 0..<count {
            let gain = Float(changed(gains[k], of: track, at: frame.adding(saturating: Int64(k))))
            samples[2 * k] *= gain
            samples[2 * k + 1] *= gain
        }
    }

    private func constantGain(of track: Track, over frames: Range<Int64>) -> Double? {
        guard let one = track.curve.constant(over: frames), let all = whole.constant(over: frames)
        else { return nil }
        return one * all
    }

    private func gain(of track: Track, at frame: Int64) -> Double {
        changed(whole.value(at: frame) * track.curve.value(at: frame), of: track, at: frame)
    }

    /// A gain of the mix, while that takes the place of the one before.
    private func changed(_ gain: Double, of track: Track, at frame: Int64) -> Double {
        guard let start = change?.start, frame >= start, frame - start < changeFrames else {
            return gain
        }
        return track.held + (gain - track.held) * Double(frame - start) / Double(changeFrames)
    }
}
