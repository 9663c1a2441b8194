import Testing
import TuttiPlayout
import TuttiTiming

@testable import TuttiPlayback

/// A seek that has not arrived, and what is asked for meanwhile: whatever that is, item time comes to
/// where the seek goes, or the seek says that it did not.
@Suite struct PendingSeekTests {
    /// What may be asked for meanwhile.
    enum Order: String, CaseIterable {
        // About wherever item time is, or is going.
        case play, pause, faster, backwards, immediately
        case lineNow, lineLater, pauseNow, pauseLater
        case otherClock, otherOutput, refresh, loseCard, preroll, endPreroll
        // Newer than the seek.
        case lineElsewhere, pauseElsewhere, seekElsewhere, nextItem, endLater, giveUp

        static let supersedes: Set<Order> = [
            .lineElsewhere, .pauseElsewhere, .seekElsewhere, .nextItem, .endLater, .giveUp,
        ]
        /// After which time stands until something else is asked for.
        static let pauses: Set<Order> = [.pause, .pauseNow, .pauseLater, .loseCard]
        /// Three in a row of these; two of all.
        static let often: [Order] = [
            .play, .pause, .faster, .immediately, .lineNow, .lineLater, .pauseNow, .pauseLater,
            .otherClock, .loseCard, .giveUp,
        ]
        static let keepsRate: Set<Order> = [
            .otherClock, .otherOutput, .refresh, .preroll, .endPreroll,
        ]
    }

    enum Beginning: String, CaseIterable { case paused, playing, waiting, unloaded }

    /// What a player is set to and does when the seek is asked for, and how fast everything goes on.
    struct Scene: CustomTestStringConvertible {
        var beginning = Beginning.playing
        var waits = true
        /// From one order to the next.
        var gap: Int64 = 2
        var decoding: Int64 = 30
        /// Asked for as a line with that time, which begins at once, instead of a seek.
        var isLine = false

        var testDescription: String {
            "\(beginning), waits \(waits), \(gap) ms, reads \(decoding) ms, line \(isLine)"
        }
    }

    static let target = 20.0 * 48_000

    static let scenes: [Scene] = Beginning.allCases.flatMap { beginning in
        [true, false].flatMap { waits in
            [(0, 0), (2, 20), (2, 130), (40, 20), (130, 130)].map { gap, decoding in
                Scene(beginning: beginning, waits: waits, gap: gap, decoding: decoding)
            }
        }
    }

    @Test(arguments: scenes)
    func `two orders in a row do not lose a seek`(scene: Scene) {
        for first in Order.allCases {
            guard check([first], scene) else { return }
            for second in Order.allCases {
                guard check([first, second], scene) else { return }
            }
        }
    }

    @Test(arguments: Beginning.allCases.filter { $0 != .unloaded }, [2, 130])
    func `nor do they a line with a time, at once`(beginning: Beginning, gap: Int64) {
        let scene = Scene(beginning: beginning, waits: false, gap: gap, isLine: true)
        for first in Order.allCases {
            guard check([first], scene) else { return }
            for second in Order.allCases {
                guard check([first, second], scene) else { return }
            }
        }
    }

    @Test(arguments: [true, false])
    func `nor do three`(waits: Bool) {
        let scene = Scene(waits: waits)
        for first in Order.often {
            for second in Order.often {
                for third in Order.often {
                    guard check([first, second, third], scene) else { return }
                }
            }
        }
    }

    private func check(_ orders: [Order], _ scene: Scene) -> Bool {
        let fault = fault(of: orders, scene)
        if let fault {
            Issue.record("\(scene.testDescription): \(orders.map(\.rawValue)): \(fault)")
        }
        return fault == nil
    }

    /// What is not as it has to be; `nil`: nothing.
    private func fault(of orders: [Order], _ scene: Scene) -> String? {
        var stage = MachineStage(
            waits: scene.waits, isLoaded: scene.beginning != .unloaded,
            decodingMilliseconds: scene.decoding)
        switch scene.beginning {
        case .paused, .unloaded: stage.goOn(milliseconds: 300)
        case .playing:
            stage.take(.play)
            stage.goOn(milliseconds: 500)
        case .waiting: stage.take(.play)
        }
        let begin = stage.now
        if scene.isLine {
            let time = MediaTime(frame: Int64(Self.target), sampleRate: MachineStage.sampleRate)
            stage.perform(.line(rate: 1, time: time, hostTime: nil))
        } else {
            stage.seek(to: Self.target)
        }
        for order in orders {
            stage.goOn(milliseconds: scene.gap)
            stage.advance()
            let hasArrived = stage.endedSeeks.first?.finished == true
            Self.give(order, &stage)
            guard Order.supersedes.contains(order), !stage.wasRefused else { continue }
            stage.comeToRest()
            let hasFailed = stage.endedSeeks.first?.finished == false
            return stage.fault
                ?? (hasFailed || hasArrived || scene.isLine ? nil : "the seek says that it arrived")
        }
        let arrivedAt = stage.frameAtSeekEnd
        stage.comeToRest()
        if let fault = stage.fault { return fault }
        if !scene.isLine, stage.endedSeeks.first?.finished != true {
            return "the seek did not arrive"
        }
        // There, or what was played since.
        let slack = (stage.now - begin).seconds * 1.5 * Double(MachineStage.sampleRate)
        let first = Self.target - (orders.contains(.backwards) ? slack : 0)
        let places = ["in the end": stage.machine.currentFrame, "when it arrived": arrivedAt]
        for (what, place) in places {
            guard let place else { continue }
            if place < first || place > Self.target + slack {
                return "\(what) item time is \(place)"
            }
            let isStill =
                scene.beginning == .paused && !scene.isLine
                && orders.allSatisfy { Order.pauses.contains($0) || Order.keepsRate.contains($0) }
            if isStill, place != Self.target { return "\(what) item time is \(place)" }
        }
        return nil
    }

    private static func give(_ order: Order, _ stage: inout MachineStage) {
        let soon = stage.machine.soon
        switch order {
        case .play: stage.take(.play)
        case .pause: stage.take(.pause)
        case .faster: stage.take(.faster)
        case .backwards: stage.perform(.rate(-1, waits: nil))
        case .immediately: stage.perform(.rate(1, waits: false))
        case .lineNow: stage.perform(.line(rate: 1.25, time: .invalid, hostTime: nil))
        case .lineLater:
            stage.perform(
                .line(rate: 1, time: .invalid, hostTime: soon + .milliseconds(200)))
        case .pauseNow: stage.perform(.line(rate: 0, time: .invalid, hostTime: nil))
        case .pauseLater: stage.take(.pauseLater)
        case .otherClock: stage.take(.otherClock)
        case .otherOutput: stage.take(.otherOutput)
        case .refresh: stage.perform(.refresh)
        case .loseCard:
            stage.hasCard = false
            stage.receive(.cardChanged)
            stage.hasCard = true
            stage.receive(.cardChanged)
        case .preroll: stage.perform(.preroll(rate: 1, time: .invalid))
        case .endPreroll: stage.perform(.endPreroll(nil))
        case .lineElsewhere: stage.take(.line)
        case .pauseElsewhere:
            stage.perform(.line(rate: 0, time: MediaTime(seconds: 5), hostTime: nil))
        case .seekElsewhere: stage.take(.seekAhead)
        case .nextItem: stage.take(.nextItem)
        case .endLater: stage.take(.endLater)
        case .giveUp: if let id = stage.machine.seek?.id { stage.perform(.endSeek(id)) }
        }
    }
}
