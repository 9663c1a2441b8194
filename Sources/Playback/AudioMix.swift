public import TuttiTiming

/// How loud the tracks of an item are, over item time.
///
/// Each track has a row of volumes, set at a time or ramped over a range, and the item as a whole
/// has one too (`nil` for the track); both are multiplied. Until the first time in a row its volume
/// is 1; between ramps the last volume holds. Ramps are linear in amplitude. A volume that is set
/// is in force from its frame on: in the middle of a sound that is a click, which a ramp of some
/// milliseconds is not.
///
/// Times become frames when the item is read, each the nearest, and every frame has a volume of its
/// own: there are no steps within a ramp.
public struct AudioMix: Equatable, Sendable {
    /// Linear; 16 is +24 dB. More would only distort, here or further on.
    public static let volumes: ClosedRange<Float> = 0...16
    /// Of one track; more would be a mistake.
    public static let eventLimit = 65_536

    /// From a time on, a volume; until then from another one, if the range is not empty.
    struct Event: Equatable, Sendable {
        var range: TimeRange
        var from: Float
        var to: Float

        /// Whether one would be in force within the other. Ranges that touch do not overlap, and a
        /// ramp may begin where a volume was set.
        fileprivate func overlaps(_ other: Event) -> Bool {
            range.start < other.range.end && other.range.start < range.end
        }

        /// By time; where a ramp begins, the volume that was set there comes first.
        fileprivate func isBefore(_ other: Event) -> Bool {
            range.start == other.range.start
                ? range.isEmpty && !other.range.isEmpty : range.start < other.range.start
        }
    }

    /// By time; the whole item's under `nil`.
    private(set) var events: [Int?: [Event]] = [:]

    /// Everything as loud as it is.
    public init() {}

    /// Makes a track as loud as `volume` from a time on, until another volume follows; replaces
    /// what was set at that very time.
    ///
    /// - Parameters:
    ///   - volume: linear, of ``volumes``; 1 is as it is.
    ///   - time: of the item, not negative.
    ///   - track: `nil`: the whole item.
    /// - Throws: ``PlaybackError/Code/volumeNotSupported``, ``PlaybackError/Code/timeNotNumeric``,
    ///   ``PlaybackError/Code/rangeNotValid``, ``PlaybackError/Code/tooLarge``, and
    ///   ``PlaybackError/Code/volumesOverlap`` within a ramp; nothing has changed then.
    public mutating func setVolume(
        _ volume: Float, at time: MediaTime, track: Int? = nil
    ) throws(PlaybackError) {
        guard time.isNumeric else {
            throw PlaybackError(
                .timeNotNumeric, "no volume can be set at \(time): give a number of seconds")
        }
        try add(
            Event(range: TimeRange(start: time, duration: .zero), from: volume, to: volume),
            track: track)
    }

    /// Leads the volume of a track from one value to another, linearly in amplitude; the second
    /// holds from the end of the range on.
    ///
    /// - Parameters:
    ///   - from, to: linear, of ``volumes``.
    ///   - range: of item time; not empty.
    ///   - track: `nil`: the whole item.
    /// - Throws: as ``setVolume(_:at:track:)``.
    public mutating func setVolumeRamp(
        from: Float, to: Float, over range: TimeRange, track: Int? = nil
    ) throws(PlaybackError) {
        guard range.isValid, range.start.isNumeric, range.duration.isNumeric, !range.isEmpty else {
            throw PlaybackError(
                .rangeNotValid,
                "a volume cannot be ramped over \(range): give a start and a duration above zero")
        }
        try add(Event(range: range, from: from, to: to), track: track)
    }

    private mutating func add(_ event: Event, track: Int?) throws(PlaybackError) {
        for volume in [event.from, event.to] where !Self.volumes.contains(volume) {
            let (low, high) = (Self.volumes.lowerBound, Self.volumes.upperBound)
            throw PlaybackError(
                .volumeNotSupported, "a volume cannot be \(volume): give \(low) to \(high)")
        }
        guard event.range.start >= .zero, event.range.end.isNumeric else {
            throw PlaybackError(
                .rangeNotValid, "volumes over \(event.range) are not within an item")
        }
        var row = events[track, default: []]
        let place = row.partitioningIndex { !$0.isBefore(event) }
        if event.range.isEmpty, place < row.count, row[place].range == event.range {
            row[place] = event
        } else {
            try Self.check(event, against: row[max(0, place - 1)..<min(row.count, place + 1)])
            guard row.count < Self.eventLimit else {
                throw PlaybackError(
                    .tooLarge, "a track has at most \(Self.eventLimit) volumes")
            }
            row.insert(event, at: place)
        }
        events[track] = row
    }

    private static func check(
        _ event: Event, against neighbours: ArraySlice<Event>
    ) throws(PlaybackError) {
        if let other = neighbours.first(where: { $0.overlaps(event) }) {
            throw PlaybackError(
                .volumesOverlap,
                "a volume over \(event.range) would overlap the one over \(other.range)")
        }
    }
}

extension Array {
    /// The first index whose element, and all behind it, satisfies `isBehind`.
    fileprivate func partitioningIndex(where isBehind: (Element) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if isBehind(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
