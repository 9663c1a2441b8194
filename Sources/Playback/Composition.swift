import TuttiPlayout
public import TuttiTiming

/// An item made of ranges of assets: tracks that are heard together, each a row of segments.
///
/// A value: nothing is read while it is edited, and its duration is known from the ranges alone. It
/// is played as an ``Asset`` (`Asset(composition)`), which is of the composition as it was then.
/// Ranges join sample by sample, and what was parted and put together again is as it was, bit for
/// bit.
///
/// Times are exact; they become frames when the composition is opened, each the nearest. The rate
/// is that of the asset inserted first, unless one was given. Ranges keep their pace: there is no
/// scaling.
public struct Composition: Sendable {
    /// 31 years: frames of it, at any rate, are counted without overflow.
    public static let longest = MediaTime(value: 1_000_000_000, timescale: 1)
    /// A track that sounds has a source open.
    public static let trackLimit = 32
    /// Editing takes time for each; more would be a mistake.
    public static let segmentLimit = 65_536

    /// A stretch of a track.
    struct Segment: Sendable {
        enum Content: Sendable {
            case silence
            /// From a time of the asset on.
            case asset(Asset, from: MediaTime)
        }
        var content: Content
        var duration: MediaTime
    }

    /// Segments one after the other from time zero on.
    struct Track: Sendable {
        private(set) var segments: [Segment] = []
        /// The sum of the segments', in their order.
        private(set) var duration = MediaTime.zero
    }

    /// Frames per second; `nil`: those of ``firstAsset``.
    let sampleRate: Int?
    /// The asset that was inserted first, whether or not it still is part of it.
    private(set) var firstAsset: Asset?
    private(set) var rows = [Track()]

    /// An empty composition of one track, which has the number 0.
    public init() { sampleRate = nil }

    /// The same, with a rate that does not depend on what is inserted.
    ///
    /// - Parameter sampleRate: frames per second, 1 to 768 000.
    /// - Throws: ``PlaybackError/Code/sampleRateNotSupported``.
    public init(sampleRate: Int) throws(PlaybackError) {
        guard ResampledReader.rates.contains(sampleRate) else {
            throw PlaybackError(
                .sampleRateNotSupported,
                "a composition cannot have \(sampleRate) frames per second: give 1 to 768000")
        }
        self.sampleRate = sampleRate
    }

    /// Numbers of the tracks, 0 and up: what an ``AudioMix`` calls them by.
    public var tracks: Range<Int> { rows.indices }

    /// Of the longest track.
    public var duration: MediaTime { rows.map(\.duration).max() ?? .zero }

    /// Adds a track, empty, that is heard together with the others.
    ///
    /// - Returns: its number.
    /// - Throws: ``PlaybackError/Code/tooLarge``.
    public mutating func addTrack() throws(PlaybackError) -> Int {
        guard rows.count < Self.trackLimit else {
            throw PlaybackError(
                .tooLarge, "a composition has at most \(Self.trackLimit) tracks")
        }
        rows.append(Track())
        return rows.count - 1
    }

    /// Inserts a range of an asset into one track. What lies behind `time` there is pushed apart;
    /// up to a time behind the track's end it becomes silent.
    ///
    /// Of a range that reaches beyond the end of the asset the rest is silence: how long the asset
    /// is nobody knows before it is opened.
    ///
    /// - Parameters:
    ///   - range: of the asset's time; an empty one changes nothing.
    ///   - time: of the composition.
    /// - Throws: ``PlaybackError/Code/rangeNotValid``, ``PlaybackError/Code/timeNotNumeric``,
    ///   ``PlaybackError/Code/noSuchTrack``, ``PlaybackError/Code/tooLarge``; nothing has
    ///   changed then.
    public mutating func insert(
        _ range: TimeRange, of asset: Asset, at time: MediaTime, track: Int = 0
    ) throws(PlaybackError) {
        try check(range, of: "a range of \(asset.location)")
        try check(time)
        try check(track)
        try checkRoom(for: range.duration, at: time, in: track...track)
        guard !range.isEmpty else { return }
        let segment = Segment(
            content: .asset(asset, from: range.start), duration: range.duration)
        rows[track].insert(segment, at: time)
        if firstAsset == nil { firstAsset = asset }
    }

    /// Makes silence of a range: what lies behind its start is pushed apart, and a track that ends
    /// before it goes on until its end.
    ///
    /// - Parameter track: `nil`: in all of them.
    /// - Throws: as ``insert(_:of:at:track:)``.
    public mutating func insertEmpty(
        _ range: TimeRange, track: Int? = nil
    ) throws(PlaybackError) {
        try check(range, of: "an empty range")
        let tracks = try self.tracks(track)
        try checkRoom(for: range.duration, at: range.start, in: tracks)
        for track in tracks {
            rows[track].insert(
                Segment(content: .silence, duration: range.duration), at: range.start)
        }
    }

    /// Takes a range out; what lies behind it closes up.
    ///
    /// - Parameters:
    ///   - range: of the composition's time; may reach beyond its end.
    ///   - track: `nil`: out of all of them.
    /// - Throws: as ``insert(_:of:at:track:)``.
    public mutating func remove(_ range: TimeRange, track: Int? = nil) throws(PlaybackError) {
        try check(range, of: "a range to remove")
        var edited = rows
        for track in try tracks(track) {
            edited[track].remove(range)
            // The middle taken out of a segment makes two of it.
            guard edited[track].segments.count <= Self.segmentLimit else { throw tooMany(track) }
        }
        rows = edited
    }
}

// MARK: What is refused

extension Composition {
    private func check(_ range: TimeRange, of what: String) throws(PlaybackError) {
        guard range.isValid, range.start.isNumeric, range.duration.isNumeric else {
            throw PlaybackError(
                .rangeNotValid,
                "\(what), \(range), is no range of numbers: give a start and a finite duration")
        }
        guard range.start >= .zero, range.end <= Self.longest else {
            throw PlaybackError(
                .rangeNotValid,
                "\(what), \(range), does not lie within 0 and \(Self.longest.value) seconds")
        }
    }

    private func check(_ time: MediaTime) throws(PlaybackError) {
        guard time.isNumeric else {
            throw PlaybackError(
                .timeNotNumeric, "nothing can be inserted at \(time): give a number of seconds")
        }
        guard time >= .zero, time <= Self.longest else {
            throw PlaybackError(
                .rangeNotValid,
                "nothing can be inserted at \(time): give 0 to \(Self.longest.value) seconds")
        }
    }

    private func check(_ track: Int) throws(PlaybackError) {
        guard tracks.contains(track) else {
            throw PlaybackError(
                .noSuchTrack, "there is no track \(track): this composition has \(rows.count)")
        }
    }

    private func tracks(_ track: Int?) throws(PlaybackError) -> Range<Int> {
        guard let track else { return tracks }
        try check(track)
        return track..<track + 1
    }

    private func checkRoom(
        for duration: MediaTime, at time: MediaTime, in tracks: some Sequence<Int>
    ) throws(PlaybackError) {
        for track in tracks {
            guard max(rows[track].duration, time) + duration <= Self.longest else {
                throw PlaybackError(
                    .tooLarge,
                    "track \(track) would be longer than \(Self.longest.value) seconds")
            }
            // One for itself, one for the silence before it or because it parts another.
            guard rows[track].segments.count + 2 <= Self.segmentLimit else { throw tooMany(track) }
        }
    }

    private func tooMany(_ track: Int) -> PlaybackError {
        PlaybackError(
            .tooLarge,
            "track \(track) would have more than \(Self.segmentLimit) segments")
    }
}

// MARK: Editing a track

extension Composition.Track {
    mutating func insert(_ segment: Composition.Segment, at time: MediaTime) {
        guard segment.duration > .zero else { return }
        if time == duration {
            segments.append(segment)
            duration += segment.duration
            return
        }
        let place = split(at: time)
        segments.insert(segment, at: place)
        addUp()
    }

    mutating func remove(_ range: TimeRange) {
        guard range.start < duration, !range.isEmpty else { return }
        let first = split(at: range.start)
        let last = range.end < duration ? split(at: range.end) : segments.count
        segments.removeSubrange(first..<last)
        addUp()
    }

    /// Parts the segment at `time`; behind the end the row is filled up with silence.
    ///
    /// - Returns: the segment that begins at `time`, or would.
    private mutating func split(at time: MediaTime) -> Int {
        var begin = MediaTime.zero
        for (index, segment) in segments.enumerated() {
            if time <= begin { return index }
            let end = begin + segment.duration
            if time < end {
                let parts = segment.parted(after: time - begin)
                segments.replaceSubrange(index...index, with: [parts.0, parts.1])
                return index + 1
            }
            begin = end
        }
        if time > begin {
            segments.append(Composition.Segment(content: .silence, duration: time - begin))
        }
        return segments.count
    }

    private mutating func addUp() {
        duration = segments.reduce(.zero) { $0 + $1.duration }
    }
}

extension Composition.Segment {
    fileprivate func parted(after length: MediaTime) -> (Self, Self) {
        var (first, second) = (self, self)
        first.duration = length
        second.duration = duration - length
        if case .asset(let asset, let start) = content {
            second.content = .asset(asset, from: start + length)
        }
        return (first, second)
    }
}

// MARK: Playing

extension Composition {
    fileprivate var isLocal: Bool {
        rows.lazy.flatMap(\.segments).allSatisfy { segment in
            if case .asset(let asset, _) = segment.content { asset.isLocal } else { true }
        }
    }
}

extension Asset {
    /// A composition as it is now, as one asset: later edits change nothing.
    ///
    /// - Parameter location: what it is called where it fails; nothing is looked for there.
    public convenience init(_ composition: Composition, location: String = "composition") {
        self.init(
            location: location,
            opener: MediaOpener(cancellableTracks: { _, track, cancellation throws(MediaError) in
                try ComposedSource(composition, track: track, cancellation: cancellation)
            }), isLocal: composition.isLocal)
    }
}
