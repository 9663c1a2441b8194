import TuttiDeviceOutput
import TuttiTiming

extension Take {
    /// How far apart the anchors are, in frames. The crystal's rate moves by less than 0.01 ppm in
    /// 10 ms: a straight line in between is right to 0.1 ns.
    private static let anchorEvery = 480

    /// What a virtual card recorded, on the axis of true time that begins at `base`.
    init(_ recording: CardRecording, name: String, base: LocalInstant) {
        self.name = name
        sampleRate = Double(recording.sampleRate)
        let channels = recording.channelCount
        segments = recording.segments.compactMap { part in
            let first = Int(part.frames.lowerBound.rounded(.up))
            let end = min(Int(part.frames.upperBound), recording.frameCount)
            guard end > first + 1 else { return nil }
            var samples: [Float] = []
            samples.reserveCapacity(end - first)
            recording.samples.withUnsafeBufferPointer { all in
                for frame in first..<end {
                    var sum: Float = 0
                    for channel in 0..<channels { sum += all[frame * channels + channel] }
                    samples.append(sum / Float(channels))
                }
            }
            var frames: [Double] = []
            var times: [Double] = []
            var marks = Array(stride(from: first, to: end - 1, by: Self.anchorEvery))
            marks.append(end - 1)
            for frame in marks {
                guard let instant = recording.instant(ofFrame: Double(frame)) else { continue }
                frames.append(Double(frame - first))
                times.append(Double((instant - base).count))
            }
            guard frames.count >= 2 else { return nil }
            return Segment(samples: samples, anchorFrames: frames, anchorTimes: times)
        }
    }
}

extension CardRecording {
    /// When its first frame left the card.
    var firstInstant: LocalInstant? {
        segments.first.flatMap { instant(ofFrame: $0.frames.lowerBound) }
    }
}
