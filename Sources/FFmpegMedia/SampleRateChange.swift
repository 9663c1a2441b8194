/// A place in a stream from which on its sound has another rate, or other settings of its decoder.
///
/// Containers that keep packets (Matroska, MP4, FLV, AVI) take recordings one after the other whose
/// packets differ in rate. Their frames are counted as they come, whatever they last.
struct SampleRateChange: Equatable, Sendable {
    /// Raw frame that the first packet with it begins with.
    var frame: Int64
    var sampleRate: Int
    /// Frames of each packet from there on, where they are alike; 0 where they are not.
    var framesPerPacket: Int
    /// What the decoder is to be told from there on; `nil`: what the stream says.
    var settings: [UInt8]?
}

/// Finds the changes of rate in packets as they come by.
///
/// A packet that may begin another rate, by its header or what the container says beside it, is
/// decoded; the decoder knows.
struct RateWatch {
    /// More changes are damage.
    static let most = 256

    private(set) var changes: [SampleRateChange] = []
    private var kind: UInt32?
    private var rate: Int
    private var settings: [UInt8]?
    /// Before the change that is looked at.
    private var knownSettings: [UInt8]?
    /// Frame of a change whose packets have not yielded anything yet.
    private var pending: Int64?

    /// - Parameter settings: what the stream says to the decoder.
    init(sampleRate: Int, settings: [UInt8]?) {
        rate = sampleRate
        self.settings = settings
        knownSettings = settings
    }

    var isLooking: Bool { pending != nil }

    /// Whether the next packet has to be decoded.
    ///
    /// - Parameters:
    ///   - kind: what its header says of its rate.
    ///   - fresh: what its container has for the decoder.
    ///   - frame: that it begins with.
    /// - Returns: whether decoding is to begin anew with it.
    mutating func begins(kind: UInt32?, fresh: [UInt8]?, at frame: Int64) -> Bool {
        let isOther = kind != nil && self.kind != nil && kind != self.kind
        if let kind { self.kind = kind }
        let isTold = fresh != nil && fresh != settings && frame > 0
        if let fresh { settings = fresh }
        guard isOther || isTold, changes.count < Self.most else { return false }
        pending = frame
        return true
    }

    /// What the decoder is to be told.
    var decoderSettings: [UInt8]? { settings }

    /// The decoder has yielded so many frames of a packet.
    mutating func decoded(_ count: Int, sampleRate: Int) {
        guard let frame = pending, count > 0 else { return }
        pending = nil
        guard sampleRate != rate || settings != knownSettings else { return }
        rate = sampleRate
        knownSettings = settings
        changes.append(
            SampleRateChange(
                frame: frame, sampleRate: sampleRate, framesPerPacket: count, settings: settings))
    }

    /// The same where every packet is decoded: what came out last begins at `frame`.
    mutating func heard(sampleRate: Int, at frame: Int64) {
        guard sampleRate != rate, sampleRate > 0, changes.count < Self.most else { return }
        rate = sampleRate
        changes.append(
            SampleRateChange(
                frame: frame, sampleRate: sampleRate, framesPerPacket: 0, settings: nil))
    }
}
