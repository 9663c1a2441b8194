import CSwresample

/// libswresample: the ratio is "so many frames more or fewer over that distance", set per period.
final class SwresampleContender: Contender {
    let name: String
    let follows = true
    /// What is set beside the defaults.
    private let options: [(String, Int64)]
    private var context: OpaquePointer?

    init(_ name: String, options: [(String, Int64)] = []) {
        self.name = name
        self.options = options
    }

    deinit { swr_free(&context) }

    func prepare(_ input: [Float], firstRatio: Double) {
        swr_free(&context)
        var layout = AVChannelLayout()
        av_channel_layout_default(&layout, 2)
        var same = layout
        let code = swr_alloc_set_opts2(
            &context, &layout, AV_SAMPLE_FMT_FLT, 48_000, &same, AV_SAMPLE_FMT_FLT, 48_000, 0, nil)
        precondition(code == 0, "swr_alloc_set_opts2 failed: \(code)")
        let raw = UnsafeMutableRawPointer(context)
        for (key, value) in options {
            precondition(av_opt_set_int(raw, key, value, 0) == 0, "swr has no option \(key)")
        }
        // Or equal rates are copied.
        _ = av_opt_set_int(raw, "flags", Int64(SWR_FLAG_RESAMPLE), 0)
        let result = swr_init(context)
        precondition(result == 0, "swr_init failed: \(result)")
        compensate(firstRatio)
    }

    private func compensate(_ ratio: Double) {
        let distance = 1_000_000_000.0
        let code = swr_set_compensation(
            context, Int32((distance * (1 / ratio - 1)).rounded()), Int32(distance))
        precondition(code >= 0, "swr_set_compensation failed: \(code)")
    }

    func convert(_ input: [Float], ratios: [Double]) -> [Float] {
        var output = [Float](repeating: 0, count: 2 * periodFrames * (ratios.count + 2))
        var made = 0
        for k in 0..<ratios.count - 1 {
            guard (k + 1) * periodFrames <= input.count / 2 else { break }
            compensate((ratios[k] + ratios[k + 1]) / 2)
            let room = output.count / 2 - made
            made += input.withUnsafeBytes { input in
                output.withUnsafeMutableBytes { output in
                    var from = input.baseAddress?.advanced(by: 8 * k * periodFrames)
                        .assumingMemoryBound(to: UInt8.self)
                    var to = output.baseAddress?.advanced(by: 8 * made)
                        .assumingMemoryBound(to: UInt8.self)
                    return Int(swr_convert(context, &to, Int32(room), &from, Int32(periodFrames)))
                }
            }
        }
        return Array(output.prefix(2 * made))
    }
}
