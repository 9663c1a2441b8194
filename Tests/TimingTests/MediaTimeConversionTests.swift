import Testing
import TuttiChance
import TuttiTiming

/// Conversions between timescales, frames, nanoseconds and durations.
struct MediaTimeConversionTests {
    @Test func `each rounding rule does what it says on thirds and halves`() {
        // 7/6 s = 2⅓ halves; 5/4 s = 2½ halves.
        let third = MediaTime(value: 7, timescale: 6)
        let half = MediaTime(value: 5, timescale: 4)
        func halves(_ time: MediaTime, _ rounding: MediaTime.Rounding) -> Int64 {
            time.converted(toTimescale: 2, rounding: rounding).value
        }
        #expect(halves(third, .halfAwayFromZero) == 2)
        #expect(halves(-third, .halfAwayFromZero) == -2)
        #expect(halves(half, .halfAwayFromZero) == 3)
        #expect(halves(-half, .halfAwayFromZero) == -3)
        #expect(halves(half, .towardZero) == 2)
        #expect(halves(-half, .towardZero) == -2)
        #expect(halves(third, .awayFromZero) == 3)
        #expect(halves(-third, .awayFromZero) == -3)
        #expect(halves(third, .towardPositiveInfinity) == 3)
        #expect(halves(-third, .towardPositiveInfinity) == -2)
        #expect(halves(third, .towardNegativeInfinity) == 2)
        #expect(halves(-third, .towardNegativeInfinity) == -3)
    }

    @Test(arguments: MediaTime.Rounding.allCases)
    func `a conversion is less than a unit off and exact ones are not marked`(
        rounding: MediaTime.Rounding
    ) {
        var random = SplitMix64(seed: 20)
        for _ in 0..<3_000 {
            let time = MediaTime(value: random.anySize(), timescale: random.timescale())
            let scale = random.timescale()
            let result = time.converted(toTimescale: scale, rounding: rounding)
            let exact = Int128(time.value) * Int128(scale)
            guard result.isNumeric else {
                let overflow = exact / Int128(time.timescale)
                #expect(overflow.magnitude >= UInt128(Int64.max))
                continue
            }
            let error = Int128(result.value) * Int128(time.timescale) - exact
            #expect(error.magnitude < UInt128(time.timescale))
            #expect(result.wasRounded == (error != 0))
            switch rounding {
            case .halfAwayFromZero: #expect(2 * error.magnitude <= UInt128(time.timescale))
            case .towardZero: #expect(exact < 0 ? error >= 0 : error <= 0)
            case .awayFromZero: #expect(exact < 0 ? error <= 0 : error >= 0)
            case .towardPositiveInfinity: #expect(error >= 0)
            case .towardNegativeInfinity: #expect(error <= 0)
            }
        }
    }

    @Test func `a rounded time stays marked through arithmetic`() {
        let rounded = MediaTime(value: 1, timescale: 3).converted(toTimescale: 2)
        #expect(rounded.wasRounded)
        #expect((rounded + MediaTime(value: 1, timescale: 2)).wasRounded)
        #expect((rounded * 2).wasRounded)
        #expect(rounded == MediaTime(value: 1, timescale: 2))
    }

    @Test func `a timescale below one is invalid`() {
        for scale in [0, -1, Int32.min] {
            #expect(MediaTime(value: 1, timescale: scale) == .invalid)
            #expect(MediaTime(value: 1, timescale: 1).converted(toTimescale: scale) == .invalid)
        }
        #expect(MediaTime.indefinite.converted(toTimescale: 0) == .indefinite)
    }

    /// A frame is at least 1.3 µs long at these rates, so half a nanosecond never reaches the next.
    @Test(arguments: [8_000, 11_025, 44_100, 48_000, 96_000, 192_000, 768_000])
    func `every frame survives nanoseconds and seconds`(rate: Int) {
        var random = SplitMix64(seed: UInt64(rate))
        for round in 0..<600 {
            let frame = round < 100 ? Int64(round) : Int64(random.next() >> 24)
            let time = MediaTime(frame: frame, sampleRate: rate)
            #expect(time.frame(atSampleRate: rate) == frame)
            #expect(MediaTime(seconds: time.seconds).frame(atSampleRate: rate) == frame)
            #expect(time.nanoseconds.map { MediaTime($0).frame(atSampleRate: rate) } == frame)
            #expect(
                time.nanoseconds.map {
                    MediaTime($0 + Nanoseconds(1))
                        .frame(atSampleRate: rate, rounding: .towardNegativeInfinity)
                } == frame)
        }
    }

    @Test func `frames of times without a number saturate or are nil`() {
        #expect(MediaTime.positiveInfinity.frame(atSampleRate: 48_000) == .max)
        #expect(MediaTime.negativeInfinity.frame(atSampleRate: 48_000) == .min)
        #expect(MediaTime.invalid.frame(atSampleRate: 48_000) == nil)
        #expect(MediaTime.zero.frame(atSampleRate: 0) == nil)
        #expect(MediaTime.zero.frame(atSampleRate: .max) == nil)
        #expect(MediaTime(value: .max, timescale: 1).frame(atSampleRate: 48_000) == .max)
        #expect(MediaTime(frame: 1, sampleRate: .max) == .invalid)
    }

    @Test func `durations of every size convert both ways`() {
        #expect(MediaTime(Duration.milliseconds(1_500)) == MediaTime(value: 3, timescale: 2))
        #expect(MediaTime(Duration(attoseconds: 500_000_000)).value == 1)
        #expect(MediaTime(Duration(attoseconds: 499_999_999)).value == 0)
        let century = Duration.seconds(3_155_760_000)
        #expect(MediaTime(century * 10) == MediaTime(value: 31_557_600_000, timescale: 1))
        #expect(MediaTime(Duration(attoseconds: .max)) == .positiveInfinity)
        #expect(MediaTime(Duration(attoseconds: .min)) == .negativeInfinity)
        #expect(MediaTime.indefinite.duration == nil)
        for time in MediaTimeTests.extreme {
            #expect(time.duration != nil)
        }
        #expect(MediaTime(value: 1, timescale: 4).duration == .milliseconds(250))
    }
}
