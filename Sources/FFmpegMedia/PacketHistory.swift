import CTuttiFFmpeg

/// The last few packets that were decoded, for a decoder that has to start afresh between two.
///
/// Holds references to the packets' bytes, not copies.
@safe
final class PacketHistory {
    private let capacity: Int
    private var packets: [UnsafeMutablePointer<AVPacket>]
    private var oldest = 0
    private(set) var count = 0

    /// - Parameter capacity: unless told, as many as the preroll of the codecs that start afresh.
    init(capacity: Int = 8) {
        self.capacity = capacity
        unsafe packets = (0..<capacity).map { _ in
            guard let packet = unsafe av_packet_alloc() else {
                fatalError("no memory for a packet")
            }
            return unsafe packet
        }
    }

    deinit {
        for index in 0..<capacity {
            var packet: UnsafeMutablePointer<AVPacket>? = unsafe packets[index]
            unsafe av_packet_free(&packet)
        }
    }

    /// The packet number `index` in order of age; the oldest is 0.
    func packet(_ index: Int) -> UnsafeMutablePointer<AVPacket> {
        precondition(index < count, "packet \(index) of \(count)")
        return unsafe packets[(oldest + index) % capacity]
    }

    func append(_ packet: UnsafeMutablePointer<AVPacket>) {
        let slot = unsafe packets[(oldest + count) % capacity]
        unsafe av_packet_unref(slot)
        unsafe av_packet_ref(slot, packet)
        if count < capacity { count += 1 } else { oldest = (oldest + 1) % capacity }
    }

    func removeAll() {
        (oldest, count) = (0, 0)
    }
}
