import TuttiGroupControl
import TuttiTiming

// Values inside messages: to the generated types, and back through the checks.

extension PBHash {
    init(_ hash: ContentHash) {
        self.init()
        (a, b, c, d) = hash.words
    }

    var checked: ContentHash { ContentHash(words: (a, b, c, d)) }
}

extension PBAsset {
    init(_ asset: AssetDescriptor) {
        self.init()
        hash = PBHash(asset.hash)
        byteCount = asset.byteCount
        sampleRate = Int32(clamping: asset.sampleRate)
        frameCount = asset.frameCount
        title = asset.title
        fileExtension = asset.fileExtension
        if let root = asset.piecesRoot { piecesRoot = PBHash(root) }
        if let part = asset.excerpt {
            excerpt.firstFrame = part.firstFrame
            excerpt.fileFrameCount = part.fileFrameCount
        }
    }

    func checked(_ subject: String) throws(WireError) -> AssetDescriptor {
        guard hasHash else { throw WireError(.missing, "\(subject).hash", "not given") }
        let title = try text(
            self.title, "\(subject).title", limit: AssetDescriptor.longestTitle)
        return try valid(subject) { () throws(InvalidValue) in
            try AssetDescriptor(
                hash: hash.checked, byteCount: byteCount, sampleRate: Int(sampleRate),
                frameCount: frameCount, title: title, fileExtension: fileExtension,
                piecesRoot: hasPiecesRoot ? piecesRoot.checked : nil,
                excerpt: hasExcerpt
                    ? AssetDescriptor.Excerpt(
                        firstFrame: excerpt.firstFrame, fileFrameCount: excerpt.fileFrameCount)
                    : nil)
        }
    }
}

extension PBRateChange {
    init(_ change: RateChange) {
        self.init()
        itemFrame = change.itemFrame
        instant = change.instant.nanoseconds
        rate = change.rate
    }

    func checked(_ subject: String) throws(WireError) -> RateChange {
        let change = RateChange(
            itemFrame: itemFrame, instant: GroupInstant(nanoseconds: instant),
            rate: try finite(rate, "\(subject).rate"))
        guard change.isPlayable, itemFrame <= AssetDescriptor.mostFrames else {
            throw WireError(.outOfRange, subject, "frame \(itemFrame) at rate \(rate)")
        }
        return change
    }
}

extension PBPhase {
    init(_ phase: SessionPhase) {
        switch phase {
        case .waiting: self = .waiting
        case .preparing: self = .preparing
        case .playing: self = .playing
        case .paused: self = .paused
        case .stopped: self = .stopped
        case .ended: self = .ended
        }
    }

    func checked(_ subject: String) throws(WireError) -> SessionPhase {
        switch self {
        case .waiting: .waiting
        case .preparing: .preparing
        case .playing: .playing
        case .paused: .paused
        case .stopped: .stopped
        case .ended: .ended
        case .unspecified, .UNRECOGNIZED:
            throw WireError(.outOfRange, subject, "phase \(rawValue)")
        }
    }
}

extension PBActivity {
    init(_ activity: RoomActivity) {
        switch activity {
        case .joining: self = .joining
        case .fetching: self = .fetching
        case .prerolling: self = .prerolling
        case .ready: self = .ready
        case .playing: self = .playing
        case .paused: self = .paused
        case .failed: self = .failed
        case .lost: self = .lost
        case .noOutput: self = .noOutput
        case .idle: self = .idle
        case .cardLost: self = .cardLost
        }
    }

    func checked(_ subject: String) throws(WireError) -> RoomActivity {
        switch self {
        case .joining: .joining
        case .fetching: .fetching
        case .prerolling: .prerolling
        case .ready: .ready
        case .playing: .playing
        case .paused: .paused
        case .failed: .failed
        case .lost: .lost
        case .noOutput: .noOutput
        case .idle: .idle
        case .cardLost: .cardLost
        case .unspecified, .UNRECOGNIZED:
            throw WireError(.outOfRange, subject, "activity \(rawValue)")
        }
    }
}

extension PBSessionState {
    init(_ state: SessionState) {
        self.init()
        term = state.term
        sequence = state.sequence
        queue = state.queue.map(PBAsset.init)
        index = Int32(clamping: state.index)
        if let change = state.change { self.change = PBRateChange(change) }
        phase = PBPhase(state.phase)
    }

    func checked(_ subject: String) throws(WireError) -> SessionState {
        let items = try checkedItems(queue, "\(subject).queue")
        let index = try TuttiWire.index(self.index, "\(subject).index")
        guard items.isEmpty ? index == 0 : index < items.count else {
            throw WireError(.outOfRange, "\(subject).index", "\(index) of \(items.count) items")
        }
        return SessionState(
            term: term, sequence: sequence, queue: items, index: index,
            change: hasChange ? try change.checked("\(subject).change") : nil,
            phase: try phase.checked("\(subject).phase"))
    }
}

private func checkedItems(
    _ queue: [PBAsset], _ subject: String
) throws(WireError) -> [AssetDescriptor] {
    guard queue.count <= SessionState.longestQueue else {
        throw WireError(
            .tooLong, subject, "\(queue.count) items of at most \(SessionState.longestQueue)")
    }
    var items: [AssetDescriptor] = []
    items.reserveCapacity(queue.count)
    for (place, asset) in queue.enumerated() {
        items.append(try asset.checked("\(subject)[\(place)]"))
    }
    return items
}

extension PBQueueChange {
    init(_ change: QueueChange) {
        self.init()
        term = change.term
        sequence = change.sequence
        first = Int32(clamping: change.first)
        items = change.items.map(PBAsset.init)
        removed = Int32(clamping: change.removed)
        index = Int32(clamping: change.index)
    }

    /// Whether it fits the queue is for the room to judge, which has the queue.
    func checked(_ subject: String) throws(WireError) -> QueueChange {
        QueueChange(
            term: term, sequence: sequence, first: try TuttiWire.index(first, "\(subject).first"),
            removed: try TuttiWire.index(removed, "\(subject).removed"),
            items: try checkedItems(items, "\(subject).items"),
            index: try TuttiWire.index(index, "\(subject).index"))
    }
}

extension PBSessionProgress {
    init(_ progress: SessionProgress) {
        self.init()
        term = progress.term
        sequence = progress.sequence
        index = Int32(clamping: progress.index)
        if let change = progress.change { self.change = PBRateChange(change) }
        phase = PBPhase(progress.phase)
    }

    /// Whether the index is one of the queue is for the room to judge, which has the queue.
    func checked(_ subject: String) throws(WireError) -> SessionProgress {
        SessionProgress(
            term: term, sequence: sequence, index: try TuttiWire.index(index, "\(subject).index"),
            change: hasChange ? try change.checked("\(subject).change") : nil,
            phase: try phase.checked("\(subject).phase"))
    }
}

extension PBRoomSettings {
    init(_ settings: RoomSettings) {
        self.init()
        volume = Int32(clamping: settings.volume)
        muted = settings.muted
        groupVolume = Int32(clamping: settings.groupVolume)
        role = PBRoomRole(settings.role)
    }

    func checked(_ subject: String) throws(WireError) -> RoomSettings {
        try valid(subject) { () throws(InvalidValue) in
            try RoomSettings(
                volume: Int(volume), muted: muted, groupVolume: Int(groupVolume),
                role: role.value)
        }
    }
}

extension PBReport {
    init(_ report: RoomReport) {
        self.init()
        activity = PBActivity(report.activity)
        bufferSeconds = report.bufferSeconds
        clockDeviation = report.clockDeviation.count
        clockBound = report.clockBound.count
        if let roundTrip = report.roundTrip { self.roundTrip = roundTrip.count }
        stamps = PBStamps(report.stamps)
        cardPartsPerMillion = report.cardPartsPerMillion
        ratioPartsPerMillion = report.ratioPartsPerMillion
        error = report.error.count
        dropouts = Int64(report.dropouts)
        xruns = Int64(report.xruns)
        detail = report.detail
        sync = PBSyncReport(report.sync)
        if report.line != .nothing { line = PBLineFinding(report.line) }
    }

    func checked(_ subject: String) throws(WireError) -> RoomReport {
        RoomReport(
            activity: try activity.checked("\(subject).activity"),
            bufferSeconds: try figure(bufferSeconds, Figures.buffer, "\(subject).buffer"),
            clockDeviation: figure(clockDeviation), clockBound: figure(clockBound),
            roundTrip: hasRoundTrip ? try span(roundTrip, "\(subject).round trip") : nil,
            stamps: stamps.kind,
            cardPartsPerMillion: try figure(
                cardPartsPerMillion, Figures.partsPerMillion, "\(subject).card ppm"),
            ratioPartsPerMillion: try figure(
                ratioPartsPerMillion, Figures.partsPerMillion, "\(subject).ratio ppm"),
            error: figure(error), dropouts: try count(dropouts, "\(subject).dropouts"),
            xruns: try count(xruns, "\(subject).xruns"),
            detail: try text(detail, "\(subject).detail"),
            line: hasLine ? try line.checked("\(subject).line") : .nothing,
            sync: try sync.checked("\(subject).sync"))
    }
}
