import Logging
import TuttiDeviceOutput
import TuttiGroupControl
import TuttiLinuxHost
import TuttiPlayback
import TuttiRealTime
import TuttiTiming

/// What a room prepares to play, from the order to the silence behind it.
extension Member {
    /// After the instant of a stop: what the card holds, and the fade, with room to spare.
    private static let silenceMargin = Nanoseconds.milliseconds(250)
    private static let longestSilenceWait = Nanoseconds.seconds(60)

    /// - Parameter ticket: of the stage; what is said once another holds the place is not heard.
    func prepare(
        _ preparation: Preparation, _ ticket: RoomPlayers.Ticket?, _ file: AssetFile?
    ) async {
        guard let stage, let ticket else {
            return finish(preparation, .failed(reason: "this room has no output"))
        }
        guard await isThere(file, of: preparation.asset), let file else {
            guard stage.isWanted(ticket) else { return }
            return receiveInput(.missing(preparation.id))
        }
        do {
            try await stage.prepare(preparation, ticket, file, clock: clock.cell) {
                didDecode(preparation.id)
            }
            guard stage.isWanted(ticket) else { return }
            finish(preparation, .ready(latency: stage.latency))
            // An item that leaves a queue goes on in another player.
            while let notices = stage.notices(of: ticket) {
                await hear(notices, preparation, ticket)
            }
        } catch is CancellationError {
            logger.debug("withdrawn", metadata: ["preparation": "\(preparation.id)"])
        } catch {
            let reason = await reason(of: error, for: preparation.asset)
            logger.log(level: complaintLevel, "cannot prepare", metadata: ["reason": "\(reason)"])
            guard !stage.isReplaced(ticket) else { return }
            finish(preparation, .failed(reason: reason))
        }
    }

    private func hear(
        _ notices: AsyncStream<PlayerNotice>, _ preparation: Preparation,
        _ ticket: RoomPlayers.Ticket
    ) async {
        for await notice in notices {
            guard let stage, stage.isWanted(ticket) else { return }
            switch notice {
            case .didPlayToEnd:
                receiveInput(.itemEnded(preparation.id))
                stage.withdraw(preparation.id)
            case .failedToPlayToEnd(let error):
                let reason = await reason(of: error, for: preparation.asset)
                logger.log(
                    level: complaintLevel, "playing failed", metadata: ["reason": "\(reason)"])
                receiveInput(.itemFailed(preparation.id, reason: reason))
            case .playbackStalled: logger.warning("the decoder does not keep up")
            default: break
            }
        }
    }

    private func finish(_ preparation: Preparation, _ outcome: PrepareOutcome) {
        // Whoever is told that this room is ready is told too whether it has a card.
        if let output, case .lost = output.state { takeFigures() }
        receiveInput(.prepared(preparation.id, outcome))
    }

    /// Gives a player back once it is silent, unless it is to sound again by then.
    func dropOnceSilent(_ ticket: RoomPlayers.Ticket) async {
        while let instant = stage?.end(of: ticket), !Task.isCancelled {
            let silent = clock.cell.load().map.inverted(instant) + Self.silenceMargin
            let rest = silent - HostClock.now()
            if rest <= .zero { return stage?.dropEnded(ticket, at: instant) ?? () }
            // The clock may be another one by then.
            await LoopExecutor.shared.sleep(for: min(rest, Self.longestSilenceWait))
        }
    }
}
