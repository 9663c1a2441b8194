import Testing
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

import func Glibc.cos
import func Glibc.sin

/// One sample: a full period at 48 kHz, seconds.
private let sample = 1.0 / 48_000

@Suite struct LineTests {
    /// A tone whose phase says which frame of the item is heard.
    private static let w = 2 * Double.pi * 700 / 48_000
    private static func tone(_ k: Int64) -> (Float, Float) {
        let x = Float(0.5 * sin(w * Double(k)))
        return (x, x)
    }

    /// Seconds by which the tone in `rig`'s output is late against `line`, measured in the sound.
    private func lateness(_ rig: Rig, _ line: Line, in range: Range<Int>) -> Double {
        let fit = ToneFit(rig.channel()[range], frequency: Self.w)
        let at = rig.group(ofHeard: range.lowerBound)
        let start = Double(line.instant.nanoseconds - 500_000_000_000) * 1e-9
        let wanted = Self.w * (line.itemFrame + (at - start) * 48_000)
        let difference = wanted - fit.phase
        let turn = 2 * Double.pi
        let wrapped = difference - turn * Double(Int64(saturating: difference / turn))
        return wrapped / Self.w * sample
    }

    @Test(arguments: [0, 1, 7_777, 10_416, 20_833, 999_999] as [Int64])
    func `a start hits its instant to a hundredth of a frame`(nanoseconds: Int64) {
        let rig = Rig(partsPerMillion: 80, hostPartsPerMillion: -30)
        let voice = rig.voice(Self.tone)
        rig.run(.milliseconds(500))
        let line = Line(
            itemFrame: 0, instant: rig.groupNow + .milliseconds(60) + Nanoseconds(nanoseconds))
        #expect(voice.start(line, clock: rig.clock))
        rig.run(.milliseconds(250))
        let begin = rig.channel().firstIndex { $0.magnitude > 0.01 }!
        // The first 40 ms, before any servo could have brought it there.
        let late = lateness(rig, line, in: begin + 100..<begin + 2_000)
        #expect(late.magnitude < 0.01 * sample, "\(late / sample) frames")
        let silence = rig.channel().prefix(begin - 60).map(\.magnitude).max()!
        #expect(silence < 1e-6)
        // The beginning itself stands where the line says.
        let started = rig.group(ofHeard: begin)
        let wanted = Double(line.instant.nanoseconds - 500_000_000_000) * 1e-9
        #expect((started - wanted).magnitude < 2 * sample)
    }

    @Test func `two voices that meet sound exactly like one`() {
        func play(split: Double?) -> [Float] {
            // Frames before it belong to the first voice, the others to the second.
            let border = split.map { Int64($0) + (Double(Int64($0)) < $0 ? 1 : 0) }
            let rig = Rig(partsPerMillion: -120, hostPartsPerMillion: 15)
            let a = rig.voice(frames: 0..<40_000, Self.tone)
            let b = rig.voice(frames: max(0, (border ?? 0) - 50)..<40_000, Self.tone)
            rig.run(.milliseconds(300))
            let line = Line(itemFrame: 0, instant: rig.groupNow + .milliseconds(70))
            a.start(line, clock: rig.clock, endFrame: border)
            rig.run(.milliseconds(100))
            if let split {
                let meets = line.instant + Nanoseconds(seconds: split / 48_000)
                b.start(Line(itemFrame: split, instant: meets), clock: rig.clock)
            }
            rig.run(.milliseconds(500))
            return rig.channel()
        }
        let whole = play(split: nil)
        // 12 000 frames are 250 ms to the nanosecond; the other split falls between.
        for split in [12_000, 12_345, 12_345.25] {
            let parts = play(split: split)
            #expect(parts.count == whole.count)
            let difference = zip(whole, parts).map { ($0 - $1).magnitude }.max()!
            // The instant is a whole nanosecond, ±0.5 ns or 2.4e-5 frames: 0.5 × w × 2.4e-5 =
            // 1.1e-6, and a frame that rings over the seam carries twice that.
            #expect(difference < 3e-6, "split at \(split): \(difference)")
        }
        #expect(whole.map(\.magnitude).max()! > 0.49)
    }

    @Test func `a row of voices of five milliseconds sounds exactly like one`() {
        func play(pieces: Int) -> [Float] {
            let rig = Rig(partsPerMillion: -120, hostPartsPerMillion: 15)
            let (begin, length) = (Int64(4_800), Int64(240))
            var borders = (0..<pieces).map { begin + Int64($0) * length }
            borders = [0] + borders + [20_000]
            let voices = zip(borders, borders.dropFirst()).map { from, _ in
                rig.voice(frames: max(0, from - 50)..<20_000, Self.tone)
            }
            rig.run(.milliseconds(300))
            let start = rig.groupNow + .milliseconds(70)
            for (voice, (from, to)) in zip(voices, zip(borders, borders.dropFirst())) {
                let meets = start + Nanoseconds(seconds: Double(from) / 48_000)
                voice.start(
                    Line(itemFrame: Double(from), instant: meets), clock: rig.clock, endFrame: to)
            }
            rig.run(.milliseconds(500))
            return rig.channel()
        }
        let (whole, row) = (play(pieces: 0), play(pieces: 20))
        let difference = zip(whole, row).map { ($0 - $1).magnitude }.max()!
        #expect(difference < 3e-6, "\(difference)")
        #expect(whole.map(\.magnitude).max()! > 0.49)
    }

    @Test func `the end of an item rings out and is reported`() {
        let rig = Rig()
        let voice = rig.voice(frames: 0..<4_800, Self.tone)
        rig.run(.milliseconds(200))
        voice.start(Line(itemFrame: 0, instant: rig.groupNow + .milliseconds(50)), clock: rig.clock)
        rig.run(.milliseconds(250))
        #expect(voice.report.state == .ended)
        let heard = rig.channel()
        let first = heard.firstIndex { $0.magnitude > 1e-3 }!
        let last = heard.lastIndex { $0.magnitude > 1e-3 }!
        // 4 800 frames and half a filter at each end.
        #expect((4_795...4_864).contains(last - first + 1), "\(last - first + 1)")
        #expect(voice.report.starvedFrames == 0)
    }

    @Test func `a late joiner is on the line from its first sound, and fades in`() {
        let rig = Rig(partsPerMillion: 50)
        let voice = rig.voice(Self.tone)
        rig.run(.milliseconds(400))
        let line = Line(itemFrame: 0, instant: rig.groupNow - .milliseconds(100))
        voice.start(line, clock: rig.clock)
        rig.run(.milliseconds(300))
        let begin = rig.channel().firstIndex { $0 != 0 }!
        let late = lateness(rig, line, in: begin + 240..<begin + 2_400)
        #expect(late.magnitude < 0.01 * sample, "\(late / sample) frames")
        // A fade of 240 frames: after 24 of them cos² has let through 2.4 %.
        #expect(rig.channel()[begin..<begin + 24].map(\.magnitude).max()! < 0.5 * 0.03)
    }

    @Test func `pause and resume stay on the line and do not click`() {
        let rig = Rig(partsPerMillion: 20)
        let voice = rig.voice(Self.tone)
        rig.run(.milliseconds(300))
        let line = Line(itemFrame: 0, instant: rig.groupNow + .milliseconds(40))
        voice.start(line, clock: rig.clock, fadeIn: true)
        rig.run(.milliseconds(200))
        let pause = rig.groupNow + .milliseconds(70)
        voice.stop(at: pause)
        rig.run(.milliseconds(200))
        #expect(voice.report.state == .stopped)
        let silent = rig.channel().count - 1_000
        #expect(rig.channel().suffix(1_000).allSatisfy { $0 == 0 })
        let paused = line.itemFrame + (pause - line.instant).seconds * 48_000
        let resumed = Line(itemFrame: paused, instant: rig.groupNow + .milliseconds(60))
        voice.start(resumed, clock: rig.clock, fadeIn: true)
        rig.run(.milliseconds(250))
        #expect(voice.report.starvedFrames == 0)
        let begin = rig.channel()[silent...].firstIndex { $0 != 0 }!
        let late = lateness(rig, resumed, in: begin + 240..<begin + 2_400)
        #expect(late.magnitude < 0.01 * sample)
        #expect(roughness(rig.channel()) < Self.smooth)
        // Silence at the very instant, ± a frame.
        let last = rig.channel()[..<silent].lastIndex { $0 != 0 }!
        let wanted = Double(pause.nanoseconds - 500_000_000_000) * 1e-9
        #expect((rig.group(ofHeard: last) - wanted).magnitude < 3 * sample)
    }

    /// The second difference of 0.5·sin is at most 0.5·w² = 4.2e-3; a raised cosine of 240 frames
    /// adds 2·(π/480)·0.5·w + 0.25·(π/240)² = 6.4e-4. An unfaded edge of the tone has up to 0.5.
    private static let smooth: Float = 4.2e-3 + 7e-4 + 1e-4

    private func roughness(_ x: [Float]) -> Float {
        guard x.count > 2 else { return 0 }
        var worst: Float = 0
        for i in 1..<x.count - 1 {
            let second = x[i - 1] - 2 * x[i] + x[i + 1]
            worst = max(worst, second.magnitude)
        }
        return worst
    }

    @Test func `a stop without an instant and a release fade out`() {
        for releases in [false, true] {
            let rig = Rig()
            let voice = rig.voice(Self.tone)
            rig.run(.milliseconds(200))
            voice.start(
                Line(itemFrame: 0, instant: rig.groupNow - .milliseconds(1)), clock: rig.clock)
            rig.run(.milliseconds(200))
            if releases { voice.release() } else { voice.stop(at: nil) }
            rig.run(.milliseconds(100))
            #expect(rig.channel().suffix(480).allSatisfy { $0 == 0 })
            #expect(roughness(rig.channel()) < Self.smooth)
        }
    }

    @Test func `a ring that runs dry fades out, and comes back on the line`() {
        let rig = Rig(partsPerMillion: -50)
        let voice = rig.voice(Self.tone)
        rig.run(.milliseconds(300))
        let line = Line(itemFrame: 0, instant: rig.groupNow + .milliseconds(30))
        voice.start(line, clock: rig.clock, fadeIn: true)
        rig.run(.milliseconds(150))
        rig.isFeeding = false
        rig.run(.milliseconds(900))
        #expect(voice.report.state == .starved)
        let starved = voice.report.starvedFrames
        #expect(starved > 4_800)
        #expect(rig.channel().suffix(480).allSatisfy { $0 == 0 })
        let silent = rig.channel().count
        rig.isFeeding = true
        rig.run(.milliseconds(200))
        #expect(voice.report.state == .playing)
        #expect(roughness(rig.channel()) < Self.smooth)
        let begin = rig.channel()[(silent - 480)...].firstIndex { $0 != 0 }!
        let late = lateness(rig, line, in: begin + 240..<begin + 2_400)
        #expect(late.magnitude < 0.01 * sample, "\(late / sample) frames")
    }

    @Test func `frames before the ring's first are silence, then the line is met`() {
        let rig = Rig()
        let voice = rig.voice(frames: 9_600..<1_000_000, Self.tone)
        rig.run(.milliseconds(200))
        let line = Line(itemFrame: 0, instant: rig.groupNow + .milliseconds(50))
        voice.start(line, clock: rig.clock)
        rig.run(.milliseconds(450))
        let begin = rig.channel().firstIndex { $0 != 0 }!
        let wanted =
            Double((line.instant - GroupInstant(nanoseconds: 500_000_000_000)).count) * 1e-9
        // Half a filter behind frame 9 600.
        #expect((rig.group(ofHeard: begin) - wanted - (9_600 + 32) * sample).magnitude < 3 * sample)
        let late = lateness(rig, line, in: begin + 240..<begin + 2_400)
        #expect(late.magnitude < 0.01 * sample)
        #expect(roughness(rig.channel()) < Self.smooth)
    }

    @Test func `a new line with another rate takes over at its instant without an edge`() {
        let rig = Rig()
        let voice = rig.voice(Self.tone)
        rig.run(.milliseconds(200))
        let line = Line(itemFrame: 0, instant: rig.groupNow + .milliseconds(30))
        voice.start(line, clock: rig.clock, fadeIn: true)
        rig.run(.milliseconds(100))
        let change = rig.groupNow + .milliseconds(75)
        let frame = (change - line.instant).seconds * 48_000
        let faster = Line(itemFrame: frame, instant: change, rate: 1.02)
        voice.start(faster, clock: rig.clock)
        rig.run(.milliseconds(300))
        #expect(roughness(rig.channel()) < Self.smooth)
        let late = rig.lateness(of: voice, on: faster)!
        #expect(late.magnitude < 0.01 * sample, "\(late)")
        let fit = ToneFit(rig.channel().suffix(2_000), frequency: Self.w * 1.02)
        #expect((fit.frequency / (Self.w * 1.02) - 1).magnitude < 1e-6)
    }

    /// In a cross-fade of equal power two tones in phase add up to √2 of one; each gain, the sine
    /// of a raised cosine of 720 frames, adds 2·(π²/4/720)·0.5·w + 0.5·2·(π²/4)·(π/720)²/2 = 4e-4
    /// at most.
    private static let crossing: Float = 1.4143 * 4.2e-3 + 2 * 4e-4 + 1e-4

    @Test func `a small correction of the line is slewed, a large one is a cross-fade`() {
        for milliseconds in [2, 50] as [Int64] {
            let rig = Rig()
            let voice = rig.voice(Self.tone)
            rig.run(.milliseconds(200))
            var line = Line(itemFrame: 0, instant: rig.groupNow + .milliseconds(30))
            voice.start(line, clock: rig.clock, fadeIn: true)
            rig.run(.milliseconds(200))
            line.instant += .milliseconds(milliseconds)
            voice.start(line, clock: rig.clock)
            rig.run(.milliseconds(200))
            #expect(roughness(rig.channel()) < Self.crossing, "\(milliseconds) ms")
            let late = rig.lateness(of: voice, on: line)!
            if milliseconds > 5 {
                #expect(late.magnitude < 0.01 * sample)
            } else {
                #expect(late < -1.5e-3 && late > -2.0e-3, "\(late)")
                #expect(voice.report.ratioPartsPerMillion < 0)
            }
        }
    }

    @Test(arguments: [1_500, 300, -1_500] as [Int64])
    func `another latency offset and another line of the clock are followed at once`(
        microseconds: Int64
    ) {
        let rig = Rig(partsPerMillion: 40)
        let voice = rig.voice(Self.tone)
        rig.run(.milliseconds(200))
        let line = Line(itemFrame: 0, instant: rig.groupNow + .milliseconds(100))
        voice.start(line, clock: rig.clock, fadeIn: true)
        rig.run(.seconds(5))
        let move = Nanoseconds.microseconds(microseconds)
        func expectMoved(by seconds: Double) {
            rig.run(.milliseconds(150))
            for _ in 0..<10 {
                let late = rig.lateness(of: voice, on: line)! + seconds
                #expect(late.magnitude < 5e-6, "\(late)")
                rig.run(.milliseconds(100))
            }
        }
        expectMoved(by: 0)
        rig.engine.port.setLatencyOffset(move)
        expectMoved(by: move.seconds)
        // The clock is found to be ahead by as much, so the room is to be later again.
        let map = rig.truth
        rig.clock.store(
            SharedClock(
                map: ClockMap(from: rig.now, to: map(rig.now) - move, skew: map.skew),
                uncertainty: .zero, estimatedAt: rig.now, epoch: 2, quality: .locked))
        expectMoved(by: 0)
        #expect(roughness(rig.channel()) < Self.crossing)
    }

    /// What lies further back than the ring keeps is missing, and only that.
    @Test(arguments: [500, -330, -400, -1_000] as [Int64])
    func `a large latency offset is silent for as long as what is missing`(milliseconds: Int64) {
        let rig = Rig()
        let voice = rig.voice(Self.tone)
        rig.run(.milliseconds(200))
        let line = Line(itemFrame: 0, instant: rig.groupNow + .milliseconds(100))
        voice.start(line, clock: rig.clock)
        rig.run(.seconds(5))
        let begin = rig.channel().count
        rig.engine.port.setLatencyOffset(.milliseconds(milliseconds))
        rig.run(.seconds(2))
        var (silence, longest) = (0, 0)
        for value in rig.channel()[begin...] {
            silence = value.magnitude < 1e-4 ? silence + 1 : 0
            longest = max(longest, silence)
        }
        let kept = OutputPort.ringFrames / 8
        let missing = max(0, -Int(milliseconds) * 48 - kept)
        // A period more, in which the voice has faded out and in.
        #expect((missing...missing + (missing > 0 ? 480 : 0)).contains(longest), "\(longest)")
        #expect((rig.lateness(of: voice, on: line)! + Double(milliseconds) * 1e-3).magnitude < 1e-6)
    }

    @Test func `a latency offset makes an output play earlier, without a click`() {
        let rig = Rig()
        let voice = rig.voice(Self.tone)
        rig.engine.port.setLatencyOffset(.milliseconds(30))
        rig.run(.milliseconds(200))
        let line = Line(itemFrame: 0, instant: rig.groupNow + .milliseconds(100))
        voice.start(line, clock: rig.clock, fadeIn: true)
        rig.run(.milliseconds(250))
        #expect((rig.lateness(of: voice, on: line)! + 0.03).magnitude < 0.01 * sample)
        rig.engine.port.setLatencyOffset(.milliseconds(-10))
        rig.run(.milliseconds(100))
        #expect((rig.lateness(of: voice, on: line)! - 0.01).magnitude < 0.01 * sample)
        #expect(roughness(rig.channel()) < Self.crossing)
    }
}

@Suite struct VoiceReportTests {
    @Test func `the reported frame is the line's beginning, the position, the stop and the end`() {
        let rig = Rig()
        let voice = rig.voice(frames: 0..<48_000)
        #expect(voice.report.state == .idle)
        rig.run(.milliseconds(200))
        let line = Line(itemFrame: 100, instant: rig.groupNow + .milliseconds(200))
        voice.start(line, clock: rig.clock)
        rig.run(.milliseconds(50))
        #expect(voice.report.state == .armed && voice.report.itemFrame == 100)
        rig.run(.milliseconds(250))
        #expect(voice.report.state == .playing)
        #expect(rig.lateness(of: voice, on: line)!.magnitude < 1e-7)
        let stop = line.instant + .milliseconds(300)
        voice.stop(at: stop)
        rig.run(.milliseconds(200))
        #expect(voice.report.state == .stopped)
        // Within the frame that is the first of the silence.
        #expect((voice.report.itemFrame - 100 - 14_400 - 0.5).magnitude <= 0.5 + 1e-3)
        voice.start(Line(itemFrame: 47_000, instant: rig.groupNow), clock: rig.clock)
        rig.run(.milliseconds(300))
        #expect(voice.report.state == .ended && voice.report.itemFrame == 48_000)
    }

    @Test func `the ring keeps what a resume needs and gives the rest back`() {
        let rig = Rig(fidelity: .positionsOnly)
        let voice = rig.voice()
        rig.run(.milliseconds(200))
        let line = Line(itemFrame: 0, instant: rig.groupNow)
        voice.start(line, clock: rig.clock)
        rig.run(.seconds(2))
        voice.stop(at: nil)
        rig.run(.milliseconds(50))
        let stopped = Int64(voice.report.itemFrame)
        // An eighth of the ring, 341 ms, behind the stop; half a filter more.
        #expect(voice.ring.firstFrame <= stopped - 16_384)
        #expect(voice.ring.firstFrame > stopped - 16_384 - 480)
    }

    @Test func `frames that the line has passed before they came are let go`() {
        let rig = Rig(fidelity: .positionsOnly)
        let voice = rig.engine.port.makeVoice(sampleRate: 48_000)!
        rig.run(.milliseconds(200))
        voice.start(Line(itemFrame: 480_000, instant: rig.groupNow), clock: rig.clock)
        let some = [Float](repeating: 0, count: 96_000)
        for _ in 0..<20 {
            _ = some.withUnsafeBufferPointer { voice.ring.write($0) }
            rig.run(.milliseconds(20))
        }
        // More than three rings of frames were let through to reach the line.
        #expect(voice.ring.endFrame > 480_000)
        #expect(voice.report.state == .playing)
    }
}

@Suite struct VoiceCornerTests {
    @Test func `a voice that is stopped before it begins stays silent`() {
        for isNow in [true, false] {
            let rig = Rig()
            let voice = rig.voice { _ in (0.5, 0.5) }
            rig.run(.milliseconds(150))
            let line = Line(itemFrame: 0, instant: rig.groupNow + .milliseconds(100))
            voice.start(line, clock: rig.clock)
            rig.run(.milliseconds(30))
            voice.stop(at: isNow ? nil : line.instant)
            rig.run(.milliseconds(200))
            #expect(voice.report.state == .stopped)
            #expect(rig.heard.allSatisfy { $0 == 0 })
        }
    }

    @Test func `a line that jumps back plays what lies before the first beginning`() {
        let rig = Rig()
        let voice = rig.voice { _ in (0.5, 0.5) }
        rig.run(.milliseconds(150))
        let at = rig.groupNow + .milliseconds(60)
        voice.start(Line(itemFrame: 9_600, instant: at), clock: rig.clock)
        rig.run(.milliseconds(150))
        // 100 ms before the frame that it began with.
        let back = Line(itemFrame: 4_800, instant: rig.groupNow)
        voice.start(back, clock: rig.clock)
        rig.run(.milliseconds(100))
        #expect(rig.channel().suffix(480).allSatisfy { ($0 - 0.5).magnitude < 1e-3 })
        #expect(rig.lateness(of: voice, on: back)!.magnitude < 1e-6)
    }
}
