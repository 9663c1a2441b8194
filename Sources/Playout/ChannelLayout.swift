/// Where a loudspeaker stands, by FFmpeg's and ALSA's abbreviations.
public enum ChannelName: String, Sendable, CaseIterable {
    case frontLeft = "FL"
    case frontRight = "FR"
    case frontCenter = "FC"
    case lowFrequency = "LFE"
    case backLeft = "BL"
    case backRight = "BR"
    case frontLeftOfCenter = "FLC"
    case frontRightOfCenter = "FRC"
    case backCenter = "BC"
    case sideLeft = "SL"
    case sideRight = "SR"
    /// Nobody says where, or nothing is there.
    case unknown = "NA"
}

/// The channels of an output, in their order.
public struct ChannelLayout: Hashable, Sendable {
    /// One for each channel; a name comes once, except for ``ChannelName/unknown``.
    public var channels: [ChannelName]

    /// Channels in the order in which an output has them.
    public init(_ channels: [ChannelName]) { self.channels = channels }

    /// One loudspeaker in the middle.
    public static let mono = ChannelLayout([.frontCenter])
    /// Two in front.
    public static let stereo = ChannelLayout([.frontLeft, .frontRight])

    /// How ALSA orders so many channels where a card does not say (`snd_pcm` surround devices).
    public static func usual(_ count: Int) -> ChannelLayout {
        if count == 1 { return .mono }
        let order: [ChannelName] = [
            .frontLeft, .frontRight, .backLeft, .backRight, .frontCenter, .lowFrequency, .sideLeft,
            .sideRight,
        ]
        let named = order.prefix(max(0, count))
        let rest = repeatElement(ChannelName.unknown, count: max(0, count - order.count))
        return ChannelLayout(Array(named) + rest)
    }

    /// How files order so many channels that say nothing of it (WAVE).
    public static func inFiles(_ count: Int) -> ChannelLayout {
        let front: [ChannelName] = [.frontLeft, .frontRight]
        let middle: [ChannelName] = [.frontCenter, .lowFrequency]
        let back: [ChannelName] = [.backLeft, .backRight]
        return switch count {
        case 4: ChannelLayout(front + back)
        case 6: ChannelLayout(front + middle + back)
        case 8: ChannelLayout(front + middle + back + [.sideLeft, .sideRight])
        default: usual(count)
        }
    }

    /// Channels are carried two by two.
    public var pairCount: Int { (channels.count + 1) / 2 }
}

/// Two neighbouring channels of an output: what one voice plays of an item that has more than two.
public struct ChannelPair: Hashable, Sendable {
    /// All channels of the output.
    public var layout: ChannelLayout
    /// 0: the first two.
    public var index: Int

    /// The pair with that number, counted from 0.
    public init(of layout: ChannelLayout, _ index: Int) {
        (self.layout, self.index) = (layout, index)
    }
}
