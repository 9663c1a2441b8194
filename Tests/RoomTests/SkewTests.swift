import DeviceOutput
import GroupControl
import Room
import Testing
import Timing

extension IntegrationTests {
    /// What the whole is for: the same sound in all rooms at the same time.
    @Suite struct Skew {
        /// A quarter of a millisecond to each side finds any offset that is not absurd, and tells
        /// how absurd it is.
        private static let searched = 12
        /// Of a room on a busy machine without real-time priority; a frame is 21 µs. What the
        /// estimates reach is measured elsewhere: here the parts are put together right, or not.
        private static let tolerated = 2.0

        @Test(.timeLimit(.minutes(1)))
        func `three cards with crystals of their own sound alike within two frames`()
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
                for seconds in [0.5, 1.5, 2.5, 3.5, 4.5] {
                    let instant = first + Nanoseconds(Int64(seconds * 1e9))
                    for room in rooms.dropFirst() {
                        let skew = try #require(offset(of: room, against: rooms[0], at: instant))
                        #expect(abs(skew) < Self.tolerated, "frames, \(seconds) s after the start")
                    }
                }
            }
        }

        private func firstSound(of recording: CardRecording) -> LocalInstant? {
            let frame = (0..<recording.frameCount).first {
                abs(recording.samples[$0 * recording.channelCount]) > 0.01
            }
            return frame.flatMap { recording.instant(ofFrame: Double($0)) }
        }

        /// By how many frames one recording lags another around an instant: where their product
        /// is greatest, with a parabola through the three values there for the part of a frame.
        private func offset(
            of recording: CardRecording, against reference: CardRecording, at instant: LocalInstant
        ) -> Double? {
            guard let a = reference.frame(at: instant), let b = recording.frame(at: instant) else {
                return nil
            }
            let length = 4_000
            let startA = Int(a.rounded()) - length / 2
            let startB = Int(b.rounded()) - length / 2
            func product(_ lag: Int) -> Double {
                (0..<length).reduce(0) { sum, i in
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
    }
}
