/// A way to read the samples besides the envelope, which all rests on: what `tutti simulate clocks
/// --without` withholds, to show what it earns.
public enum ReadingKind: String, CaseIterable, Sendable {
    /// Averages over several spans: ``TrackingFit``.
    case averages
    /// Lines through the floors of many blocks: ``DelayBlocks``.
    case edges
    /// Lines through the places where the delays of many blocks gather: ``ModeBlocks``.
    case gatherings
    /// All packets of a room that joins on air: ``JoiningPosterior``.
    case joining
}
