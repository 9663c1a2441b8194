import Glibc

/// The built-in piece of the demo: plucked strings over a slow bass, made of nothing but numbers.
///
/// The strings are Karplus and Strong's (1983): a burst of noise in a delay line whose loop loses
/// treble. Each pluck begins with all frequencies at once, which makes lags sharp; each burst is
/// other noise, and the melody is drawn by chance, so that no second of the piece equals another
/// and an alignment is never ambiguous.
struct DemoPiece {
    static let sampleRate = 48_000
    /// Four chords of the scale, as semitones above the bass of each.
    private static let chords: [(bass: Int, notes: [Int])] = [
        (45, [0, 3, 7, 12, 15]), (41, [0, 4, 7, 11, 16]), (48, [0, 4, 7, 12, 14]),
        (43, [0, 4, 7, 9, 14]),
    ]
    /// Quavers at 132 crotchets a minute.
    private static let secondsPerNote = 60.0 / 264

    private var random: UInt64

    init(seed: UInt64 = 1983) { random = seed }

    /// Interleaved stereo, −1…1, audible from the first frame to the last.
    mutating func samples(seconds: Double) -> [Float] {
        let count = Int(seconds * Double(Self.sampleRate))
        var left = [Float](repeating: 0, count: count)
        var right = left
        var note = 0
        while true {
            let start = Int(Double(note) * Self.secondsPerNote * Double(Self.sampleRate))
            guard start < count else { break }
            let chord = Self.chords[note / 16 % Self.chords.count]
            if note.isMultiple(of: 8) {
                pluck(
                    chord.bass - 12, at: start, seconds: 3.6, gain: 0.34, pan: 0.5, into: &left,
                    &right)
            }
            // Now and then a note is left out, or two sound together.
            let voices = note.isMultiple(of: 8) ? 1 : [0, 1, 1, 1, 1, 2][Int(unit() * 6)]
            for _ in 0..<voices {
                let pitch = chord.notes[Int(unit() * Double(chord.notes.count))] + chord.bass + 12
                pluck(
                    pitch, at: start + Int(unit() * 480), seconds: 1.6, gain: 0.16 + 0.1 * unit(),
                    pan: 0.2 + 0.6 * unit(), into: &left, &right)
            }
            note += 1
        }
        return mix(left, right)
    }

    /// Adds one string.
    ///
    /// - Parameters:
    ///   - pitch: MIDI note number; 69 is 440 Hz.
    ///   - pan: 0 left, 1 right.
    private mutating func pluck(
        _ pitch: Int, at start: Int, seconds: Double, gain: Double, pan: Double,
        into left: inout [Float], _ right: inout [Float]
    ) {
        let rate = Double(Self.sampleRate)
        let period = rate / (440 * pow(2, (Double(pitch) - 69) / 12))
        let length = max(2, Int(period - 0.5))
        var string = (0..<length).map { _ in 2 * unit() - 1 }
        let frames = min(Int(seconds * rate), left.count - start)
        let decay = pow(0.001, period / rate / seconds)
        let gainLeft = gain * sqrt(1 - pan)
        let gainRight = gain * sqrt(pan)
        var place = 0
        for frame in 0..<max(0, frames) {
            let next = place + 1 == length ? 0 : place + 1
            let value = string[place]
            string[place] = decay * 0.5 * (value + string[next])
            place = next
            left[start + frame] += Float(gainLeft * value)
            right[start + frame] += Float(gainRight * value)
        }
    }

    /// Interleaves, keeps the peak below full scale, and fades the end.
    private mutating func mix(_ left: [Float], _ right: [Float]) -> [Float] {
        let peak = max(left.reduce(0) { max($0, abs($1)) }, right.reduce(0) { max($0, abs($1)) })
        let gain = peak > 0 ? 0.7 / peak : 1
        let fade = min(left.count, Self.sampleRate / 20)
        var samples: [Float] = []
        samples.reserveCapacity(left.count * 2)
        for frame in left.indices {
            let rest = left.count - frame
            let level = gain * (rest < fade ? Float(rest) / Float(fade) : 1)
            // A breath of noise: no run of zeros that could be taken for a dropout.
            samples.append(left[frame] * level + Float(unit() - 0.5) * Self.breath)
            samples.append(right[frame] * level + Float(unit() - 0.5) * Self.breath)
        }
        return samples
    }

    /// −60 dB; well above one step of 16 bits.
    private static let breath: Float = 0.002

    private mutating func unit() -> Double {
        random ^= random << 13
        random ^= random >> 7
        random ^= random << 17
        return Double(random >> 11) / 9_007_199_254_740_992
    }
}
