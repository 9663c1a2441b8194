import CTuttiALSA
import TuttiPlayout

extension ALSADevice {
    /// As the driver says (`snd_pcm_get_chmap`); `nil` where it does not, or does not know.
    static func channelLayout(of pcm: OpaquePointer, count: Int) -> ChannelLayout? {
        var positions = [UInt32](repeating: 0, count: count)
        let known = unsafe tutti_alsa_channel_map(pcm, &positions, UInt32(count))
        guard count > 2, known == count else { return nil }
        let names = positions.map(Self.name(ofPosition:))
        return names.contains { $0 != .unknown } ? ChannelLayout(names) : nil
    }

    private static func name(ofPosition position: UInt32) -> ChannelName {
        switch snd_pcm_chmap_position(position) {
        case SND_CHMAP_FL: .frontLeft
        case SND_CHMAP_FR: .frontRight
        case SND_CHMAP_FC: .frontCenter
        case SND_CHMAP_LFE: .lowFrequency
        case SND_CHMAP_RL: .backLeft
        case SND_CHMAP_RR: .backRight
        case SND_CHMAP_RC: .backCenter
        case SND_CHMAP_SL: .sideLeft
        case SND_CHMAP_SR: .sideRight
        case SND_CHMAP_FLC: .frontLeftOfCenter
        case SND_CHMAP_FRC: .frontRightOfCenter
        default: .unknown
        }
    }
}
