import CTuttiAllocations

/// One parser: bytes of its kind, and what has to be so whatever the bytes are.
struct Harness: Sendable {
    enum Check: Sendable {
        case plain(@Sendable ([UInt8]) throws -> Void)
        /// Of what hands bytes to other threads; what it holds is not counted.
        case waiting(@Sendable ([UInt8]) async throws -> Void)
    }

    /// As it is called on a command line.
    var name: String
    /// Bytes as we write them, from which others are made; the same in every process.
    var seeds: @Sendable () throws -> [[UInt8]]
    /// Longest input that is made.
    var longest = 4_096
    /// What may be held at once: bytes for each byte of the input.
    var heldPerByte = 256
    var check: Check

    /// What may be held whatever the input is: buffers of a fixed size, tables made at first use.
    static let heldAnyway = 1 << 20

    /// Runs a check that waits for nobody.
    static func plain(
        _ check: @Sendable ([UInt8]) throws -> Void, _ bytes: [UInt8], heldPerByte: Int
    ) throws {
        watchHeldByThisThread()
        try check(bytes)
        let held = heldMostByThisThread()
        let most = heldAnyway + heldPerByte * bytes.count
        try expect(
            held <= most, "\(held) bytes were held for \(bytes.count), at most \(most) may be")
    }

    func run(_ bytes: [UInt8]) async throws {
        switch check {
        case .plain(let check): try Self.plain(check, bytes, heldPerByte: heldPerByte)
        case .waiting(let check): try await check(bytes)
        }
    }

    static let all =
        wire + clocks + trust + memories + places + playlists + announcements + media + documents
        + services + settings
}

/// Something that had to be so and is not.
struct Finding: Error, CustomStringConvertible {
    var description: String
}

func expect(
    _ isSo: Bool, _ sentence: @autoclosure () -> String
) throws(Finding) {
    guard isSo else { throw Finding(description: sentence()) }
}

/// Both ways have to lead to the same.
func expectEqual<Value: Equatable>(
    _ one: Value, _ other: Value, _ what: @autoclosure () -> String
) throws(Finding) {
    guard one == other else {
        throw Finding(description: "\(what()):\n  \(one)\nis not\n  \(other)")
    }
}
