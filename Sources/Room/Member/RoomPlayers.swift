import Logging
import TuttiDeviceOutput
import TuttiFFmpegMedia
import TuttiGroupControl
import TuttiLinuxHost
import TuttiPlayback
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

/// The players of a room: one for each preparation of the leader that begins something.
///
/// A start, a seek, a resume and a late join are a player that is prerolled; a commit gives it its
/// line and, unless it follows, ends at the same instant whatever else sounds. A preparation that
/// begins where an item ends comes into the queue of that item's player, as in any application: the
/// player decodes it ahead, and joins it where the commit agrees. See `RoomPlayers+Lines.swift` for
/// those that do not.
///
/// Confined to the actor that owns it.
final class RoomPlayers {
    /// How far a line may run on, in frames of the item, while a room that joins it waits for its
    /// clock: half of what was decoded ahead. A voice that plays slower with its pitch kept holds more
    /// frames than they are of the item.
    static func joinReach(atRate rate: Double) -> Int64 {
        Int64(saturating: Double(OutputPort.ringFrames / 2) * min(1, rate))
    }

    /// More than the twelve seconds a clock may take, or the one of the slowest kind of card.
    static let settlingLimit = Nanoseconds.seconds(14)

    /// Cards whose stamps nobody understands are read without them after a second.
    private static let mutePatienceSeconds: Int64 = 2

    /// Of an ordinary card: shorter than what is decoded ahead by far.
    private static let usualLatency = Nanoseconds.milliseconds(200)

    /// One request for a preparation. The number alone may come again: another leader counts anew.
    struct Ticket: Equatable, Sendable {
        let id: UInt64
        fileprivate let serial: UInt64
    }

    struct Part {
        let ticket: Ticket
        let order: Preparation
        let item: PlayerItem
        /// What the player's lines are read by.
        let clock: ClockCell
        /// Of what it reads, which may be waiting for bytes.
        let reading: MediaCancellation
        /// What it plays from, where that is a file of the cache.
        let hold: CachedFile?
        /// The item is the current one there, or follows; `nil` while it is opened.
        var player: QueuePlayer?
        /// What that says of the item, until somebody listens.
        var notices: AsyncStream<PlayerNotice>?
        /// As committed, unless that was a pause.
        var line: RateChange?
        /// Given a line that is not a pause; set when the commit was applied.
        var sounds = false
        /// Paused, or replaced by another: silent from this instant on, and then not needed.
        var ends: GroupInstant?
        /// Somebody waits for that, to give the player back.
        var isAwaited = false

        /// Whether the item waits in the queue of another one's player, or has waited and been played.
        var isQueued: Bool { player.map { $0.currentItem !== item } ?? false }
    }

    let output: PlayerOutput
    private let releasesOutput: Bool
    let logger: Logger
    private let containers = ContainerHints()
    var parts: [UInt64: Part] = [:]
    /// Preparations that were asked for and not withdrawn since; a withdrawal may overtake the
    /// work.
    private var wanted: [UInt64: Ticket] = [:]
    private var ticketCount: UInt64 = 0
    /// Of these, the ones for a line that is known, until they are put on it.
    private var joining: Set<UInt64> = []

    func endJoining(_ id: UInt64) {
        joining.remove(id)
        noteJoining()
    }

    /// An output that swallows the beginning of what comes after a pause.
    struct LeadIn: Sendable {
        /// How long it is awake and silent before the first frame.
        var span = Nanoseconds.zero
        /// Since when it has been awake; see ``OutputThread/awakeSince``.
        var awakeSince: @Sendable () -> LocalInstant? = { nil }

        var isOver: Bool {
            span == .zero || awakeSince().map { HostClock.now() >= $0 + span } ?? true
        }
    }
    private let leadIn: LeadIn

    /// - Parameter releasesOutput: other programs may have the card while nothing plays.
    init(
        port: OutputPort, releasesOutput: Bool = false, leadIn: LeadIn = LeadIn(), logger: Logger
    ) {
        self.releasesOutput = releasesOutput
        self.leadIn = leadIn
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
        return output.latency + (mayBeReleased ? OutputManner.reopening + leadIn.span : .zero)
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
    /// What the player says of the item then, until it is withdrawn or has ended, has
    /// ``notices(of:)``.
    ///
    /// - Throws: `PlaybackError` saying why the item cannot be played here; `CancellationError`
    ///   when the preparation was withdrawn.
    func prepare(
        _ preparation: Preparation, _ ticket: Ticket, _ file: Member.AssetFile,
        clock: ClockCell, didDecode: () -> Void
    ) async throws {
        try checkWanted(ticket)
        let reading = MediaCancellation()
        let opener = containers.opener(
            of: preparation.asset.hash, file.incoming,
            frameCount: preparation.asset.fileFrameCount, cancellation: reading)
        let item = PlayerItem(
            asset: Asset(location: file.path, opener: opener.part(preparation.asset)))
        parts[preparation.id] = Part(
            ticket: ticket, order: preparation, item: item, clock: clock, reading: reading,
            hold: file.hold)
        do {
            try await item.ready()
            try checkWanted(ticket)
            try check(item, against: preparation.asset)
            if try await prerollQueued(preparation, ticket, clock, didDecode) { return }
            try await preroll(
                try playAlone(preparation.id), preparation, ticket, clock,
                isArriving: file.incoming != nil, didDecode)
        } catch {
            // The place may be another's by now.
            try checkWanted(ticket)
            withdraw(preparation.id)
            throw error
        }
    }

    /// What a preparation's player says of its item; `nil` when that was given to somebody already,
    /// until the item gets another player.
    func notices(of ticket: Ticket) -> AsyncStream<PlayerNotice>? {
        guard parts[ticket.id]?.ticket == ticket else { return nil }
        return parts[ticket.id]?.notices.take()
    }

    /// Decodes ahead in the queue of the player whose last item ends where this one begins, and waits
    /// for the clock and the card like ``preroll(_:_:_:_:isArriving:_:)``.
    ///
    /// - Returns: false where there is none, or not any more: the item plays alone.
    private func prerollQueued(
        _ order: Preparation, _ ticket: Ticket, _ clock: ClockCell, _ didDecode: () -> Void
    ) async throws -> Bool {
        guard clock.load().quality > .none, let item = parts[order.id]?.item,
            let player = player(before: order, by: clock)
        else { return false }
        try player.insert(item, after: nil)
        give(item, to: player, of: order.id)
        let isFilled = try await player.preroll(next: item, atRate: order.rate)
        try checkWanted(ticket)
        func isThere() -> Bool { parts[order.id]?.player === player }
        guard isFilled, isThere() else { return false }
        didDecode()
        let deadline = HostClock.now() + Self.settlingLimit
        try await waits(for: ticket, until: deadline) { isKnown(clock) || !isThere() }
        return isThere()
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
        _ player: QueuePlayer, _ order: Preparation, _ ticket: Ticket, _ clock: ClockCell,
        isArriving: Bool, _ didDecode: () -> Void
    ) async throws {
        let deadline = HostClock.now() + Self.settlingLimit
        let sampleRate = order.asset.sampleRate
        func place() -> Int64 { self.place(of: order, by: clock) }
        func isKnown() -> Bool { self.isKnown(clock) }

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
            let reach = frame.adding(saturating: Self.joinReach(atRate: order.rate))
            func isLeftBehind() -> Bool { place() > reach }
            try await waits(for: ticket, until: deadline) { isKnown() || isLeftBehind() }
            guard isLeftBehind() else { return }
        }
    }

    /// Where an item is to be decoded from, at this moment.
    func place(of order: Preparation, by clock: ClockCell) -> Int64 {
        guard let change = order.change else { return order.itemFrame }
        // What is decoded now is heard behind what the card holds.
        let heard = HostClock.now() + max(.zero, output.latency - Self.usualLatency)
        let there = change.itemFrame(
            at: clock.load().map(heard), sampleRate: order.asset.sampleRate)
        return max(change.itemFrame, Int64(saturating: there))
    }

    private func isKnown(_ clock: ClockCell) -> Bool {
        clock.load().quality.isPlayable && (isCardDecided && leadIn.isOver || !output.port.hasCard)
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

    var isCardDecided: Bool {
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

    /// Ends a preparation, now if it sounds, and gives its player back once nothing follows; what does
    /// goes on.
    func withdraw(_ id: UInt64) {
        wanted[id] = nil
        endJoining(id)
        guard let part = parts[id] else { return }
        let isQueued = part.isQueued
        for follower in followers(of: part) { goOnAlone(follower) }
        parts[id] = nil
        // A preroll under way holds the player; it ends now, and so does a wait for bytes.
        part.reading.cancel()
        if isQueued {
            part.player?.remove(part.item)
        } else {
            part.player?.removeAllItems()
        }
    }

    func withdrawAll() {
        for part in parts.values {
            part.reading.cancel()
            part.player?.removeAllItems()
        }
        (parts, wanted, joining) = ([:], [:], [])
        noteJoining()
    }
}
