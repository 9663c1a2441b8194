import Tutti

/// The best of an album: ten seconds from each file, from half a minute on.
func digest(_ files: [String]) throws -> PlayerItem {
    var composition = Composition()
    let part = TimeRange(
        start: MediaTime(seconds: 30), duration: MediaTime(value: 10, timescale: 1))
    for file in files {
        try composition.insert(part, of: Asset(url: file), at: composition.duration)
    }
    return PlayerItem(asset: Asset(composition, location: "digest"))
}

/// A voice over music, which goes down to a fifth while it speaks.
func moderated(_ music: Asset, _ voice: Asset, seconds: Int64) throws -> (Composition, AudioMix) {
    let length = MediaTime(value: seconds, timescale: 1)
    var composition = Composition()
    try composition.insert(TimeRange(start: .zero, duration: length), of: music, at: .zero)
    let speech = try composition.addTrack()
    let spoken = TimeRange(
        start: MediaTime(value: 5, timescale: 1), duration: MediaTime(value: 8, timescale: 1))
    try composition.insert(
        TimeRange(start: .zero, duration: spoken.duration), of: voice, at: spoken.start,
        track: speech)

    let second = MediaTime(value: 1, timescale: 1)
    var mix = AudioMix()
    try mix.setVolumeRamp(
        from: 1, to: 0.2, over: TimeRange(start: spoken.start - second, duration: second), track: 0)
    try mix.setVolumeRamp(
        from: 0.2, to: 1, over: TimeRange(start: spoken.end, duration: second), track: 0)
    return (composition, mix)
}

/// All samples of a composition, mixed: interleaved stereo.
func render(_ composition: Composition, _ mix: AudioMix) throws -> [Float] {
    let source = try ComposedSource(composition)
    let mixed = MixedReader(source.inputs, mix: mix, sampleRate: source.format.sampleRate)
    var samples: [Float] = []
    var chunk = [Float](repeating: 0, count: 2 * 4_096)
    while true {
        let frame = Int64(samples.count / 2)
        let count = try chunk.withUnsafeMutableBufferPointer { try mixed.read(at: frame, into: $0) }
        if count == 0 { return samples }
        samples += chunk[..<(2 * count)]
    }
}

/// Both loudspeakers get the mean of both channels.
final class Mono: AudioTap {
    func prepare(sampleRate: Int, channelCount: Int) {}

    func process(
        _ samples: UnsafeMutableBufferPointer<Float>, itemFrame: Int64, sampleRate: Int,
        isContinuous: Bool
    ) {
        for left in stride(from: 0, to: samples.count, by: 2) {
            let mean = 0.5 * (samples[left] + samples[left + 1])
            (samples[left], samples[left + 1]) = (mean, mean)
        }
    }

    func unprepare() {}
}

func mono(_ reader: any FrameReader, sampleRate: Int) -> TappedReader {
    TappedReader(reader, attachment: TapAttachment(Mono(), sampleRate: sampleRate))
}
