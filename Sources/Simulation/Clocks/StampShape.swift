import TuttiChance

/// How far a time stamp is from the moment of the packet at the wire.
///
/// A stamp of what arrives is late, one of what leaves is early; both only lengthen the measured
/// delay. The kernel's are as measured on loopback and veth, plus the coalesced interrupts of a
/// real adapter; the program's add what the scheduler does.
enum StampShape: String, Sendable, CaseIterable {
    /// Interrupts of a network adapter and the kernel behind it.
    case kernel
    /// The program reads its clock before and after the system call.
    case program
    /// Virtual networks of one host: no interrupts to coalesce.
    case virtual
    /// The truth.
    case ideal

    /// From a packet's arrival to its stamp; seconds.
    func receiveLateness(_ random: inout SplitMix64) -> Double {
        switch self {
        case .kernel: kernelLateness(&random)
        case .program: kernelLateness(&random) + schedulerDelay(&random)
        case .virtual: 0.4e-6 + random.gamma(shape: 2, scale: 0.15e-6)
        case .ideal: 0
        }
    }

    /// From the stamp of a packet to its departure; seconds.
    func sendEarliness(_ random: inout SplitMix64) -> Double {
        switch self {
        case .program: schedulerDelay(&random)
        case .kernel, .virtual, .ideal: 0
        }
    }

    /// Coalescing up to 12 µs, the way through the driver, and one in a thousand that waits.
    private func kernelLateness(_ random: inout SplitMix64) -> Double {
        random.uniform(0, 12e-6) + random.gamma(shape: 2, scale: 1.5e-6)
            + (random.chance(0.001) ? random.exponential(mean: 50e-6) : 0)
    }

    private func schedulerDelay(_ random: inout SplitMix64) -> Double {
        random.gamma(shape: 1.2, scale: 14e-6)
            + (random.chance(0.03) ? random.exponential(mean: 350e-6) : 0)
            + (random.chance(0.003) ? random.exponential(mean: 3e-3) : 0)
    }
}
