import Dispatch
import Synchronization

/// A sound card, or what stands for one, with all the players that sound on it.
///
/// It is opened when it is first asked for and closed with its last reference; a player is one, and
/// ``default`` is kept from its first use on. A sound server that does not answer is waited for no longer
/// than 200 ms: its players wait then until it does, as for a card that is not there. A card
/// that is not there, is in use or goes away is tried once a second, and its players wait meanwhile:
/// ``error`` says why.
public final class AudioDevice: Sendable, CustomStringConvertible {
    /// Where players sound unless they are told otherwise: ALSA's `default`.
    public static let `default` = alsa("default")

    /// The card with that ALSA name; the same object for the same name, as long as somebody has it.
    public static func alsa(_ pcm: String) -> AudioDevice {
        let device = cards.withLock { cards in
            cards = cards.filter { $0.value.device != nil }
            if let known = cards[pcm]?.device { return known }
            let device = AudioDevice(beginning: .alsa(pcm: pcm), overwrites: false)
            cards[pcm] = Card(device: device)
            return device
        }
        // Not under the lock: other cards are there meanwhile.
        device.thread?.awaitOpening(patience)
        return device
    }

    /// A card answers within some milliseconds, and whoever makes a player knows at once then whether it
    /// can be heard. Nobody is held up for longer than this.
    private static let patience = Duration.milliseconds(200)

    /// A card that exists in this process only, with a crystal of its own; nothing is heard.
    ///
    /// - Parameter partsPerMillion: how fast the crystal runs, ±1000.
    public static func virtual(partsPerMillion: Double = 0) -> AudioDevice {
        AudioDevice(.virtual(VirtualCardOptions(partsPerMillion: partsPerMillion)))
    }

    /// A WAV file that is written at the pace of a card; complete when the device is gone.
    ///
    /// - Parameter overwrites: whether it may replace what is there; else that is an ``error``.
    public static func file(_ path: String, overwrites: Bool = false) -> AudioDevice {
        AudioDevice(.file(path: path), overwrites: overwrites)
    }

    /// As the command line writes it: `alsa:hw:1,0`, `virtual:ppm=80`, `file:/a.wav`.
    ///
    /// - Parameter overwrites: whether a file may replace what is there.
    /// - Throws: `OutputSpecificationError` saying what is wrong and what is allowed.
    public convenience init(_ text: String, overwrites: Bool = false) throws {
        self.init(try OutputSpecification(parsing: text), overwrites: overwrites)
    }

    private struct Card {
        weak var device: AudioDevice?
    }
    private static let cards = Mutex<[String: Card]>([:])

    /// What was asked for.
    public let specification: OutputSpecification
    private let thread: OutputThread?
    private let port: OutputPort
    private let threadError: OutputError?
    private let recording = RecordingState()
    private struct Crystal {
        weak var clock: MediaClock?
    }
    private let crystal = Mutex(Crystal())

    /// - Parameter overwrites: whether a file may replace what is there.
    public convenience init(_ specification: OutputSpecification, overwrites: Bool = false) {
        self.init(beginning: specification, overwrites: overwrites)
        thread?.awaitOpening(Self.patience)
    }

    /// May still be being opened.
    private init(beginning specification: OutputSpecification, overwrites: Bool) {
        self.specification = specification
        do throws(OutputError) {
            let thread = try OutputThread.attempt(
                specification, overwrites: overwrites, recording: recording)
            (self.thread, port, threadError) = (thread, thread.port, nil)
        } catch {
            let engine = OutputEngine(
                format: OutputFormat(
                    sampleRate: 48_000, channelCount: 2, periodFrames: 480, bufferFrames: 3_840))
            (thread, port, threadError) = (nil, engine.port, error)
            port.setHasCard(false)
        }
    }

    /// For a player: keeps the device.
    public var output: PlayerOutput {
        PlayerOutput(port: port, now: { HostClock.now() }, owner: self)
    }

    /// The card's crystal as a clock: another device's players keep in step with this one by it. The
    /// same object as long as somebody has it; it keeps the device.
    public var clock: MediaClock {
        crystal.withLock { crystal in
            if let known = crystal.clock { return known }
            let clock = MediaClock.device(output)
            crystal.clock = clock
            return clock
        }
    }

    /// Whether it can be heard now.
    public var isAvailable: Bool { port.hasCard }

    /// Why it cannot be opened, or what it records cannot be written on, for people; `nil` while it plays.
    ///
    /// A file whose disk is full is a card that is gone: ``isAvailable`` says so, and its players' notice.
    public var error: OutputError? {
        if let threadError { return threadError }
        if case .lost(let error)? = thread?.state { return error }
        return recording.failure
    }

    /// Whether a card that cannot be opened may be there later, with nothing changed in what was
    /// asked for: unplugged, in use, its sound server off. A name that is misspelled, or a file
    /// that cannot be written on, never comes; ``error`` says why.
    public var mayCome: Bool {
        guard let thread else { return false }
        guard case .lost(let error) = thread.state else { return true }
        if case .file = specification { return false }
        // One that has been there is waited for, whatever it went by.
        return thread.awakeSince != nil || specification.mayPass(error)
    }

    /// Closes the card for good; a file is complete then. Returns when that is done; a card that
    /// does not answer is not waited for.
    ///
    /// - Parameter playsOut: whether what is still queued is heard before.
    package func close(playsOut: Bool) async {
        guard let thread, thread.state != .opening else { return }
        // Nobody else is given it by its name.
        Self.cards.withLock { cards in cards = cards.filter { $0.value.device !== self } }
        await withCheckedContinuation { continuation in
            // It waits for the output thread, and for a disk.
            DispatchQueue.global().async {
                thread.stop(playsOut: playsOut)
                continuation.resume()
            }
        }
        port.setHasCard(false)
    }

    /// What it is open with, for people: `48000 Hz, S32_LE, 2 channels, buffer 80 ms`.
    public var format: String { thread?.cardDescription ?? "" }

    /// Of all its players together; linear, 0…1, ramped.
    public func setVolume(_ volume: Float) { port.setGain(volume >= 0 ? min(volume, 1) : 0) }

    public var description: String { specification.description }
}

extension AudioDevice {
    /// The cards and PCMs that ALSA knows, each by a name for ``alsa(_:)`` and what it is called.
    public static func available() -> [(name: String, description: String)] {
        ALSADevice.availablePCMs().map { ($0.name, $0.description) }
    }
}
