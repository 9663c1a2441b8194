import Testing
import TuttiDeviceOutput
import TuttiGroupControl
import TuttiRoom
import TuttiTiming

extension IntegrationTests {
    /// What the whole is for: the same sound in all rooms at the same time.
    @Suite struct Skew {
        /// Frames to each side: finds any offset that is not absurd.
        private static let searched = 12
        /// A frame is 62 µs: far more than clocks and cards of one machine disagree by, even a
        /// busy one. What the estimates reach is measured elsewhere; here the parts are put
        /// together right, or not.
        private static let toleratedFrames = 1.0
        /// Frames of noise compared: more than enough for the peak to stand out.
        private static let length = 2_000
        /// A card that ran dry, because the machine had no time for it, needs some to be back.
        private static let settling = Double(TemporaryFolder.sampleRate)

        @Test(.timeLimit(.minutes(1)))
        func `three cards with crystals of their own sound alike within a frame`()
            async throws
        {
            try await withGroup { group in
                let asset = try group.folder.writeNoise(seconds: 5, seed: 41, as: "a.wav")
                func card(_ name: String, ppm: Double) -> OutputSpecification {
                    .virtual(
                        VirtualCardOptions(
                            partsPerMillion: ppm, wander: 0.3, record: group.folder.path(name)))
                }
                let leader = try await group.lead(
                    [asset], roomsToWaitFor: 3, output: card("leader", ppm: 80))
                let attic = group.follow("attic", output: card("attic", ppm: -120))
                let bath = group.follow("bath", output: card("bath", ppm: 20))
                try await until("the leader has ended") { leader.hasEnded }
                // A recording is complete when its room has ended.
                for room in [attic, bath] { _ = await room.stop() }

                let rooms = try ["leader", "attic", "bath"].map {
                    try CardRecording.load(path: group.folder.path($0))
                }
                let first = try #require(firstSound(of: rooms[0]))
                for room in rooms.dropFirst() {
                    let skews = stride(from: 0.25, to: 4.75, by: 0.25).compactMap { seconds in
                        skew(of: room, to: rooms[0], at: first + Nanoseconds(Int64(seconds * 1e9)))
                    }
                    #expect(!skews.isEmpty)
                    #expect(skews.allSatisfy { abs($0) < Self.toleratedFrames }, "\(skews)")
                }
            }
        }

        func firstSound(of recording: CardRecording) -> LocalInstant? {
            let frame = (0..<recording.frameCount).first {
                abs(recording.samples[$0 * recording.channelCount]) > 0.01
            }
            return frame.flatMap { recording.instant(ofFrame: Double($0)) }
        }

        /// By how many frames one recording is late against another around an instant: where
        /// their product is greatest, with a parabola through the three values there for the part
        /// of a frame.
        ///
        /// - Returns: `nil` when one of the cards stood still shortly before.
        func skew(
            of recording: CardRecording, to reference: CardRecording, at instant: LocalInstant
        ) -> Double? {
            guard let a = place(of: instant, in: reference),
                let b = place(of: instant, in: recording)
            else { return nil }
            let startA = Int(a.rounded()) - Self.length / 2
            let startB = Int(b.rounded()) - Self.length / 2
            func product(_ lag: Int) -> Double {
                (0..<Self.length).reduce(0) { sum, i in
                    let x = reference.samples[(startA + i) * reference.channelCount]
                    let y = recording.samples[(startB + i + lag) * recording.channelCount]
                    return sum + Double(x) * Double(y)
                }
            }
            let lags = -Self.searched...Self.searched
            let products = lags.map(product)
            guard let place = products.indices.max(by: { products[$0] < products[$1] }),
                place > 0, place < products.count - 1
            else { return .infinity }
            let (before, peak, after) = (products[place - 1], products[place], products[place + 1])
            let fraction = (after - before) / (2 * (2 * peak - before - after))
            let lag = Double(place - Self.searched) + fraction
            // The instant falls between frames, elsewhere in each recording.
            return lag + (a - a.rounded()) - (b - b.rounded())
        }

        private func place(of instant: LocalInstant, in recording: CardRecording) -> Double? {
            guard let frame = recording.frame(at: instant),
                let segment = recording.segments.first(where: { $0.frames.contains(frame) }),
                segment.frames.lowerBound == 0
                    || frame - segment.frames.lowerBound > Self.settling,
                segment.frames.upperBound - frame > Double(Self.length)
            else { return nil }
            return frame
        }
    }
}
