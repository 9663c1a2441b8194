import CSampleRate

/// libsamplerate: the ratio moves along a line through each call.
final class SampleRateContender: Contender {
    let name: String
    let follows = true
    private let kind: Int
    private var state: OpaquePointer?

    init(_ name: String, kind: Int) {
        self.name = name
        self.kind = kind
    }

    deinit { src_delete(state) }

    func prepare(_ input: [Float], firstRatio: Double) {
        src_delete(state)
        var error: Int32 = 0
        state = src_new(Int32(kind), 2, &error)
        precondition(state != nil, "src_new failed: \(error)")
        src_set_ratio(state, 1 / firstRatio)
    }

    func convert(_ input: [Float], ratios: [Double]) -> [Float] {
        var output = [Float](repeating: 0, count: 2 * periodFrames * (ratios.count - 1))
        var used = 0
        var made = 0
        for k in 0..<ratios.count - 1 {
            var wanted = periodFrames
            while wanted > 0, used < input.count / 2 {
                var data = SRC_DATA()
                data.src_ratio = 1 / ratios[k + 1]
                data.input_frames = min(2 * periodFrames, input.count / 2 - used)
                data.output_frames = wanted
                let code = input.withUnsafeBufferPointer { input in
                    output.withUnsafeMutableBufferPointer { output in
                        data.data_in = input.baseAddress! + 2 * used
                        data.data_out = output.baseAddress! + 2 * made
                        return src_process(state, &data)
                    }
                }
                precondition(code == 0, "src_process failed: \(code)")
                used += data.input_frames_used
                made += data.output_frames_gen
                wanted -= data.output_frames_gen
                if data.input_frames_used == 0 && data.output_frames_gen == 0 { break }
            }
        }
        return Array(output.prefix(2 * made))
    }
}
