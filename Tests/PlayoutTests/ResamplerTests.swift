import Playout
import Testing
import Timing

import func Glibc.sin

@Suite struct ResamplerTests {
    /// −130 dB: the goal. Float samples alone carry about −150 dB, the filter bank −140 dB.
    static let floor = -130.0

    @Test(arguments: [997.0, 6_000, 15_000, 19_000], [-300.0, 300])
    func `a tone stays pure while the ratio is off by 300 ppm`(
        hertz: Double, partsPerMillion: Double
    ) {
        // The card's own clock and a line that runs off: the ratio is exactly constant.
        let rig = Rig()
        let rate = 1 + partsPerMillion * 1e-6
        let w = 2 * Double.pi * hertz / 48_000
        let voice = rig.voice { k in
            let x = Float(0.891 * sin(w * Double(k)))
            return (x, x)
        }
        let line = Line(itemFrame: 0, instant: rig.localAsGroup + .milliseconds(150), rate: rate)
        #expect(voice.start(line, clock: nil))
        rig.run(.milliseconds(500))
        let fit = ToneFit(rig.channel().suffix(8_000), frequency: w * rate)
        #expect(fit.thdn < Self.floor, "\(hertz) Hz at \(partsPerMillion) ppm: \(fit.thdn) dB")
        // Ripple and droop of the passband: 0.05 dB.
        #expect((fit.amplitude / 0.891 - 1).magnitude < 0.006)
    }

    @Test(
        arguments: [
            (44_100, 997.0), (44_100, 15_000), (96_000, 15_000), (192_000, 6_000), (8_000, 997),
        ])
    func `other rates arrive at their pitch and purity`(sampleRate: Int, hertz: Double) {
        let rig = Rig()
        let w = 2 * Double.pi * hertz / Double(sampleRate)
        let voice = rig.voice(sampleRate: sampleRate) { k in
            let x = Float(0.5 * sin(w * Double(k)))
            return (x, x)
        }
        let line = Line(itemFrame: 0, instant: rig.localAsGroup + .milliseconds(150))
        #expect(voice.start(line, clock: nil))
        rig.run(.milliseconds(450))
        let expected = 2 * Double.pi * hertz / 48_000
        let fit = ToneFit(rig.channel().suffix(6_000), frequency: expected)
        #expect((fit.frequency / expected - 1).magnitude < 1e-6)
        #expect(fit.thdn < -125, "\(sampleRate) → 48 000, \(hertz) Hz: \(fit.thdn) dB")
        #expect((fit.amplitude / 0.5 - 1).magnitude < 0.006)
    }

    @Test func `what lies above the card's band is kept out when the item is faster`() {
        // 30 kHz in a 96 kHz item would fold to 18 kHz at 48 kHz.
        let rig = Rig()
        let w = 2 * Double.pi * 30_000 / 96_000
        let voice = rig.voice(sampleRate: 96_000) { k in
            let x = Float(0.5 * sin(w * Double(k)))
            return (x, x)
        }
        let line = Line(itemFrame: 0, instant: rig.groupNow + .milliseconds(200))
        #expect(voice.start(line, clock: rig.clock))
        rig.run(.milliseconds(500))
        let loudest = rig.channel().suffix(6_000).map(\.magnitude).max()!
        #expect(loudest < 0.5e-6)  // −120 dB
    }
}
