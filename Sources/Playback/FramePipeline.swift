import TuttiPlayout
import TuttiTiming

/// The way from an item's sources to the frames of a voice, two channels wide:
///
///     tracks ──► one rate ──► mix ──► tap ──► another pace, or backwards ──► voice
///
/// The sources are lent to it for as long as it reads. Confined to the feed that owns it.
final class FramePipeline {
    /// One track, by whichever cursor is lent at the time.
    private final class LentReader: FrameReader {
        var cursor: SourcePool.Cursor?

        func read(
            at frame: Int64, into buffer: UnsafeMutableBufferPointer<Float>
        ) throws(MediaError) -> Int {
            guard let cursor else { preconditionFailure("nothing was lent") }
            return try cursor.read(at: frame, into: buffer)
        }
    }

    /// What is read from.
    let choices: [MediaOpener.Choice]
    /// How the frames that it reads lie on those of the item, by what makes them.
    let map: FrameMap
    /// One for each of ``choices``.
    private let lent: [LentReader]
    private let reader: any FrameReader

    init(
        _ recipe: FeedRecipe, _ format: MediaFormat, _ selection: ItemSelection, mix: AudioMix?,
        tap: TapAttachment?, channels: ChannelPair?
    ) {
        let tracks = recipe.tracks?.map { $0 == selection.preset ? nil : $0 } ?? [nil]
        choices = tracks.map { MediaOpener.Choice(track: $0, channels: channels) }
        lent = tracks.map { _ in LentReader() }
        let inputs = zip(tracks, lent).map { track, lent in
            MixedReader.Input(
                reader: Self.atOneRate(lent, track, format, selection),
                trackID: track ?? selection.preset ?? 0)
        }
        var reader: any FrameReader =
            if let only = inputs.first, inputs.count == 1, mix == nil {
                only.reader
            } else {
                MixedReader(inputs, mix: mix ?? AudioMix(), sampleRate: format.sampleRate)
            }
        if recipe.tracks != nil, let count = format.frameCount {
            reader = FittedReader(reader, frameCount: count)
        }
        if let tap { reader = TappedReader(reader, attachment: tap) }
        let transform = recipe.algorithm.flatMap {
            FrameTransforms.make(
                rate: recipe.rate, algorithm: $0, sampleRate: format.sampleRate,
                frameCount: format.frameCount, reader: reader)
        }
        self.reader = transform ?? reader
        map = transform?.map ?? .identity
    }

    /// Item time counts frames of the default track; others may have more or fewer of them.
    private static func atOneRate(
        _ reader: LentReader, _ track: Int?, _ format: MediaFormat, _ selection: ItemSelection
    ) -> any FrameReader {
        let rate = selection.tracks.first { $0.id == track }?.sampleRate ?? format.sampleRate
        guard rate != format.sampleRate, ResampledReader.rates.contains(rate) else { return reader }
        return ResampledReader(of: reader, inputRate: rate, outputRate: format.sampleRate)
    }

    /// Reads frames of the voice; see `FrameReader`.
    func read(
        at frame: Int64, from cursors: [SourcePool.Cursor],
        into buffer: UnsafeMutableBufferPointer<Float>
    ) throws(MediaError) -> Int {
        for (reader, cursor) in zip(lent, cursors) { reader.cursor = cursor }
        defer { for reader in lent { reader.cursor = nil } }
        return try reader.read(at: frame, into: buffer)
    }
}

/// As many frames as the item has, whatever its tracks have: what is missing is silent.
private final class FittedReader: FrameReader {
    private let reader: any FrameReader
    private let frameCount: Int64

    init(_ reader: any FrameReader, frameCount: Int64) {
        (self.reader, self.frameCount) = (reader, frameCount)
    }

    func read(
        at frame: Int64, into buffer: UnsafeMutableBufferPointer<Float>
    ) throws(MediaError) -> Int {
        let room = Int(
            max(0, min(Int64(buffer.count / 2), frameCount.subtracting(saturating: frame))))
        guard room > 0 else { return 0 }
        let part = UnsafeMutableBufferPointer(rebasing: buffer[..<(2 * room)])
        let count = try reader.read(at: frame, into: part)
        if count > 0 { return count }
        part.update(repeating: 0)
        return room
    }
}
