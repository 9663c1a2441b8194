import CTuttiFFmpeg

/// How channels beyond two come to two, and stay within full scale.
///
/// The weights are those of ITU-R BS.775-4: front left and right as they are, centre and surrounds
/// 3 dB lower, no low-frequency effects. They are not scaled by what all channels together could
/// reach, as FFmpeg does by default: 5.1 would then be 7.7 dB below a stereo item beside it in the
/// queue, for a case that recordings hardly know. Sums beyond full scale meet ``limit(_:frames:)``.
enum Downmix {
    /// What libswresample takes.
    static let channelsMax = 64

    /// 3 dB below: two equal powers add up to one.
    static let half: Double = 0.5.squareRoot()

    /// Weights of each channel in left, then in right.
    ///
    /// - Parameter layout: one without positions (a recording of tracks) is taken for pairs: left,
    ///   right, left, right, as loud together as two.
    static func matrix(for layout: UnsafeMutablePointer<AVChannelLayout>) -> [Double] {
        let count = unsafe Int(layout.pointee.nb_channels)
        if count == 1 { return [1, 1] }
        var left: [Double] = []
        var right: [Double] = []
        for index in 0..<count {
            let channel = unsafe av_channel_layout_channel_from_index(layout, UInt32(index))
            let weights: (Double, Double)
            if unsafe layout.pointee.order == AV_CHANNEL_ORDER_UNSPEC {
                let level = (2 / Double(count)).squareRoot()
                weights = index % 2 == 0 ? (level, 0) : (0, level)
            } else {
                weights = self.weights(of: channel)
            }
            left.append(weights.0)
            right.append(weights.1)
        }
        return left + right
    }

    /// What one of several channels weighs in left and right.
    static func weights(of channel: AVChannel) -> (Double, Double) {
        switch channel {
        case AV_CHAN_FRONT_LEFT, AV_CHAN_STEREO_LEFT: (1, 0)
        case AV_CHAN_FRONT_RIGHT, AV_CHAN_STEREO_RIGHT: (0, 1)
        case AV_CHAN_FRONT_CENTER: (half, half)
        case AV_CHAN_LOW_FREQUENCY, AV_CHAN_LOW_FREQUENCY_2: (0, 0)
        // One loudspeaker behind or above stands for a pair.
        case AV_CHAN_BACK_CENTER, AV_CHAN_TOP_CENTER, AV_CHAN_TOP_FRONT_CENTER,
            AV_CHAN_TOP_BACK_CENTER, AV_CHAN_BOTTOM_FRONT_CENTER:
            (half * half, half * half)
        case AV_CHAN_BACK_LEFT, AV_CHAN_SIDE_LEFT, AV_CHAN_FRONT_LEFT_OF_CENTER,
            AV_CHAN_TOP_FRONT_LEFT, AV_CHAN_TOP_BACK_LEFT, AV_CHAN_TOP_SIDE_LEFT,
            AV_CHAN_WIDE_LEFT, AV_CHAN_SURROUND_DIRECT_LEFT, AV_CHAN_BOTTOM_FRONT_LEFT:
            (half, 0)
        case AV_CHAN_BACK_RIGHT, AV_CHAN_SIDE_RIGHT, AV_CHAN_FRONT_RIGHT_OF_CENTER,
            AV_CHAN_TOP_FRONT_RIGHT, AV_CHAN_TOP_BACK_RIGHT, AV_CHAN_TOP_SIDE_RIGHT,
            AV_CHAN_WIDE_RIGHT, AV_CHAN_SURROUND_DIRECT_RIGHT, AV_CHAN_BOTTOM_FRONT_RIGHT:
            (0, half)
        default: (half * half, half * half)
        }
    }

    /// Level up to which the mix is left as it is, 0.9 dB below full scale. Lower makes loud passages
    /// denser, higher makes the bend above it harder.
    static let knee: Float = 0.9

    /// Bends what exceeds ``knee`` so that it never reaches full scale.
    ///
    /// A frame's gain depends on that frame alone. A limiter with attack and release sounds better in
    /// peaks that last, but remembers: a room that came in by a seek would play other samples than
    /// one that listened from the start. Both sides get the gain of the louder one, so nothing moves
    /// sideways.
    ///
    /// - Parameters:
    ///   - samples: interleaved stereo.
    ///   - bends: the sides that are sums; one that is not is neither asked nor bent.
    static func limit(
        _ samples: UnsafeMutablePointer<Float>, frames: Int,
        bends: (left: Bool, right: Bool) = (true, true)
    ) {
        for frame in 0..<frames {
            let (left, right) = unsafe (samples[2 * frame], samples[2 * frame + 1])
            let peak = max(bends.left ? abs(left) : 0, bends.right ? abs(right) : 0)
            guard peak > knee else { continue }
            let room = 1 - knee
            let excess = (peak - knee) / room
            let gain = (knee + room * excess / (1 + excess)) / peak
            if bends.left { unsafe samples[2 * frame] = left * gain }
            if bends.right { unsafe samples[2 * frame + 1] = right * gain }
        }
    }
}
