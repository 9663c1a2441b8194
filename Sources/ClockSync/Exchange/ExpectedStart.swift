/// What somebody is about to do by the group's line.
public enum ExpectedStart: Sendable {
    /// All rooms begin together, as soon as the last one is ready.
    case common
    /// Others play already.
    case joining
}
