import CTuttiLinux

/// What a thread may have of processor and disk.
public enum ThreadPriority {
    /// Makes the calling thread wait for every other that wants the processor or a disk; it cannot
    /// go back. What it does takes longer on a busy machine, and disturbs nobody.
    public static func standBack() { tutti_stand_back() }
}
