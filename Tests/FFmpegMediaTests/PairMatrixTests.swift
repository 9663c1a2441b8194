import CTuttiFFmpeg
import Testing
import TuttiPlayout

@testable import TuttiFFmpegMedia

/// Channels that no file of the other tests has.
@Suite struct PairMatrixTests {
    private static let backs = ChannelLayout([.backLeft, .backRight, .frontLeft, .frontRight])

    private func weights(_ channels: [AVChannel], on layout: ChannelLayout) -> [[Double]] {
        (0..<layout.pairCount).map {
            PairMatrix(ChannelPair(of: layout, $0), of: channels).weights
        }
    }

    /// A sound field of the first order has four components, and none belongs to a loudspeaker.
    @Test func `a sound field is in front as in two channels`() {
        var field = AVChannelLayout()
        field.order = AV_CHANNEL_ORDER_AMBISONIC
        field.nb_channels = 4
        var usual = AVChannelLayout()
        av_channel_layout_default(&usual, 4)
        let matrices = [0, 1].map {
            PairMatrix(ChannelPair(of: Self.backs, $0), of: &field, usual: &usual).weights
        }
        #expect(matrices[0].allSatisfy { $0 == 0 })
        #expect(matrices[1] == Downmix.matrix(for: &usual))
    }

    @Test func `channels in an order of their own go by name`() {
        let channels = [AV_CHAN_SIDE_RIGHT, AV_CHAN_FRONT_LEFT, AV_CHAN_UNUSED]
        var custom = AVChannelLayout()
        custom.order = AV_CHANNEL_ORDER_CUSTOM
        custom.nb_channels = 3
        custom.u.map = av_calloc(3, MemoryLayout<AVChannelCustom>.size)
            .assumingMemoryBound(to: AVChannelCustom.self)
        for (index, channel) in channels.enumerated() { custom.u.map[index].id = channel }
        defer { av_channel_layout_uninit(&custom) }
        var usual = AVChannelLayout()
        av_channel_layout_default(&usual, 3)
        let matrices = [0, 1].map {
            PairMatrix(ChannelPair(of: Self.backs, $0), of: &custom, usual: &usual).weights
        }
        #expect(matrices == [[0, 0, 0, 1, 0, 0], [0, 1, 0, 0, 0, 0]])
    }

    /// Whatever FFmpeg has a name for.
    @Test func `only effects are left out, and no weight is more than one`() throws {
        var state: UnsafeMutableRawPointer?
        var seen = 0
        while let layout = av_channel_layout_standard(&state) {
            let channels = (0..<UInt32(layout.pointee.nb_channels)).map {
                av_channel_layout_channel_from_index(layout, $0)
            }
            seen += 1
            for count in [2, 4, 5, 6, 8] {
                let output = ChannelLayout.usual(count)
                var powers = [Double](repeating: 0, count: channels.count)
                for matrix in weights(channels, on: output) {
                    #expect(matrix.count == 2 * channels.count)
                    for (index, weight) in matrix.enumerated() {
                        #expect((0...1).contains(weight))
                        powers[index % channels.count] += weight * weight
                    }
                }
                for (channel, power) in zip(channels, powers) where channels.count > 1 {
                    let isEffects =
                        channel == AV_CHAN_LOW_FREQUENCY || channel == AV_CHAN_LOW_FREQUENCY_2
                    // The least is a quarter in each of two.
                    #expect(isEffects && count < 6 ? power == 0 : power > 0.45)
                }
            }
        }
        #expect(seen > 20)
    }

    @Test func `second effects are with the first where there is a loudspeaker for them`() {
        let layout = ChannelLayout([.lowFrequency])
        let (low, second) = (AV_CHAN_LOW_FREQUENCY, AV_CHAN_LOW_FREQUENCY_2)
        #expect(weights([low, second], on: layout) == [[1, Downmix.half, 0, 0]])
        #expect(weights([second, AV_CHAN_FRONT_LEFT], on: layout) == [[1, 0, 0, 0]])
        #expect(weights([low, second], on: .stereo) == [[0, 0, 0, 0]])
    }

    @Test func `only a channel that is a sum of more than full scale may exceed it`() {
        let layout = ChannelLayout([.frontLeft, .backLeft])
        let one = PairMatrix(
            ChannelPair(of: layout, 0),
            of: [AV_CHAN_FRONT_LEFT, AV_CHAN_BACK_LEFT, AV_CHAN_SIDE_LEFT])
        #expect(!one.mayExceed.first && one.mayExceed.second)
        let mono = PairMatrix(ChannelPair(of: .stereo, 0), of: [AV_CHAN_FRONT_CENTER])
        #expect(!mono.mayExceed.first && !mono.mayExceed.second)
    }
}
