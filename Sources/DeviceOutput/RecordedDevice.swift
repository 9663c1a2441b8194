import Synchronization
package import TuttiPlayout

/// Whether what an output records is still written.
package final class RecordingState: Sendable {
    private let state = Mutex<OutputError?>(nil)

    package init() {}

    /// Why it ended early; `nil` while it goes on.
    package var failure: OutputError? { state.withLock(\.self) }

    /// The first reason is kept.
    func fail(_ error: OutputError) { state.withLock { $0 = $0 ?? error } }
}

/// A file as a card: gone once it cannot be written any more, for nothing is heard of it then.
final class RecordedDevice: AudioOutput {
    private let device: any AudioOutput
    private let recording: RecordingState

    init(_ device: any AudioOutput, _ recording: RecordingState) {
        (self.device, self.recording) = (device, recording)
    }

    var format: OutputFormat { device.format }
    var sampleDescription: String { device.sampleDescription }
    var channelLayout: ChannelLayout? { device.channelLayout }
    var sampleRates: [Int] { device.sampleRates }

    func wait(_ plan: WaitPlan) throws(OutputError) -> OutputEvent {
        if let error = recording.failure { throw error }
        return try device.wait(plan)
    }

    func reading() -> CardReading? { device.reading() }

    func write(_ frames: UnsafePointer<Float>) throws(OutputError) -> OutputEvent {
        try unsafe device.write(frames)
    }

    func playOut() { device.playOut() }

    func close() { device.close() }
}
