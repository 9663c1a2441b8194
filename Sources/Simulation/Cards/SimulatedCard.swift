import TuttiChance

/// A card in true time: a ring emptied by a crystal, and a driver that says where it is.
struct SimulatedCard {
    let model: CardModel
    private var oscillator: Oscillator
    private var interrupts: SplitMix64
    private var wakes: SplitMix64
    private var stamps: SplitMix64
    /// Lateness of the interrupt of each period from the first on, seconds; drawn once each.
    private var lateness: [Double] = []
    /// Tick at which frame 0 left.
    private(set) var startTick = 0.0

    init(model: CardModel, seed: UInt64) {
        self.model = model
        oscillator = Oscillator(
            ticksPerSecond: Double(model.sampleRate),
            shape: OscillatorShape(
                constant: model.partsPerMillion, wander: model.walk,
                frequencySteps: [.init(at: model.stepSeconds, partsPerMillion: model.step)]),
            random: SplitMix64(seed: seed, "card crystal"))
        interrupts = SplitMix64(seed: seed, "card interrupt")
        wakes = SplitMix64(seed: seed, "card wake")
        stamps = SplitMix64(seed: seed, "card stamp")
    }

    mutating func start(at seconds: Double) {
        startTick = oscillator.ticks(at: seconds)
        lateness = []
    }

    /// Frames that have really left, with their fraction.
    mutating func frames(at seconds: Double) -> Double {
        oscillator.ticks(at: seconds) - startTick
    }

    mutating func seconds(ofFrame frame: Double) -> Double {
        oscillator.seconds(ofTick: startTick + frame)
    }

    /// Rate of the crystal, minus one.
    mutating func skew(at seconds: Double) -> Double { oscillator.skew(at: seconds) }

    /// What the driver says at `seconds`: a position, and the instant that it stamps it with.
    mutating func look(at seconds: Double) -> (frames: Double, seconds: Double) {
        let stamp = seconds + stamps.exponential(mean: max(1e-12, model.stampLateness))
        return (pointer(at: seconds), stamp)
    }

    private mutating func pointer(at seconds: Double) -> Double {
        let frames = max(0, self.frames(at: seconds))
        switch model.pointer {
        case .fine: return Double(Int(frames))
        case .bursts(let size): return Double(Int(frames) / size * size)
        case .milliseconds:
            let size = model.sampleRate / 1000
            return Double(Int(frames) / size * size)
        case .batch:
            var period = Int(frames) / model.periodFrames
            if period > 0, seconds < interrupt(ofPeriod: period) { period -= 1 }
            return Double(period * model.periodFrames)
        }
    }

    private mutating func interrupt(ofPeriod period: Int) -> Double {
        guard case .batch(let mean) = model.pointer else { return 0 }
        while lateness.count <= period {
            // At most 1 ms, far below a period: a later interrupt would be two in one.
            lateness.append(min(1e-3, interrupts.exponential(mean: mean)))
        }
        return seconds(ofFrame: Double(period * model.periodFrames)) + lateness[period]
    }

    /// When `frame` frames have left, by what the driver says.
    mutating func roomAt(_ frame: Int) -> Double {
        func roundedUp(to size: Int) -> Double { Double((frame + size - 1) / size * size) }
        return switch model.pointer {
        case .fine: seconds(ofFrame: Double(frame))
        case .bursts(let size): seconds(ofFrame: roundedUp(to: size))
        case .milliseconds: seconds(ofFrame: roundedUp(to: model.sampleRate / 1000))
        case .batch:
            interrupt(ofPeriod: (frame + model.periodFrames - 1) / model.periodFrames)
        }
    }

    /// When a thread runs that sleeps until `seconds`.
    mutating func wake(at seconds: Double) -> Double {
        let late = model.wakeFloor + wakes.exponential(mean: model.wakeLateness)
        return seconds + late + (wakes.chance(model.preempted) ? wakes.uniform(0, 1e-3) : 0)
    }
}
