public import TuttiPlayout
import TuttiTiming

/// A composition as a source of frames: its tracks added up.
///
/// Every frame is a function of its number alone: what is read after a seek is, bit for bit, what
/// is read in one go. Assets of other sample rates are converted (`ResampledReader`). Sources are
/// opened when a read reaches them; no more than one for each track and two besides are open at a
/// time. An asset that cannot be opened or read fails where it begins: what lies before it is read.
///
/// Use from one thread at a time.
public final class ComposedSource: MediaSource {
    public let format: MediaFormat
    /// The tracks one by one, for a mix with volumes. They share sources with this: read from the
    /// same thread.
    public let inputs: [MixedReader.Input]
    /// The same as an item has them.
    public let tracks: [MediaTrack]
    /// `nil`: all of them.
    public let track: Int?
    private let sum: MixedReader
    private var position: Int64 = 0

    /// Reads nothing, except where the composition has the rate of its first asset: that is opened.
    ///
    /// - Parameters:
    ///   - composition: as it is now; later edits change nothing.
    ///   - track: one of its tracks alone; `nil`: all of them.
    ///   - cancellation: ends reads that wait for one of its assets.
    /// - Throws: where there is no such track, and where there is no rate, because nothing was inserted or that asset cannot be
    ///   opened.
    public init(
        _ composition: Composition, track: Int? = nil,
        cancellation: MediaCancellation = MediaCancellation()
    ) throws(MediaError) {
        guard track.map(composition.rows.indices.contains) ?? true else {
            throw MediaError(
                .unsupported, operation: "open", subject: "composition",
                reason: "has \(composition.rows.count) tracks, and none of number \(track ?? 0)")
        }
        let shelf = SourceShelf(
            trackCount: composition.rows.count, cancellation: cancellation)
        let sampleRate = try Self.sampleRate(of: composition, shelf)
        let tracks = composition.rows.enumerated().map { number, row in
            ComposedTrack(row, number: number, sampleRate: sampleRate, shelf: shelf)
        }
        inputs = tracks.enumerated().map { MixedReader.Input(reader: $1, trackID: $0) }
        sum = MixedReader(
            inputs.filter { $0.trackID == track ?? $0.trackID }, mix: AudioMix(),
            sampleRate: sampleRate)
        self.track = track
        self.tracks = tracks.indices.map {
            MediaTrack(
                id: $0, kind: .audio, codec: "composition", characteristics: [.audible],
                isDefault: true, sampleRate: sampleRate, channelCount: 2)
        }
        format = MediaFormat(
            sampleRate: sampleRate, channelCount: 2,
            frameCount: tracks.map(\.frameCount).max() ?? 0)
    }

    private static func sampleRate(
        of composition: Composition, _ shelf: SourceShelf
    ) throws(MediaError) -> Int {
        if let rate = composition.sampleRate { return rate }
        guard let asset = composition.firstAsset else {
            throw MediaError(
                .noAudio, operation: "open", subject: "composition",
                reason: "has no asset and no sample rate: insert one, or give the rate")
        }
        // The one that is most probably read first.
        do throws(MediaError) {
            return try shelf.source(of: asset, track: 0).format.sampleRate
        } catch {
            throw MediaError(
                error.code, operation: error.operation, subject: error.subject,
                reason: "\(error.reason) (the composition would have its sample rate)")
        }
    }

    public func seek(toFrame frame: Int64) throws(MediaError) {
        position = min(max(0, frame), format.frameCount ?? 0)
    }

    public func read(into buffer: UnsafeMutableBufferPointer<Float>) throws(MediaError) -> Int {
        let count = try sum.read(at: position, into: buffer)
        position += Int64(count)
        return count
    }
}
