import DeviceOutput
import FFmpegMedia
import GroupControl
import LinuxHost
import Logging
import Playback
import Playout
import RealTime
import Timing

/// The players of a room: one for each preparation of the leader.
///
/// A preparation becomes a player that is prerolled; a commit gives it its line and, unless it
/// follows, ends at the same instant whatever else sounds. So a start, a seek, a resume and the
/// next item are all the same thing, through the public API of `Playback`.
///
/// Confined to the actor that owns it.
final class RoomPlayers {
    /// How far a line may run on, in frames, while a room that joins it waits for its clock: half of
    /// what was decoded ahead.
    static let joinReach = Int64(OutputPort.ringFrames / 2)

    /// More than the twelve seconds a clock may take, or the one of the slowest kind of card.
    static let settlingLimit = Nanoseconds.seconds(14)

    /// Cards whose stamps nobody understands are read without them after a second.
    private static let mutePatienceSeconds: Int64 = 2

    /// Of an ordinary card: shorter than what is decoded ahead by far.
    private static let usualLatency = Nanoseconds.milliseconds(200)

    struct VoiceFigures {
        var bufferedSeconds = 0.0
    }

    /// One request for a preparation. The number alone may come again: another leader counts anew.
    struct Ticket: Equatable, Sendable {
        let id: UInt64
        fileprivate let serial: UInt64
    }

    struct Part {
        let ticket: Ticket
        let player: Player
        let order: Preparation
        /// What the player's lines are read by.
        let clock: ClockCell
        /// Of what it reads, which may be waiting for bytes.
        let reading: MediaCancellation
        /// What it plays from, where that is a file of the cache.
        let hold: CachedFile?
        /// Given a line that is not a pause; set when the commit was applied.
        var sounds = false
        /// Paused, or replaced by another: silent from this instant on, and then not needed.
        var ends: GroupInstant?
        /// Somebody waits for that, to give the player back.
        var isAwaited = false
    }

    private let output: PlayerOutput
    private let releasesOutput: Bool
    private let logger: Logger
    private let containers = ContainerHints()
    private(set) var parts: [UInt64: Part] = [:]
    /// Preparations that were asked for and not withdrawn since; a withdrawal may overtake the
    /// work.
    private var wanted: [UInt64: Ticket] = [:]
    private var ticketCount: UInt64 = 0
    /// Of these, the ones for a line that is known, until they are put on it.
    private var joining: Set<UInt64> = []

    /// - Parameter releasesOutput: other programs may have the card while nothing plays.
    init(port: OutputPort, releasesOutput: Bool = false, logger: Logger) {
        self.releasesOutput = releasesOutput
        let executor = LoopExecutor.shared
        output = PlayerOutput(
            port: port, now: { HostClock.now() }, executor: executor,
            sleep: { await executor.sleep(for: $0) })
        self.logger = logger
    }

    /// How long before an instant a commit must be applied for the instant to be met exactly.
    ///
    /// What starts out of silence may find the card with another program, or closed: it is opened
    /// again in time.
    var latency: Nanoseconds {
        let mayBeReleased = releasesOutput && !parts.values.contains(where: \.sounds)
        return output.latency + (mayBeReleased ? OutputManner.reopening : .zero)
    }

    /// A preparation was asked for; ``prepare(_:_:_:clock:didDecode:)`` follows.
    func expect(_ order: Preparation) -> Ticket {
        withdraw(order.id)
        ticketCount += 1
        let ticket = Ticket(id: order.id, serial: ticketCount)
        wanted[order.id] = ticket
        output.port.expectItem(sampleRate: order.asset.sampleRate)
        if order.change != nil { joining.insert(order.id) }
        noteJoining()
        return ticket
    }

    private func noteJoining() { output.port.setExpectsJoin(!joining.isEmpty) }

    /// Opens, seeks and decodes ahead.
    ///
    /// - Parameter didDecode: called when something is decoded ahead, and again when more is: the
    ///   clock and the card may still be waited for.
    /// - Returns: what the player says until it is withdrawn or has ended.
    /// - Throws: `PlaybackError` saying why the item cannot be played here; `CancellationError`
    ///   when the preparation was withdrawn.
    func prepare(
        _ preparation: Preparation, _ ticket: Ticket, _ file: Member.AssetFile,
        clock: ClockCell, didDecode: () -> Void
    ) async throws -> AsyncStream<PlayerNotice> {
        try checkWanted(ticket)
        let reading = MediaCancellation()
        let opener = containers.opener(
            of: preparation.asset.hash, file.incoming,
            frameCount: preparation.asset.fileFrameCount, cancellation: reading)
        let asset = Asset(
            location: file.path, opener: opener.part(preparation.asset))
        let item = PlayerItem(asset: asset)
        let player = try Player(playerItem: item, output: output)
        player.automaticallyWaitsToMinimizeStalling = false
        player.sourceClock = .shared(clock)
        let notices = player.notices()
        parts[preparation.id] = Part(
            ticket: ticket, player: player, order: preparation, clock: clock, reading: reading,
            hold: file.hold)
        do {
            try await item.ready()
            try check(item, against: preparation.asset)
            try await preroll(
                player, preparation, ticket, clock, isArriving: file.incoming != nil, didDecode)
        } catch {
            // The place may be another's by now.
            try checkWanted(ticket)
            withdraw(preparation.id)
            throw error
        }
        return notices
    }

    /// Decodes ahead while the clock is still being measured. Where a running line is, its first
    /// answer tells to some milliseconds, which is enough to decode from.
    ///
    /// Returns once the group clock and the position of the card are known: before, no instant can
    /// be met. A card that has been fed for seconds and does not say where it is is not waited for:
    /// it would not become better, and neither is one that is not there: it may take days to come, and
    /// then the room joins the line as it does after a loss. When the wait was in vain the room prepares all the same, and
    /// says ready once there is a clock.
    ///
    /// - Parameter isArriving: the bytes come from the leader, on the path on which the clock is
    ///   measured. So for a common start the clock comes first, also when it was lost since the fetch
    ///   began.
    private func preroll(
        _ player: Player, _ order: Preparation, _ ticket: Ticket, _ clock: ClockCell,
        isArriving: Bool, _ didDecode: () -> Void
    ) async throws {
        let deadline = HostClock.now() + Self.settlingLimit
        let sampleRate = order.asset.sampleRate
        func place() -> Int64 {
            guard let change = order.change else { return order.itemFrame }
            // What is decoded now is heard behind what the card holds.
            let heard = HostClock.now() + max(.zero, output.latency - Self.usualLatency)
            let there = change.itemFrame(at: clock.load().map(heard), sampleRate: sampleRate)
            return max(change.itemFrame, Int64(saturating: there))
        }
        func isKnown() -> Bool {
            clock.load().quality.isPlayable && (isCardDecided || !output.port.hasCard)
        }

        try await waits(for: ticket, until: deadline) {
            order.change != nil ? clock.load().quality > .none : !isArriving || isKnown()
        }
        while true {
            let wasKnown = isKnown()
            let frame = place()
            guard
                try await player.preroll(
                    atRate: order.rate, time: MediaTime(frame: frame, sampleRate: sampleRate))
            else { throw CancellationError() }
            didDecode()
            // However far the line has run on meanwhile: the next time would take as long.
            if wasKnown || HostClock.now() >= deadline { return try checkWanted(ticket) }
            func isLeftBehind() -> Bool { place() > frame.adding(saturating: Self.joinReach) }
            try await waits(for: ticket, until: deadline) { isKnown() || isLeftBehind() }
            guard isLeftBehind() else { return }
        }
    }

    /// Looks every 3 ms until the condition holds or the time is over.
    private func waits(
        for ticket: Ticket, until deadline: LocalInstant, _ isMet: () -> Bool
    ) async throws {
        while !isMet(), HostClock.now() < deadline {
            await LoopExecutor.shared.sleep(for: .milliseconds(3))
            try Task.checkCancellation()
            try checkWanted(ticket)
        }
        try checkWanted(ticket)
    }

    private var isCardDecided: Bool {
        guard output.port.isPrepared else { return false }
        let report = output.port.report
        let mutePatience = Self.mutePatienceSeconds * Int64(output.port.format.sampleRate)
        return report.cardDecided
            || report.cardClass == .unreadable && report.framesWritten > mutePatience
    }

    /// Whether a preparation was asked for and not withdrawn since.
    func isWanted(_ ticket: Ticket) -> Bool { wanted[ticket.id] == ticket }

    /// Whether the same number was asked for again since.
    func isReplaced(_ ticket: Ticket) -> Bool {
        wanted[ticket.id].map { $0 != ticket } ?? false
    }

    private func checkWanted(_ ticket: Ticket) throws(CancellationError) {
        if !isWanted(ticket) { throw CancellationError() }
    }

    /// Same bytes, same decoder, same frames: a room that counts otherwise says so. One that plays
    /// an asset while it arrives takes the leader's word for the end, and counts the next time.
    private func check(_ item: PlayerItem, against asset: AssetDescriptor) throws(RoomError) {
        guard let format = item.format, format.sampleRate == asset.sampleRate,
            format.frameCount == asset.frameCount
        else {
            throw RoomError(
                .badAsset,
                "\(asset.title): the leader counts \(asset.frameCount) frames at \(asset.sampleRate) Hz, this room \(item.format.map { "\($0.frameCount ?? -1) at \($0.sampleRate) Hz" } ?? "none"): do both run the same version of FFmpeg?"
            )
        }
    }

    /// Puts a prepared player on its line, or pauses the one that sounds.
    ///
    /// - Returns: players that fall silent at the commit's instant, and that nobody waits for yet; see
    ///   ``dropEnded(_:at:)``.
    func apply(_ commit: Commit) throws -> [Ticket] {
        guard let part = parts[commit.id] else {
            throw RoomError(.protocolViolation, "no preparation \(commit.id) here")
        }
        let sampleRate = part.player.currentItem?.format?.sampleRate ?? 1
        let time = MediaTime(frame: commit.change.itemFrame, sampleRate: sampleRate)
        try part.player.setRate(
            commit.change.rate, time: time, atHostTime: commit.change.instant)
        parts[commit.id]?.sounds = !commit.isPause
        joining.remove(commit.id)
        noteJoining()
        parts[commit.id]?.ends = commit.isPause ? commit.change.instant : nil
        // A pause is resumed by another preparation, which follows at once.
        guard !commit.isPause else { return awaitSilence(of: [commit.id]) }
        guard !commit.following else { return [] }
        var ended: [UInt64] = []
        for (id, other) in parts where id != commit.id && other.sounds {
            try other.player.setRate(0, atHostTime: commit.change.instant)
            parts[id]?.sounds = false
            parts[id]?.ends = commit.change.instant
            ended.append(id)
        }
        return awaitSilence(of: ended)
    }

    private func awaitSilence(of ids: [UInt64]) -> [Ticket] {
        ids.compactMap { id in
            guard let part = parts[id], !part.isAwaited else { return nil }
            parts[id]?.isAwaited = true
            return part.ticket
        }
    }

    /// When a player is to be silent for good; `nil` when it is gone, or is to sound again: then
    /// nobody waits for it any more.
    func end(of ticket: Ticket) -> GroupInstant? {
        guard parts[ticket.id]?.ticket == ticket else { return nil }
        if parts[ticket.id]?.ends == nil { parts[ticket.id]?.isAwaited = false }
        return parts[ticket.id]?.ends
    }

    /// Gives back a player that has fallen silent at `instant`, unless it was started again: an
    /// output has few voices.
    func dropEnded(_ ticket: Ticket, at instant: GroupInstant) {
        if parts[ticket.id]?.ticket == ticket, parts[ticket.id]?.ends == instant {
            withdraw(ticket.id)
        }
    }

    /// Gives a player back, ending it now if it sounds.
    func withdraw(_ id: UInt64) {
        wanted[id] = nil
        joining.remove(id)
        noteJoining()
        // A preroll under way holds the player; it ends now, and so does a wait for bytes.
        let part = parts.removeValue(forKey: id)
        part?.reading.cancel()
        part?.player.cancelPendingPrerolls()
    }

    func withdrawAll() {
        for id in Array(parts.keys) + Array(wanted.keys) { withdraw(id) }
    }

    /// What the output plays, read behind all that decides it. Nobody can tell while the clock is
    /// not known, or the card's position is not.
    ///
    /// - Parameters:
    ///   - clock: the room's, by which a voice is read that nobody holds.
    ///   - isRunning: the card is there.
    func look(by clock: ClockCell, isRunning: Bool, at now: LocalInstant) -> OutputLook {
        let report = output.port.report
        let shared = clock.load()
        let rendered = output.port.renderedUntil
        let canTell =
            isRunning && isCardDecided && shared.quality.isPlayable
            && now - report.at < Self.lookPatience
        guard canTell else { return OutputLook(until: shared.map(now), voices: nil) }
        var owners: [VoiceID: Part] = [:]
        for part in parts.values {
            for voice in part.player.voices { owners[voice] = part }
        }
        let voices = output.port.voices.compactMap { id, voice -> HeardVoice? in
            let isOnLine = voice.state == .playing || voice.state == .starved
            // One that is not rendered, since its card has just come back, says what once was.
            guard isOnLine, rendered - voice.at < Self.lookPatience else { return nil }
            let part = owners[id]
            return HeardVoice(
                voice: part?.order.id, source: id.number, hash: part?.order.asset.hash,
                isSupplied: voice.state == .playing, itemFrame: voice.itemFrame,
                at: (part?.clock.load() ?? shared).map(voice.at),
                knownError: Nanoseconds(Int64(saturating: voice.errorNanoseconds)),
                isAltered: part?.hold?.holdsItsBytes == false)
        }
        return OutputLook(until: shared.map(rendered), voices: voices)
    }

    /// Older than this a report says nothing of now: an output reports once a period, and those of a
    /// card with a long queue are long.
    private static let lookPatience = Nanoseconds.milliseconds(1_500)

    /// Of the player that sounds.
    var figures: VoiceFigures {
        guard let sounding = parts.values.first(where: \.sounds),
            let item = sounding.player.currentItem
        else { return VoiceFigures() }
        let seconds = item.loadedTimeRanges.reduce(0) { $0 + $1.duration.seconds }
        return VoiceFigures(bufferedSeconds: seconds)
    }
}
