import TuttiPlayout
import TuttiTiming

/// The sources that a composition has open: the last used ones, and no more.
///
/// A composition may be made of hundreds of files. One is opened when a read first reaches it, on
/// the decoding queue and thus as far before it is heard as the feed decodes ahead; the one that
/// was not used for longest is closed for it, but no track's last: it is about to go on. Each track
/// has sources of its own, also of the same asset: sharing one would be a seek for each read.
///
/// Confined to one thread.
final class SourceShelf {
    /// Kept open besides one for each track: going back and forth between two assets, or over a
    /// join that was just passed, opens nothing.
    static let spare = 2

    private struct Place {
        var asset: Asset
        var track: Int
        var source: OpenSource
    }

    private let capacity: Int
    /// The one used last at the end.
    private var places: [Place] = []

    /// Ends what its sources wait for.
    private let cancellation: MediaCancellation

    init(trackCount: Int, cancellation: MediaCancellation) {
        capacity = trackCount + Self.spare
        self.cancellation = cancellation
    }

    /// The open source of an asset for a track; opens it where there is none.
    func source(of asset: Asset, track: Int) throws(MediaError) -> OpenSource {
        if let index = places.firstIndex(where: { $0.asset === asset && $0.track == track }) {
            let place = places.remove(at: index)
            places.append(place)
            return place.source
        }
        // Closed first: the bound holds while it is opened, too.
        if places.count == capacity { places.remove(at: oldest) }
        let source = OpenSource(try asset.opener.open(asset.location, cancellation: cancellation))
        guard ResampledReader.rates.contains(source.format.sampleRate) else {
            throw MediaError(
                .damaged, operation: "open", subject: asset.location,
                reason: "says that it has \(source.format.sampleRate) frames per second")
        }
        places.append(Place(asset: asset, track: track, source: source))
        return source
    }

    /// The one that was used before all others, of those whose track has another. There is one: a
    /// full shelf has more places than there are tracks.
    private var oldest: Int {
        places.indices.first { index in
            places[(index + 1)...].contains { $0.track == places[index].track }
        } ?? 0
    }
}

/// A source and where it stands.
final class OpenSource: FrameReader {
    let format: MediaFormat
    private let source: any MediaSource
    /// `nil` after a failure: only a seek helps.
    private var position: Int64? = 0
    /// The first frame that is known not to be there.
    private var end: Int64?
    private var converted: Converted?

    /// Converts to one rate from one frame on; goes when the source is closed.
    private struct Converted {
        var rate: Int
        var origin: Int64
        var reader: ResampledReader
    }

    init(_ source: any MediaSource) {
        self.source = source
        format = source.format
        end = format.frameCount
    }

    func read(
        at frame: Int64, into buffer: UnsafeMutableBufferPointer<Float>
    ) throws(MediaError) -> Int {
        if let end, frame >= end { return 0 }
        if frame != position {
            position = nil
            try source.seek(toFrame: frame)
        }
        position = nil
        let count = try source.read(into: buffer)
        position = frame.adding(saturating: Int64(count))
        if count == 0, buffer.count >= 2 { end = frame }
        return count
    }

    /// Frame `frame` of the source converted to `rate`, where `origin` of its own is frame 0.
    func read(
        at frame: Int64, convertedTo rate: Int, from origin: Int64,
        into buffer: UnsafeMutableBufferPointer<Float>
    ) throws(MediaError) -> Int {
        if rate == format.sampleRate {
            return try read(at: origin.adding(saturating: frame), into: buffer)
        }
        if let converted, converted.rate == rate, converted.origin == origin {
            return try converted.reader.read(at: frame, into: buffer)
        }
        // A reader keeps what it reads from: without a link back to this, which keeps it.
        let reader = ResampledReader(
            of: Unowned(self), inputRate: format.sampleRate, outputRate: rate, origin: origin)
        converted = Converted(rate: rate, origin: origin, reader: reader)
        return try reader.read(at: frame, into: buffer)
    }

    private final class Unowned: FrameReader {
        private unowned let source: OpenSource

        init(_ source: OpenSource) { self.source = source }

        func read(
            at frame: Int64, into buffer: UnsafeMutableBufferPointer<Float>
        ) throws(MediaError) -> Int {
            try source.read(at: frame, into: buffer)
        }
    }
}
