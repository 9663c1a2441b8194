package import TuttiTiming

extension LeaderMachine {
    /// The group as a person sees it at this instant; rooms sorted by name.
    ///
    /// - Parameter hasPoints: whether every point of the rooms' histories is told; 900 numbers a
    ///   room.
    package func status(at now: GroupInstant, hasPoints: Bool = false) -> GroupStatus {
        let asset = session.current
        let sampleRate = Double(asset?.sampleRate ?? 1)
        return GroupStatus(
            // Whoever asks one that led is told who does.
            leader: heir?.name.name ?? configuration.name, phase: session.phase,
            title: asset?.title ?? "",
            index: queue.position(of: session.index) ?? 0, count: queue.count + coming,
            positionSeconds: session.itemFrame(at: now) / sampleRate,
            durationSeconds: asset?.durationSeconds ?? 0, rate: session.change?.rate ?? 0,
            sampleRate: asset?.sampleRate, repeats: queue.repeats, queueRevision: queue.revision,
            detail: detail.isEmpty ? nil : detail.limited(toBytes: Self.longestDetail),
            volume: commonSettings.groupVolume,
            session: GroupStatus.text(of: configuration.session),
            rooms: members.sorted { $0.hello.room < $1.hello.room }.map {
                status(of: $0, at: now, hasPoints: hasPoints)
            })
    }

    /// Bytes of a group's detail: the title of an item, the name of a room and its reason fit.
    package static let longestDetail = 1_024

    /// What the group does, in a few words: for the leader's terminal, when it changes.
    package var headline: String { headline(place: "") }

    /// The same, with the item's place among all that are known or still being read.
    package var headlineWithPlace: String {
        let count = queue.count + coming
        let position = queue.position(of: session.index) ?? 0
        return headline(place: count > 1 ? " (\(position + 1) of \(count))" : "")
    }

    private func headline(place: String) -> String {
        let title = session.current.map { "\"\($0.title)\"\(place)" } ?? "nothing"
        let wait = detail.isEmpty ? "" : ": \(detail)"
        return switch session.phase {
        case .waiting where detail.isEmpty: "waits for rooms"
        case .waiting: detail.hasPrefix("waits ") ? detail : "waits: \(detail)"
        case .preparing where session.current == nil: "waits\(wait)"
        case .preparing: "prepares \(title)\(wait)"
        case .playing: "plays \(title)"
        case .paused: "is paused in \(title)"
        case .stopped where queue.count == 0 && detail.isEmpty:
            "waits for music: tutti add FILE"
        case .stopped: "has stopped\(wait)"
        case .ended: "has played the queue"
        }
    }

    /// What the phase alone would hide: a line that runs and is not heard, a stop by itself.
    private var detail: String {
        if awaited != nil, !isRunning, session.phase != .ended {
            return session.queue.isEmpty
                ? "the first item is still being read" : "the next item is still being read"
        }
        if complaint.isEmpty, !isRunning, !cardWords.isEmpty { return cardWords }
        if session.phase == .waiting, complaint.isEmpty, let required = pending?.required {
            let ready = members.count { $0.takesPart && $0.pending?.standing == .ready }
            return "waits for rooms: \(ready) of \(required) are ready"
        }
        guard session.phase == .playing else {
            return complaint.isEmpty && session.phase == .preparing ? waitingWords : complaint
        }
        let rooms = members.filter(\.takesPart)
        if rooms.contains(where: { $0.isOnLine }) {
            // What the rooms were sent is one thing, and what they say of their outputs another.
            guard rooms.contains(where: \.isAudible) else { return silentWords(of: rooms) }
            return complaint.isEmpty ? missingWords : complaint
        }
        if rooms.isEmpty { return "nothing is heard: no room with an output is here" }
        if rooms.allSatisfy({ $0.failure.isEmpty }) {
            return "nothing is heard yet: the rooms are preparing"
        }
        return failures(at: session.index)
    }

    private func silentWords(of rooms: [LeaderMember]) -> String {
        let words = rooms.sorted { $0.hello.room < $1.hello.room }.prefix(Self.mostNames).map {
            let line = $0.report?.line ?? .nothing
            let said = line.isAlarm ? line.words : "does not play"
            let reason = $0.report?.isCardLost == true ? "has no sound card" : said
            return "\($0.hello.room) \(reason)"
        }
        return "nothing is heard: \(words.joined(separator: ", "))"
            + (rooms.count > words.count ? ", …" : "")
    }

    /// Why nobody plays an item, in the words of the first room that failed at it.
    func failures(at index: Int) -> String {
        guard let failed = failedRooms.first, session.queue.indices.contains(index) else {
            return ""
        }
        return "no room can play \"\(session.queue[index].title)\"; "
            + "\(failed.hello.room): \(failed.failure)"
    }

    /// The same for the list in which the item is named already; a room that failed at another one
    /// says nothing of it, where there are others.
    func obstacle(at index: Int) -> String? {
        let failures = failedRooms.map(\.failure)
        let name = session.queue[index].title + ": "
        return failures.first { $0.hasPrefix(name) }.map { String($0.dropFirst(name.count)) }
            ?? failures.first
    }

    private var failedRooms: [LeaderMember] {
        members.filter { $0.takesPart && !$0.failure.isEmpty }
            .sorted { $0.hello.room < $1.hello.room }
    }

    private func status(
        of member: LeaderMember, at now: GroupInstant, hasPoints: Bool
    ) -> RoomStatus {
        var report = member.report ?? RoomReport()
        let silence = now - member.reportedAt
        if !member.hello.hasOutput {
            report.activity = .noOutput
        } else if member.isLost {
            report.activity = .lost
            report.detail = "not heard for \(Int(silence.seconds)) s"
        } else if member.report != nil, silence >= Self.silenceUntilNoticed {
            report.detail = "not heard for \(Int(silence.seconds)) s"
        } else if !member.failure.isEmpty {
            // What it failed at may be what was to come: it plays on meanwhile, and its figures are
            // true.
            if !member.isOnLine { report.activity = .failed }
            report.detail = member.failure
        } else if missing.contains(member.hello.room), report.detail.isEmpty {
            report.detail = "does not answer; the others do not wait for it"
        }
        let settings = rememberedSettings(of: member.hello.room)
        guard member.report != nil else {
            return RoomStatus(name: member.hello.room.name, report: report, settings: settings)
        }
        return RoomStatus(
            name: member.hello.room.name, report: report, settings: settings,
            reportedAt: member.reportedAt, history: member.history, at: now, hasPoints: hasPoints)
    }
}
