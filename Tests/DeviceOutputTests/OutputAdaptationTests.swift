import Testing
import TuttiPlayout
import TuttiTiming

@testable import TuttiDeviceOutput

@Suite struct OutputAdaptationTests {
    private static let usual = [44_100, 48_000, 96_000]

    private func at(_ milliseconds: Int64) -> LocalInstant {
        LocalInstant(nanoseconds: 1_000_000_000) + .milliseconds(milliseconds)
    }

    private func adaptation(
        follows: Bool = true, releases: Bool = false, lengthens: Bool = true
    ) -> OutputAdaptation {
        OutputAdaptation(
            OutputWish(sampleRate: 48_000, bufferMilliseconds: 80),
            manner: OutputManner(
                followsItems: follows, releasesWhenIdle: releases, lengthensBuffer: lengthens))
    }

    private func item(_ rate: Int, _ serial: UInt64 = 1) -> ExpectedItem {
        var item = ExpectedItem()
        item.sampleRate = rate
        item.serial = serial
        return item
    }

    @Test(arguments: [
        (44_100, 44_100), (96_000, 96_000), (48_000, 48_000),
        // Not there, but twice it is.
        (22_050, 44_100), (24_000, 48_000),
        // Neither: as in the settings.
        (192_000, 48_000), (37_800, 48_000),
    ])
    func `a silent card goes to the item's rate, or a multiple of it`(rate: Int, wanted: Int) {
        var adaptation = adaptation()
        let step = adaptation.step(
            at: at(0), isActive: false, item: item(rate), rate: 48_000, offered: Self.usual)
        #expect(step == (wanted == 48_000 ? .goOn : .reopen))
        #expect(adaptation.wish.sampleRate == wanted)
        #expect(adaptation.seenTo.serial == 1)
    }

    @Test func `a queue that plays is never interrupted`() {
        var adaptation = adaptation()
        for time in 0..<1_000 {
            let step = adaptation.step(
                at: at(Int64(time)), isActive: true, item: item(44_100), rate: 48_000,
                offered: Self.usual)
            #expect(step == .goOn)
            // What is faded out is waited for; what goes on is not.
            #expect((adaptation.seenTo.serial == 1) == (time > 60))
        }
        // That item has begun, resampled: no change behind it.
        let after = adaptation.step(
            at: at(1_001), isActive: false, item: item(44_100), rate: 48_000, offered: Self.usual)
        #expect(after == .goOn)
    }

    @Test func `a rate in the settings stays`() {
        var adaptation = adaptation(follows: false)
        let step = adaptation.step(
            at: at(0), isActive: false, item: item(44_100), rate: 48_000, offered: Self.usual)
        #expect(step == .goOn)
        #expect(adaptation.seenTo.serial == 1)
    }

    @Test func `a rate that the card does not keep is asked for once`() {
        var adaptation = adaptation()
        _ = adaptation.step(
            at: at(0), isActive: false, item: item(44_100), rate: 48_000, offered: Self.usual)
        adaptation.opened(with: 48_000)
        let step = adaptation.step(
            at: at(9), isActive: false, item: item(44_100, 2), rate: 48_000, offered: Self.usual)
        #expect(step == .goOn)
    }

    @Test func `a card is let go of when nothing has sounded for seconds, and not before`() {
        var adaptation = adaptation(releases: true)
        func step(_ time: Int64, active: Bool = false, serial: UInt64 = 0) -> OutputAdaptation.Step
        {
            adaptation.step(
                at: at(time), isActive: active, item: item(48_000, serial), rate: 48_000,
                offered: Self.usual)
        }
        #expect(step(0) == .goOn)
        #expect(step(4_900) == .goOn)
        #expect(step(5_000, active: true) == .goOn)
        #expect(step(9_900, serial: 1) == .goOn)
        #expect(step(14_800, serial: 1) == .goOn)
        #expect(step(15_000, serial: 1) == .release)
    }

    @Test func `a card that runs dry again and again gets more, up to two seconds`() {
        var adaptation = adaptation()
        var lengths: [Int] = []
        for time in 0..<40 where adaptation.ranDry(at: at(Int64(time) * 200)) {
            lengths.append(adaptation.wish.bufferMilliseconds)
        }
        #expect(lengths == [160, 320, 640, 1_280, 2_000])
    }

    @Test func `a card that runs dry once in a while keeps its buffer`() {
        var adaptation = adaptation()
        for time in 0..<40 {
            let isLonger = adaptation.ranDry(at: at(Int64(time) * 4_000))
            #expect(!isLonger)
        }
        #expect(adaptation.wish.bufferMilliseconds == 80)
    }
}
