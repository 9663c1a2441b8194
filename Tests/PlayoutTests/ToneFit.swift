import func Glibc.cos
import func Glibc.log10
import func Glibc.sin

/// The sine that fits a run of samples best, and what it leaves over.
struct ToneFit {
    var amplitude: Double
    /// Of `amplitude × sin(phase + frequency × k)`, radians.
    var phase: Double
    /// Radians per sample.
    var frequency: Double
    /// Root mean square of the remainder.
    var residual: Double

    /// Total harmonic distortion and noise against the tone, decibels.
    var thdn: Double { 20 * log10(residual / (amplitude / 2.0.squareRoot())) }

    /// Least squares over a, b, c in `a·sin + b·cos + c`, frequency refined by Gauss-Newton: the
    /// derivative of the tone by its frequency is the tone's quadrature times k.
    init(_ samples: ArraySlice<Float>, frequency guess: Double, refines: Bool = true) {
        frequency = guess
        amplitude = 0
        phase = 0
        residual = 0
        let x = samples.map(Double.init)
        let middle = Double(x.count - 1) / 2
        for _ in 0..<(refines ? 5 : 1) {
            var normal = [[Double]](repeating: [Double](repeating: 0, count: 5), count: 4)
            let a = amplitude * cos(phase + frequency * middle)
            let b = amplitude * sin(phase + frequency * middle)
            for k in x.indices {
                let t = Double(k) - middle
                let s = sin(frequency * t)
                let c = cos(frequency * t)
                let slope = refines ? t * (a * c - b * s) : 0
                let v = (s, c, 1.0, slope)
                let row = [v.0, v.1, v.2, v.3, x[k]]
                for i in 0..<4 { for j in 0..<5 { normal[i][j] += row[i] * row[j] } }
            }
            if normal[3][3] == 0 { normal[3][3] = 1 }
            let solution = Self.solve(normal)
            frequency += solution[3]
            let (p, q) = (solution[0], solution[1])
            amplitude = (p * p + q * q).squareRoot()
            phase = Self.angle(p, q) - frequency * middle
            var sum = 0.0
            for k in x.indices {
                let fitted = amplitude * sin(phase + frequency * Double(k)) + solution[2]
                sum += (x[k] - fitted) * (x[k] - fitted)
            }
            residual = (sum / Double(x.count)).squareRoot()
        }
    }

    private static func angle(_ x: Double, _ y: Double) -> Double {
        // atan2 by Newton on sin: enough steps from the quadrant's middle.
        var angle = x >= 0 ? (y >= 0 ? 0.8 : -0.8) : (y >= 0 ? 2.3 : -2.3)
        for _ in 0..<40 {
            let cross = y * cos(angle) - x * sin(angle)
            let dot = x * cos(angle) + y * sin(angle)
            angle += max(-0.5, min(0.5, cross / max(dot, 1e-30)))
        }
        return angle
    }

    private static func solve(_ matrix: [[Double]]) -> [Double] {
        var m = matrix
        let n = m.count
        for i in 0..<n {
            let pivot = (i..<n).max { m[$0][i].magnitude < m[$1][i].magnitude }!
            m.swapAt(i, pivot)
            for j in 0..<n where j != i {
                let factor = m[j][i] / m[i][i]
                for k in i...n { m[j][k] -= factor * m[i][k] }
            }
        }
        return (0..<n).map { m[$0][n] / m[$0][$0] }
    }
}
