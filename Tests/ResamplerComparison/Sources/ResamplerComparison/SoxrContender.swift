import CSoxr

/// libsoxr: at a fixed ratio, or its variable-rate engine, whose ratio slews over a period.
final class SoxrContender: Contender {
    let name: String
    let follows: Bool
    private let recipe: UInt
    private var soxr: soxr_t?

    init(_ name: String, recipe: UInt, follows: Bool) {
        self.name = name
        self.recipe = recipe
        self.follows = follows
    }

    deinit { soxr_delete(soxr) }

    func prepare(_ input: [Float], firstRatio: Double) {
        soxr_delete(soxr)
        var format = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I)
        // The variable-rate engine is made for the largest ratio it will see.
        var quality = soxr_quality_spec(recipe, follows ? UInt(SOXR_VR) : 0)
        var runtime = soxr_runtime_spec(1)
        var error: soxr_error_t?
        soxr = soxr_create(
            follows ? 2 : firstRatio * 48_000, follows ? 1 : 48_000, 2, &error, &format, &quality,
            &runtime)
        precondition(soxr != nil && error == nil, "soxr_create failed")
        if follows { soxr_set_io_ratio(soxr, firstRatio, 0) }
    }

    func convert(_ input: [Float], ratios: [Double]) -> [Float] {
        var output = [Float](repeating: 0, count: 2 * periodFrames * (ratios.count - 1))
        var used = 0
        var made = 0
        for k in 0..<ratios.count - 1 {
            if follows { soxr_set_io_ratio(soxr, ratios[k + 1], periodFrames) }
            // As much as is wanted; the engine holds some frames back.
            var wanted = periodFrames
            while wanted > 0, used < input.count / 2 {
                var read = 0
                var written = 0
                let offered = min(periodFrames, input.count / 2 - used)
                input.withUnsafeBufferPointer { input in
                    output.withUnsafeMutableBufferPointer { output in
                        _ = soxr_process(
                            soxr, input.baseAddress! + 2 * used, offered, &read,
                            output.baseAddress! + 2 * made, wanted, &written)
                    }
                }
                used += read
                made += written
                wanted -= written
                if read == 0 && written == 0 { break }
            }
        }
        return Array(output.prefix(2 * made))
    }
}
