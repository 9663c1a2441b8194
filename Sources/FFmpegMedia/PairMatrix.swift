import CTuttiFFmpeg
import TuttiPlayout

/// How the channels of an item come to one pair of an output's channels.
///
/// A channel goes to the loudspeaker of its name, as it is. Where the output has none, it goes to
/// the nearest that there is:
///
/// - a side to the back on its side, a back to the side, what is above them likewise: as it is where
///   the item has no channel of that name itself, else 3 dB lower, as FFmpeg weighs them;
/// - a back centre to both backs or both sides, and backs to a back centre, 3 dB lower;
/// - everything else to the front as ``Downmix`` weighs it, so low-frequency effects nowhere. An
///   output without front left and right has a centre for both: ITU-R BS.775-4, table 2, mono.
///
/// Weights depend on the layouts alone, not on the pair that is asked for, and are not scaled by what
/// all channels together could reach: the pairs of an output are as loud together as the item is.
/// Mono is at unity in front left and right, and nothing is made up for what an item does not have.
struct PairMatrix {
    /// Of each of the item's channels in the pair's first, then in its second.
    let weights: [Double]
    /// Whether first and second can exceed full scale where no channel of the item does.
    let mayExceed: (first: Bool, second: Bool)

    /// - Parameter channels: the item's, in their order.
    init(_ pair: ChannelPair, of channels: [AVChannel]) {
        let routes = Routes(item: channels, output: pair.layout)
        if channels.count == 1 {
            self.init(pair, [routes.mono])
        } else {
            self.init(pair, channels.map(routes.places))
        }
    }

    /// - Parameter downmix: weights of the item's channels in left, then in right.
    init(_ pair: ChannelPair, downmix: [Double]) {
        let routes = Routes(item: [], output: pair.layout)
        let half = downmix.count / 2
        self.init(pair, zip(downmix[..<half], downmix[half...]).map(routes.front))
    }

    private init(_ pair: ChannelPair, _ places: [[ChannelName: Double]]) {
        let channels = pair.layout.channels
        let rows = [2 * pair.index, 2 * pair.index + 1].map { index in
            let name = index < channels.count ? channels[index] : .unknown
            return places.map { name == .unknown ? 0 : $0[name] ?? 0 }
        }
        weights = rows[0] + rows[1]
        // Weights of a half power, twice squared, add up to one only nearly.
        let exceeds = rows.map { $0.reduce(0, +) > 1 + 1e-9 }
        mayExceed = (exceeds[0], exceeds[1])
    }
}

extension PairMatrix {
    /// - Parameters:
    ///   - layout: of a decoded frame.
    ///   - usual: the same where it is known, else what so many channels are taken for in two.
    init(
        _ pair: ChannelPair, of layout: UnsafeMutablePointer<AVChannelLayout>,
        usual: UnsafeMutablePointer<AVChannelLayout>
    ) {
        let count = unsafe Int(layout.pointee.nb_channels)
        if unsafe layout.pointee.order == AV_CHANNEL_ORDER_UNSPEC {
            if let channels = Self.unnamed(count) {
                self.init(pair, of: channels)
                return
            }
        } else {
            let channels = (0..<max(0, count)).map {
                unsafe av_channel_layout_channel_from_index(layout, UInt32($0))
            }
            if !channels.contains(where: \.isAmbisonic) {
                self.init(pair, of: channels)
                return
            }
        }
        // Tracks of a recording, or a sound field, which are no loudspeakers: in front as on an output
        // of two.
        unsafe self.init(pair, downmix: Downmix.matrix(for: usual))
    }

    /// What stands where in a file that only counts its channels: in the order of WAV, as RFC 9639
    /// (9.1.3) has it for FLAC. Four and five have no low-frequency effects there, which outputs
    /// without such a loudspeaker would lose.
    ///
    /// - Returns: `nil` for more than eight.
    static func unnamed(_ count: Int) -> [AVChannel]? {
        let (left, right) = (AV_CHAN_FRONT_LEFT, AV_CHAN_FRONT_RIGHT)
        let (center, low) = (AV_CHAN_FRONT_CENTER, AV_CHAN_LOW_FREQUENCY)
        let backs = [AV_CHAN_BACK_LEFT, AV_CHAN_BACK_RIGHT]
        let sides = [AV_CHAN_SIDE_LEFT, AV_CHAN_SIDE_RIGHT]
        return switch count {
        case 1: [center]
        case 2: [left, right]
        case 3: [left, right, center]
        case 4: [left, right] + backs
        case 5: [left, right, center] + backs
        case 6: [left, right, center, low] + backs
        case 7: [left, right, center, low, AV_CHAN_BACK_CENTER] + sides
        case 8: [left, right, center, low] + backs + sides
        default: nil
        }
    }
}

/// From the channels of an item to those of an output.
private struct Routes {
    let item: Set<ChannelName>
    let output: Set<ChannelName>

    init(item: [AVChannel], output: ChannelLayout) {
        self.item = Set(item.compactMap(ChannelName.init))
        self.output = Set(output.channels)
    }

    private var hasFront: Bool { output.contains(.frontLeft) || output.contains(.frontRight) }

    /// What is meant for two loudspeakers in front.
    func front(_ left: Double, _ right: Double) -> [ChannelName: Double] {
        hasFront
            ? [.frontLeft: left, .frontRight: right]
            : [.frontCenter: Downmix.half * (left + right)]
    }

    /// The only channel of an item.
    var mono: [ChannelName: Double] {
        hasFront ? [.frontLeft: 1, .frontRight: 1] : [.frontCenter: 1]
    }

    /// One channel of several; weights of names that the output does not have mean nothing.
    func places(of channel: AVChannel) -> [ChannelName: Double] {
        if channel == AV_CHAN_UNUSED { return [:] }
        if let name = ChannelName(channel), output.contains(name) { return [name: 1] }
        let near = Self.nearest(to: channel)
        if let name = near.first(where: output.contains) {
            return [name: item.contains(name) ? Downmix.half : 1]
        }
        if channel == AV_CHAN_BACK_CENTER || channel == AV_CHAN_TOP_BACK_CENTER {
            let pairs: [[ChannelName]] = [[.backLeft, .backRight], [.sideLeft, .sideRight]]
            if let pair = pairs.first(where: output.isSuperset) {
                return [pair[0]: Downmix.half, pair[1]: Downmix.half]
            }
        }
        let surrounds: Set<ChannelName> = [.backLeft, .backRight, .sideLeft, .sideRight]
        if output.contains(.backCenter), !surrounds.isDisjoint(with: near) {
            return [.backCenter: Downmix.half]
        }
        let weights = Downmix.weights(of: channel)
        return front(weights.0, weights.1)
    }

    /// What may stand in for one loudspeaker, the best first.
    private static func nearest(to channel: AVChannel) -> [ChannelName] {
        switch channel {
        case AV_CHAN_BACK_LEFT, AV_CHAN_TOP_SIDE_LEFT, AV_CHAN_SURROUND_DIRECT_LEFT:
            [.sideLeft, .backLeft]
        case AV_CHAN_BACK_RIGHT, AV_CHAN_TOP_SIDE_RIGHT, AV_CHAN_SURROUND_DIRECT_RIGHT:
            [.sideRight, .backRight]
        case AV_CHAN_SIDE_LEFT, AV_CHAN_TOP_BACK_LEFT: [.backLeft, .sideLeft]
        case AV_CHAN_SIDE_RIGHT, AV_CHAN_TOP_BACK_RIGHT: [.backRight, .sideRight]
        case AV_CHAN_TOP_BACK_CENTER: [.backCenter]
        case AV_CHAN_TOP_FRONT_CENTER, AV_CHAN_BOTTOM_FRONT_CENTER: [.frontCenter]
        case AV_CHAN_LOW_FREQUENCY_2: [.lowFrequency]
        default: []
        }
    }
}

extension AVChannel {
    /// Whether it is a component of a sound field.
    fileprivate var isAmbisonic: Bool {
        (AV_CHAN_AMBISONIC_BASE.rawValue...AV_CHAN_AMBISONIC_END.rawValue).contains(rawValue)
    }
}

extension ChannelName {
    /// - Returns: `nil` for what outputs have no name for.
    init?(_ channel: AVChannel) {
        switch channel {
        case AV_CHAN_FRONT_LEFT, AV_CHAN_STEREO_LEFT: self = .frontLeft
        case AV_CHAN_FRONT_RIGHT, AV_CHAN_STEREO_RIGHT: self = .frontRight
        case AV_CHAN_FRONT_CENTER: self = .frontCenter
        case AV_CHAN_LOW_FREQUENCY: self = .lowFrequency
        case AV_CHAN_BACK_LEFT: self = .backLeft
        case AV_CHAN_BACK_RIGHT: self = .backRight
        case AV_CHAN_FRONT_LEFT_OF_CENTER: self = .frontLeftOfCenter
        case AV_CHAN_FRONT_RIGHT_OF_CENTER: self = .frontRightOfCenter
        case AV_CHAN_BACK_CENTER: self = .backCenter
        case AV_CHAN_SIDE_LEFT: self = .sideLeft
        case AV_CHAN_SIDE_RIGHT: self = .sideRight
        default: return nil
        }
    }
}
