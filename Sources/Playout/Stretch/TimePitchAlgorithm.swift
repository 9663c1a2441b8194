/// How an item is played at another rate than its own.
public enum TimePitchAlgorithm: String, Sendable, CaseIterable {
    /// As a record does: the pitch goes with the rate.
    case varispeed
    /// The pitch stays; grains of 48 ms are laid where they continue each other. For speech, and
    /// for music at 0.5…2: what is sharp stays sharp, and many voices at once become rough.
    case timeDomain
    /// The pitch stays; each partial is continued by itself. For music: chords stay smooth, and
    /// what is sharp is softened.
    case spectral
}
