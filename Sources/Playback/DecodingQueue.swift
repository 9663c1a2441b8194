import Dispatch

/// Where one decoder works: a serial queue of its own.
///
/// Opening, seeking and reading media block on discs and networks; on the cooperative pool of a
/// two-core machine two such calls would stop every task.
final class DecodingQueue: SerialExecutor {
    private let queue = DispatchQueue(label: "tutti.decoding", qos: .userInitiated)

    func run(_ work: @escaping @Sendable () -> Void) { queue.async(execute: work) }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}
