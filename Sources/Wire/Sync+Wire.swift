import TuttiGroupControl
import TuttiTiming

// How well a room keeps together: what it reports to its leader, and what a leader shows.

extension PBQuality {
    init(_ quality: SharedClock.Quality) {
        switch quality {
        case .none: self = .none
        case .holdover: self = .holdover
        case .acquiring: self = .acquiring
        case .locked: self = .locked
        }
    }

    func checked(_ subject: String) throws(WireError) -> SharedClock.Quality {
        switch self {
        case .none: SharedClock.Quality.none
        case .holdover: .holdover
        case .acquiring: .acquiring
        case .locked: .locked
        case .unspecified, .UNRECOGNIZED:
            throw WireError(.outOfRange, subject, "quality \(rawValue)")
        }
    }
}

extension PBSyncReport {
    init(_ report: SyncReport) {
        self.init()
        quality = PBQuality(report.quality)
        path = report.path.count
        if let card = report.card { self.card = card.count }
        expectedClock = report.expectedClock.count
        expectedCard = report.expectedCard.count
        target = report.target.count
        isAlarming = report.isAlarming
        skewPartsPerMillion = report.skewPartsPerMillion
        skewDeviationPartsPerMillion = report.skewDeviationPartsPerMillion
        ownStamps = PBStamps(report.ownStamps)
        leaderStamps = PBStamps(report.leaderStamps)
        cardClass = PBCardClass(report.cardClass)
        cardFormat = report.cardFormat
        packetsSent = Int64(report.packetsSent)
        packetsAnswered = Int64(report.packetsAnswered)
        packetsRejected = Int64(report.packetsRejected)
        clockRestarts = Int64(report.clockRestarts)
        clockAge = report.clockAge.count
        latencyOffset = report.latencyOffset.delay.count
        if let uncertainty = report.latencyOffset.uncertainty {
            latencyOffsetUncertainty = uncertainty.count
        }
        isLatencyOffsetFixed = report.isLatencyOffsetFixed
        broadcasts = PBBroadcastReport(report.broadcasts)
        if report.dropped != .zero { dropped = PBDatagramDrops(report.dropped) }
    }

    func checked(_ subject: String) throws(WireError) -> SyncReport {
        SyncReport(
            quality: try quality.checked("\(subject).quality"), path: figure(path),
            card: hasCard ? figure(card) : nil, expectedClock: figure(expectedClock),
            expectedCard: figure(expectedCard), target: figure(target),
            isAlarming: isAlarming,
            skewPartsPerMillion: try figure(
                skewPartsPerMillion, Figures.partsPerMillion, "\(subject).skew"),
            skewDeviationPartsPerMillion: try figure(
                skewDeviationPartsPerMillion, Figures.partsPerMillion, "\(subject).skew deviation"),
            ownStamps: ownStamps.kind,
            leaderStamps: leaderStamps.kind,
            cardClass: cardClass.kind,
            cardFormat: try text(cardFormat, "\(subject).card format"),
            packetsSent: try count(packetsSent, "\(subject).sent"),
            packetsAnswered: try count(packetsAnswered, "\(subject).answered"),
            packetsRejected: try count(packetsRejected, "\(subject).rejected"),
            clockRestarts: try count(clockRestarts, "\(subject).clock restarts"),
            clockAge: age(clockAge),
            latencyOffset: try latency(
                latencyOffset, hasLatencyOffsetUncertainty ? latencyOffsetUncertainty : nil,
                "\(subject).latency offset"),
            isLatencyOffsetFixed: isLatencyOffsetFixed,
            broadcasts: try broadcasts.checked("\(subject).broadcasts"),
            dropped: try dropped.checked("\(subject).dropped"))
    }
}

extension PBDatagramDrops {
    init(_ drops: DatagramDrops) {
        self.init()
        untagged = Int64(drops.untagged)
        replayed = Int64(drops.replayed)
        otherTerm = Int64(drops.ofOtherTerm)
    }

    func checked(_ subject: String) throws(WireError) -> DatagramDrops {
        DatagramDrops(
            untagged: try count(untagged, "\(subject).untagged"),
            replayed: try count(replayed, "\(subject).replayed"),
            ofOtherTerm: try count(otherTerm, "\(subject).other term"))
    }
}

extension PBLineFinding {
    init(_ finding: LineFinding) {
        self.init()
        switch finding {
        case .nothing: kind = .unspecified
        case .onLine: kind = .onLine
        case .off(let span): (kind, by) = (.off, span.count)
        case .otherItem: kind = .otherItem
        case .silent: kind = .silent
        case .starved: kind = .starved
        case .stray: kind = .stray
        }
    }

    func checked(_ subject: String) throws(WireError) -> LineFinding {
        switch kind {
        case .onLine: .onLine
        case .off: .off(by: figure(by))
        case .otherItem: .otherItem
        case .silent: .silent
        case .starved: .starved
        case .stray: .stray
        case .unspecified, .UNRECOGNIZED:
            throw WireError(.outOfRange, subject, "kind \(kind.rawValue)")
        }
    }
}

extension PBSyncStatus {
    init(_ status: SyncStatus) {
        self.init()
        clock = PBQuality(status.clock)
        if let bound = status.boundMicroseconds { boundMicroseconds = bound }
        if let error = status.parts.errorMicroseconds { errorPartMicroseconds = error }
        if let clock = status.parts.clockMicroseconds { clockPartMicroseconds = clock }
        if let path = status.parts.pathMicroseconds { pathPartMicroseconds = path }
        if let card = status.parts.cardMicroseconds { cardPartMicroseconds = card }
        if let calibration = status.parts.calibrationMicroseconds {
            calibrationPartMicroseconds = calibration
        }
        if let expected = status.expectedMicroseconds { expectedMicroseconds = expected }
        targetMicroseconds = status.targetMicroseconds
        alarm = status.alarm
        skewPartsPerMillion = status.skewPartsPerMillion
        skewDeviationPartsPerMillion = status.skewDeviationPartsPerMillion
        ownStamps = PBStamps(status.ownStamps)
        leaderStamps = PBStamps(status.leaderStamps)
        cardClass = PBCardClass(status.cardClass)
        if let format = status.cardFormat { cardFormat = format }
        packetsSent = Int64(status.packetsSent)
        packetsAnswered = Int64(status.packetsAnswered)
        packetsRejected = Int64(status.packetsRejected)
        clockRestarts = Int64(status.clockRestarts)
        clockAgeSeconds = status.clockAgeSeconds
        reportAgeSeconds = status.reportAgeSeconds
        latencyOffsetMicroseconds = status.latencyOffsetMicroseconds
        latencyOffsetFixed = status.latencyOffsetFixed
        broadcasts = PBBroadcastStatus(status.broadcasts)
        if let dropped = status.dropped { self.dropped = PBDatagramDrops(dropped) }
        line = status.line
        lineAlarm = status.lineAlarm
        history = PBSyncHistory(status.history)
    }

    func checked(_ subject: String) throws(WireError) -> SyncStatus {
        var status = SyncStatus()
        status.clock = clock.state
        status.boundMicroseconds = try figure(
            boundMicroseconds, Figures.microseconds, if: hasBoundMicroseconds, "\(subject).bound")
        status.parts.errorMicroseconds = try figure(
            errorPartMicroseconds, Figures.microseconds, if: hasErrorPartMicroseconds,
            "\(subject).error part")
        status.parts.clockMicroseconds = try figure(
            clockPartMicroseconds, Figures.microseconds, if: hasClockPartMicroseconds,
            "\(subject).clock part")
        status.parts.pathMicroseconds = try figure(
            pathPartMicroseconds, Figures.microseconds, if: hasPathPartMicroseconds,
            "\(subject).path part")
        status.parts.cardMicroseconds = try figure(
            cardPartMicroseconds, Figures.microseconds, if: hasCardPartMicroseconds,
            "\(subject).card part")
        status.parts.calibrationMicroseconds = try figure(
            calibrationPartMicroseconds, Figures.microseconds, if: hasCalibrationPartMicroseconds,
            "\(subject).calibration part")
        status.expectedMicroseconds = try figure(
            expectedMicroseconds, Figures.microseconds, if: hasExpectedMicroseconds,
            "\(subject).expected")
        status.targetMicroseconds = try figure(
            targetMicroseconds, Figures.microseconds, "\(subject).target")
        status.alarm = alarm
        status.skewPartsPerMillion = try figure(
            skewPartsPerMillion, Figures.partsPerMillion, "\(subject).skew")
        status.skewDeviationPartsPerMillion = try figure(
            skewDeviationPartsPerMillion, Figures.partsPerMillion, "\(subject).skew deviation")
        status.ownStamps = ownStamps.kind
        status.leaderStamps = leaderStamps.kind
        status.cardClass = cardClass.kind
        status.cardFormat = hasCardFormat ? try text(cardFormat, "\(subject).card format") : nil
        status.packetsSent = try count(packetsSent, "\(subject).sent")
        status.packetsAnswered = try count(packetsAnswered, "\(subject).answered")
        status.packetsRejected = try count(packetsRejected, "\(subject).rejected")
        status.clockRestarts = try count(clockRestarts, "\(subject).clock restarts")
        status.clockAgeSeconds = try figure(clockAgeSeconds, Figures.age, "\(subject).clock age")
        status.reportAgeSeconds = try figure(reportAgeSeconds, Figures.age, "\(subject).report age")
        status.latencyOffsetMicroseconds = try figure(
            latencyOffsetMicroseconds, Figures.microseconds, "\(subject).latency offset")
        status.latencyOffsetFixed = latencyOffsetFixed
        status.broadcasts = try broadcasts.checked("\(subject).broadcasts")
        status.dropped = hasDropped ? try dropped.checked("\(subject).dropped") : nil
        status.line = try text(line, "\(subject).line")
        status.lineAlarm = lineAlarm
        status.history = try history.checked("\(subject).history")
        return status
    }
}

extension PBBroadcastReport {
    init(_ report: BroadcastReport) {
        self.init()
        state = PBBroadcastState(report.state)
        rooms = Int32(clamping: report.rooms)
        spread = report.spread.count
        correction = report.correction.count
        noise = report.noise.count
    }

    func checked(_ subject: String) throws(WireError) -> BroadcastReport {
        BroadcastReport(
            state: state.state,
            rooms: try TuttiWire.index(rooms, "\(subject).rooms"), spread: figure(spread),
            correction: figure(correction), noise: figure(noise))
    }
}

extension PBBroadcastStatus {
    init(_ status: BroadcastStatus) {
        self.init()
        state = PBBroadcastState(status.state)
        rooms = Int32(clamping: status.rooms)
        spreadMicroseconds = status.spreadMicroseconds
        correctionMicroseconds = status.correctionMicroseconds
        noiseMicroseconds = status.noiseMicroseconds
    }

    func checked(_ subject: String) throws(WireError) -> BroadcastStatus {
        var status = BroadcastStatus()
        status.state = state.state
        status.rooms = try TuttiWire.index(rooms, "\(subject).rooms")
        status.spreadMicroseconds = try figure(
            spreadMicroseconds, Figures.microseconds, "\(subject).spread")
        status.correctionMicroseconds = try figure(
            correctionMicroseconds, Figures.microseconds, "\(subject).correction")
        status.noiseMicroseconds = try figure(
            noiseMicroseconds, Figures.microseconds, "\(subject).noise")
        return status
    }
}

extension PBSyncHistory {
    init(_ history: SyncStatus.History) {
        self.init()
        seconds = Int32(clamping: history.seconds)
        if let error = history.error { self.error = PBSpread(error) }
        if let bound = history.bound { self.bound = PBSpread(bound) }
        errors = history.errors
        bounds = history.bounds
        ages = history.ages
    }

    func checked(_ subject: String) throws(WireError) -> SyncStatus.History {
        for (points, name) in [(errors, "errors"), (bounds, "bounds"), (ages, "ages")] {
            guard points.count <= SyncHistory.capacity else {
                throw WireError(.tooLong, "\(subject).\(name)", "\(points.count) points")
            }
            // An older leader tells no ages.
            guard points.count == errors.count || name == "ages" && points.isEmpty else {
                throw WireError(
                    .outOfRange, "\(subject).\(name)", "\(points.count) of \(errors.count) points")
            }
            guard points.allSatisfy(\.isFinite) else {
                throw WireError(.outOfRange, "\(subject).\(name)", "not all finite")
            }
        }
        guard ages.allSatisfy({ (0...Float(SyncHistory.capacity)).contains($0) }) else {
            throw WireError(.outOfRange, "\(subject).ages", "not all within minutes")
        }
        var history = SyncStatus.History()
        history.seconds = min(
            try TuttiWire.index(seconds, "\(subject).seconds"), SyncHistory.capacity)
        history.error = hasError ? try error.checked("\(subject).error") : nil
        history.bound = hasBound ? try bound.checked("\(subject).bound") : nil
        (history.errors, history.bounds) = (errors.map(Self.brought), bounds.map(Self.brought))
        history.ages = ages
        return history
    }
}

extension PBSyncHistory {
    private static func brought(_ point: Float) -> Float {
        min(
            max(point, Float(Figures.microseconds.lowerBound)),
            Float(Figures.microseconds.upperBound))
    }
}

extension PBSpread {
    init(_ spread: Spread) {
        self.init()
        min = spread.min
        p50 = spread.p50
        p99 = spread.p99
        max = spread.max
    }

    func checked(_ subject: String) throws(WireError) -> Spread {
        Spread(
            min: try figure(min, Figures.microseconds, "\(subject).min"),
            p50: try figure(p50, Figures.microseconds, "\(subject).p50"),
            p99: try figure(p99, Figures.microseconds, "\(subject).p99"),
            max: try figure(max, Figures.microseconds, "\(subject).max"))
    }
}
