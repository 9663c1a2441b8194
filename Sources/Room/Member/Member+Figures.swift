import Logging
import TuttiClockSync
import TuttiDeviceOutput
import TuttiGroupControl
import TuttiLinuxHost
import TuttiPlayout
import TuttiTiming

// What a room says of itself: the figures of its card, its clock and its players.

extension Member {
    /// Holds what leaves the card against what the leader committed.
    func listen() {
        guard let stage, let output else { return }
        receiveInput(
            .heard(
                stage.look(
                    by: clock.cell, isRunning: output.state == .running, at: HostClock.now())))
    }

    func sayLine(_ finding: LineFinding, _ preparesAnew: Bool) {
        guard finding.isAlarm else {
            return logger.notice("this room plays what the leader committed again")
        }
        logger.error(
            preparesAnew
                ? "this room \(finding.words), and prepares itself anew"
                : "this room \(finding.words)")
    }

    func takeFigures() {
        var report = report()
        // Where nobody leads, or nothing is asked for, a bound that widens is no news to anybody.
        guard isJoined, !isIdle else {
            syncAlarm.rest()
            return receiveInput(.report(report))
        }
        switch syncAlarm.judge(&report) {
        case .raised(let bound)?:
            logger.warning(
                "this room may be further off than it should",
                metadata: [
                    "bound_us": "\(bound.count / 1_000)",
                    "target_us": "\(syncAlarm.target.count / 1_000)",
                ])
        case .cleared(let bound)?:
            logger.notice(
                "this room is within its target again",
                metadata: ["bound_us": "\(bound.count / 1_000)"])
        case nil: break
        }
        receiveInput(.report(report))
    }

    private func report() -> RoomReport {
        let card = output?.port.report ?? OutputReport()
        let voice = stage?.figures
        let lost: OutputError? = if case .lost(let error)? = output?.state { error } else { nil }
        noteBreaks(card, isLost: lost != nil)
        let figures = clock.figures
        var detail = ""
        if isJoined {
            detail = figures.complaint(timePort: welcome?.timePort) ?? ""
            noteComplaint(detail)
        }
        if let lost { detail = "\(lost)" }
        if detail.isEmpty, let what = output?.waiting { detail = "waiting: \(what)" }
        var report = RoomReport(
            bufferSeconds: voice?.bufferedSeconds ?? 0,
            clockDeviation: figures.deviation, clockBound: figures.bound,
            roundTrip: figures.roundTrip, stamps: figures.stamps,
            cardPartsPerMillion: card.cardPartsPerMillion,
            ratioPartsPerMillion: card.ratioPartsPerMillion, error: deviation ?? card.error,
            dropouts: dropouts, xruns: card.restarts, detail: detail,
            sync: sync(figures, card))
        report.isCardLost = lost != nil
        return report
    }

    /// A card that goes, and one that comes back, has its own line: what breaks off then is no
    /// news.
    private func noteBreaks(_ card: OutputReport, isLost: Bool) {
        let isSaid = isLost || wasCardLost
        wasCardLost = isLost
        if card.starvedFrames > starvedFrames {
            if !isSaid {
                logger.warning(
                    "decoded audio ran out",
                    metadata: ["frames": "\(card.starvedFrames - starvedFrames)"])
            }
            starvedFrames = card.starvedFrames
            dropouts += 1
        }
        if card.restarts > xruns {
            if !isSaid {
                logger.warning(
                    "the card ran dry and was started again",
                    metadata: ["times": "\(card.restarts - xruns)"])
            }
            xruns = card.restarts
        }
    }

    /// Once when it begins, and once when it is over.
    private func noteComplaint(_ text: String) {
        guard text.isEmpty != clockComplaint.isEmpty else { return }
        if text.isEmpty {
            logger.notice("the leader's clock answers again")
        } else {
            logger.warning("the leader's clock does not answer", metadata: ["reason": "\(text)"])
        }
        clockComplaint = text
    }

    private func sync(_ figures: ClockFigures, _ card: OutputReport) -> SyncReport {
        let clock = figures.statistics
        return SyncReport(
            quality: figures.quality, path: clock.roundTripFloor / 2,
            card: output.flatMap {
                card.bound(in: $0.state, sampleRate: $0.port.format.sampleRate)
            },
            expectedClock: clock.expectedError, expectedCard: card.cardUncertainty,
            target: options.target, skewPartsPerMillion: clock.skewPartsPerMillion,
            skewDeviationPartsPerMillion: clock.skewDeviationPartsPerMillion,
            ownStamps: figures.hasStamps ? StampKind(clock.ownStamps) : .absent,
            leaderStamps: figures.hasStamps ? StampKind(clock.leaderStamps) : .absent,
            cardClass: CardKind(card.cardClass),
            cardFormat: output?.cardDescription ?? "",
            packetsSent: clock.sent, packetsAnswered: clock.answered,
            packetsRejected: clock.rejected, clockRestarts: clock.restarts,
            clockAge: clock.lastAcceptedAt.map { HostClock.now() - $0 } ?? .zero,
            latencyOffset: latencyOffset, isLatencyOffsetFixed: options.latencyOffset != nil,
            broadcasts: figures.broadcasts, dropped: keys.drops)
    }
}

extension OutputReport {
    /// ``bound(sampleRate:)``; `nil` also when the card is gone.
    func bound(in state: OutputThread.State, sampleRate: Int) -> Nanoseconds? {
        state == .running ? bound(sampleRate: sampleRate) : nil
    }
}

/// What a person wants to know about a room's clock.
struct ClockFigures: Sendable {
    /// Estimate minus the line that is played by: what the line still leans by.
    var deviation = Nanoseconds.zero
    var bound = Nanoseconds.zero
    var roundTrip: Nanoseconds?
    var stamps = StampKind.absent
    var quality = SharedClock.Quality.none
    /// What the system says, while nobody answers.
    var problem: HostError?
    /// Of the exchange with the leader; nothing for the leader itself.
    var statistics = ClockStatistics()

    var hasStamps: Bool { statistics.accepted > 0 }

    /// So many requests without one answer are no accident.
    private static let vainRequests = 20

    /// What keeps the clock from being measured, for people; `nil` where nothing does.
    func complaint(timePort: UInt16?) -> String? {
        guard let timePort else { return nil }
        let advice = problem.map { "\($0)" } ?? "is UDP port \(timePort) open there?"
        switch quality {
        case .none where statistics.answered == 0 && statistics.sent >= Self.vainRequests:
            return "the leader answered none of \(statistics.sent) time requests: \(advice)"
        case .none where statistics.sent == 0 && problem != nil:
            return "the leader cannot be asked for the time: \(advice)"
        case .holdover:
            guard let last = statistics.lastAcceptedAt else { return nil }
            // Also a clock that jumped holds over, until the next answer.
            let silence = HostClock.now() - last
            guard silence > ClockEstimator.silence else { return nil }
            return "the leader's clock has not answered for \(Int(silence.seconds)) s: \(advice)"
        case .none, .acquiring, .locked: return nil
        }
    }

    var broadcasts: BroadcastReport {
        guard hasStamps else { return BroadcastReport() }
        let reference = statistics.reference
        return BroadcastReport(
            state: BroadcastState(reference.state), rooms: reference.rooms,
            spread: reference.spread,
            correction: reference.correction, noise: reference.noise)
    }
}

extension ChannelRole {
    init(_ role: RoomRole) {
        self =
            switch role {
            case .stereo: .stereo
            case .left: .left
            case .right: .right
            case .mono: .mono
            }
    }
}
