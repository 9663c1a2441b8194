import TuttiChance
import TuttiTiming

/// How a packet for all rooms reaches them.
enum MulticastShape: String, Sendable, CaseIterable {
    /// One frame that all hear; each receiver's own delay after it.
    case air
    /// The same through a switch: copies leave its ports at once.
    case wire
    /// The access point makes a packet for each station, which contends for the air by itself.
    case converted
    /// The same on quiet air: one packet after the other, with a back-off in between.
    case queued
    /// Every second room hangs on another access point and hears another frame.
    case twoAccessPoints = "two access points"
}

/// The living medium: delays of one packet to each of the rooms.
struct MulticastMedium {
    /// What stations lose of frames that nobody sends again.
    private static let loss = 0.04
    /// Seconds: access to the air, and a frame, with its acknowledgement, on quiet air.
    private static let access = 220e-6
    private static let frame = 90e-6
    private static let backOff = 135e-6

    private let shape: MulticastShape
    private let stamps: StampShape
    private var random: SplitMix64
    private var paths: [NetworkPath]

    /// - Parameter network: what packets of their own to each room go through.
    init(
        _ shape: MulticastShape, rooms: Int, network: NetworkProfile, stamps: StampShape,
        seed: UInt64
    ) {
        self.shape = shape
        self.stamps = stamps
        random = SplitMix64(seed: seed, "multicast")
        paths = (0..<rooms).map {
            NetworkPath(network.toRoom, random: SplitMix64(seed: seed, "unicast \($0)"))
        }
    }

    /// When each room's kernel stamps a beacon that is sent at `instant`; `nil`: it is lost there.
    mutating func stamps(of instant: TrueInstant) -> [TrueInstant?] {
        let frames = (0..<2).map { _ in
            Nanoseconds(seconds: 360e-6 + random.exponential(mean: Self.access))
        }
        var queue = instant + frames[0]
        return paths.indices.map { room in
            switch shape {
            case .wire:
                return instant + .microseconds(30)
                    + Nanoseconds(seconds: stamps.receiveLateness(&random))
            case .air, .twoAccessPoints:
                let frame = shape == .air ? frames[0] : frames[room % 2]
                let late = airLateness()
                return random.chance(Self.loss) ? nil : instant + frame + late
            case .converted:
                return paths[room].arrivals(of: instant).min().map { $0 + airLateness() }
            case .queued:
                queue +=
                    Nanoseconds(seconds: Self.frame + random.uniform(0, Self.backOff))
                return queue + Nanoseconds(seconds: stamps.receiveLateness(&random))
            }
        }
    }

    /// A station's receive path: interrupts held back to 60 µs, the driver, and now and then a
    /// processor that is busy.
    private mutating func airLateness() -> Nanoseconds {
        Nanoseconds(
            seconds: random.uniform(0, 60e-6) + random.gamma(shape: 2, scale: 1.5e-6)
                + (random.chance(0.03) ? random.exponential(mean: 0.5e-3) : 0))
    }
}
