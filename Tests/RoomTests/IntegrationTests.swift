import Testing

/// Tests with real sockets and clocks. One after the other: each plays on several virtual cards,
/// which are paced by time, and together they would only measure how busy the machine is.
@Suite(.serialized) struct IntegrationTests {}
