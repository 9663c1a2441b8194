import TuttiPlayout

/// Ours, as the voices of an output use it.
struct TuttiContender: Contender {
    let name = "tutti"
    let follows = true
    private var resampler: OfflineResampler?

    mutating func prepare(_ input: [Float], firstRatio: Double) {
        resampler = OfflineResampler(
            left: stride(from: 0, to: input.count, by: 2).map { input[$0] },
            right: stride(from: 1, to: input.count, by: 2).map { input[$0] },
            inputRate: 48_000, outputRate: 48_000, periodFrames: periodFrames)
    }

    mutating func convert(_ input: [Float], ratios: [Double]) -> [Float] {
        guard let resampler else { return [] }
        var output = [Float](repeating: 0, count: 2 * periodFrames * (ratios.count - 1))
        for k in 0..<ratios.count - 1 {
            let bend = (ratios[k + 1] - ratios[k]) / Double(2 * periodFrames)
            guard resampler.read(step: ratios[k], bend: bend) else { break }
            let left = resampler.period(channel: 0)
            let right = resampler.period(channel: 1)
            for i in 0..<periodFrames {
                output[2 * (k * periodFrames + i)] = left[i]
                output[2 * (k * periodFrames + i) + 1] = right[i]
            }
        }
        return output
    }
}

/// A straight line between two frames.
struct LinearContender: Contender {
    let name = "linear"
    let follows = true
    mutating func prepare(_ input: [Float], firstRatio: Double) {}

    mutating func convert(_ input: [Float], ratios: [Double]) -> [Float] {
        read(input, ratios) { i, u in
            (
                input[2 * i] + u * (input[2 * i + 2] - input[2 * i]),
                input[2 * i + 1] + u * (input[2 * i + 3] - input[2 * i + 1])
            )
        }
    }
}

/// Drops or repeats a frame now and then: the nearest one is played.
struct DropContender: Contender {
    let name = "drop/repeat"
    let follows = true
    mutating func prepare(_ input: [Float], firstRatio: Double) {}

    mutating func convert(_ input: [Float], ratios: [Double]) -> [Float] {
        read(input, ratios) { i, u in
            let nearest = u < 0.5 ? i : i + 1
            return (input[2 * nearest], input[2 * nearest + 1])
        }
    }
}

/// Reads at positions that move by the ratio, one output frame after the other.
private func read(
    _ input: [Float], _ ratios: [Double], _ frame: (Int, Float) -> (Float, Float)
) -> [Float] {
    var output = [Float](repeating: 0, count: 2 * periodFrames * (ratios.count - 1))
    var position = 0.0
    for k in 0..<ratios.count - 1 {
        let bend = (ratios[k + 1] - ratios[k]) / Double(2 * periodFrames)
        for i in 0..<periodFrames {
            let x = position + Double(i) * (ratios[k] + Double(i) * bend)
            let whole = Int(x)
            guard 2 * whole + 3 < input.count else { return output }
            let (left, right) = frame(whole, Float(x - Double(whole)))
            output[2 * (k * periodFrames + i)] = left
            output[2 * (k * periodFrames + i) + 1] = right
        }
        let n = Double(periodFrames)
        position += n * (ratios[k] + n * bend)
    }
    return output
}
