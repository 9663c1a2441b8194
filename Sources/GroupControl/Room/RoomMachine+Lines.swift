import TuttiTiming

// From an order to prepare to a line that sounds: fetch, preroll, ready, commit.

extension RoomMachine {
    mutating func prepare(_ order: Preparation) -> [RoomEffect] {
        if let known = preparations.first(where: { $0.order.id == order.id }) {
            return known.standing == .ready || known.standing == .running
                ? [.send(.ready(preparation: order.id, latency: latency))] : []
        }
        guard configuration.hasOutput else {
            return [notReady(order.id, "this room has no output")]
        }
        var effects: [RoomEffect] = []
        if preparations.count >= Self.mostPreparations {
            let oldest = preparations.removeFirst()
            if oldest.hasVoice { effects.append(.withdraw(oldest.order.id)) }
            effects.append(notReady(oldest.order.id, "too many preparations at once"))
        }
        if let reason = refusal(of: order) { return effects + [notReady(order.id, reason)] }
        if soundsAlready(order) {
            preparations.append(RoomPreparation(order: order, standing: .running))
            return effects + [
                .send(.ready(preparation: order.id, latency: latency))
            ]
        }
        if fetched.contains(order.asset.hash) || arriving.contains(order.asset.hash) {
            preparations.append(RoomPreparation(order: order, standing: .prerolling))
            return effects + [.prepare(order)]
        }
        preparations.append(RoomPreparation(order: order, standing: .fetching))
        return effects + fetch(order.asset)
    }

    private func soundsAlready(_ order: Preparation) -> Bool {
        lines.contains { $0.hash == order.asset.hash && $0.change == order.change }
    }

    func notReady(_ id: UInt64, _ reason: String) -> RoomEffect {
        .send(.notReady(preparation: id, reason: reason.limited(toBytes: RoomReport.longestText)))
    }

    // MARK: Fetching

    private mutating func fetch(_ asset: AssetDescriptor) -> [RoomEffect] {
        guard !fetching.contains(asset.hash) else { return [] }
        if fetching.count >= Self.mostFetching {
            let oldest = fetching.removeFirst()
            arriving.removeAll { $0 == oldest }
        }
        fetching.append(asset.hash)
        return [.fetch(asset)]
    }

    mutating func fetched(_ hash: ContentHash, _ outcome: FetchOutcome) -> [RoomEffect] {
        arriving.removeAll { $0 == hash }
        if outcome == .arriving {
            guard fetching.contains(hash) else { return [] }
            arriving.append(hash)
        } else {
            fetching.removeAll { $0 == hash }
        }
        let waiting = preparations.indices.filter {
            preparations[$0].standing == .fetching && preparations[$0].order.asset.hash == hash
        }
        switch outcome {
        case .arriving:
            for place in waiting { preparations[place].standing = .prerolling }
            return waiting.map { .prepare(preparations[$0].order) }
        case .done:
            if !fetched.contains(hash) { fetched.append(hash) }
            for place in waiting { preparations[place].standing = .prerolling }
            return waiting.map { .prepare(preparations[$0].order) } + prefetch()
        case .failed(let reason):
            let ids = waiting.map { preparations[$0].order.id }
            preparations.removeAll { ids.contains($0.order.id) }
            if !ids.isEmpty { failure = reason.limited(toBytes: RoomReport.longestText) }
            return ids.map { notReady($0, reason) }
        }
    }

    /// Loads the item after the current one as soon as the current one is here.
    private mutating func prefetch() -> [RoomEffect] {
        guard configuration.hasOutput, isJoined, let session, let current = session.current,
            fetched.contains(current.hash)
        else { return [] }
        let next = session.queue[(session.index + 1) % session.queue.count]
        return fetched.contains(next.hash) ? [] : fetch(next)
    }

    /// The file of a preparation went away: its folder was cleaned, say. It is fetched anew.
    mutating func missing(_ id: UInt64) -> [RoomEffect] {
        guard
            let place = preparations.firstIndex(where: {
                $0.order.id == id && $0.standing == .prerolling
            })
        else { return [] }
        let asset = preparations[place].order.asset
        distrust(asset.hash)
        preparations[place].standing = .fetching
        return [.withdraw(id)] + fetch(asset)
    }

    /// Whoever wants it next waits until it was loaded again, or all of it is here.
    private mutating func distrust(_ hash: ContentHash) {
        fetched.removeAll { $0 == hash }
        arriving.removeAll { $0 == hash }
    }

    /// What is playing, being prepared, or next: the files of anything else may go.
    package var needed: Set<ContentHash> {
        var needed = Set(preparations.map(\.order.asset.hash) + lines.map(\.hash))
        if let session, let current = session.current {
            needed.insert(current.hash)
            needed.insert(session.queue[(session.index + 1) % session.queue.count].hash)
        }
        return needed
    }

    /// Whether it is an item of the session; without one, nobody can tell that it is not.
    package func isQueued(_ hash: ContentHash) -> Bool {
        session?.queue.contains { $0.hash == hash } ?? true
    }

    /// What may go counts as gone, and what of it is still coming as not wanted.
    mutating func forgetFiles() {
        let needed = needed
        fetched.removeAll { !needed.contains($0) }
        fetching.removeAll { !needed.contains($0) }
        arriving.removeAll { !needed.contains($0) }
    }

    // MARK: Prerolling

    mutating func prepared(
        _ id: UInt64, _ outcome: PrepareOutcome, at now: LocalInstant
    ) -> [RoomEffect] {
        guard
            let place = preparations.firstIndex(where: {
                $0.order.id == id && $0.standing == .prerolling
            })
        else { return [] }  // withdrawn meanwhile; its voice has been given back
        switch outcome {
        case .ready(let latency):
            self.latency = latency
            preparations[place].standing = .clockless(latency: latency)
            return sayReady(at: now)
        case .failed(let reason):
            // The bytes may be what is wrong with it: load them again next time.
            let hash = preparations[place].order.asset.hash
            distrust(hash)
            preparations.remove(at: place)
            failure = reason.limited(toBytes: RoomReport.longestText)
            return [.withdraw(id), notReady(id, reason)]
        }
    }

    mutating func take(_ quality: SharedClock.Quality, at now: LocalInstant) -> [RoomEffect] {
        clock = quality
        return sayReady(at: now)
    }

    /// Without a good group clock a room cannot start at an instant, however well prerolled.
    private mutating func sayReady(at now: LocalInstant) -> [RoomEffect] {
        guard clock.isPlayable, isJoined else { return [] }
        var effects: [RoomEffect] = []
        for place in preparations.indices {
            guard case .clockless(let latency) = preparations[place].standing else { continue }
            preparations[place].standing = .ready
            failure = ""
            // The leader must know before it counts this room as one that is heard.
            if report.isCardLost, reported?.activity != .cardLost {
                effects.append(.send(.report(currentReport)))
                reported = (activity, proof.finding, now)
            }
            effects.append(
                .send(.ready(preparation: preparations[place].order.id, latency: latency)))
        }
        return effects + joinLine(at: now)
    }

    /// Plays along with a line that runs without waiting to be told when: all it takes is known.
    /// The leader's commit is on its way and will say the same.
    private mutating func joinLine(at now: LocalInstant) -> [RoomEffect] {
        guard lines.isEmpty, let session, session.phase == .playing,
            let change = session.change, let hash = session.current?.hash,
            let joining = preparations.first(where: {
                $0.standing == .ready && $0.order.change == change && $0.order.asset.hash == hash
            })
        else { return [] }
        return start(
            Commit(
                id: joining.order.id, index: session.index, hash: hash, change: change,
                following: false), at: now)
    }

    // MARK: Lines

    mutating func start(_ commit: Commit, at now: LocalInstant) -> [RoomEffect] {
        if let line = lines.first(where: { $0.id == commit.id }) {
            return line.change == commit.change
                ? [] : [notReady(commit.id, "this line was committed before with another instant")]
        }
        guard let place = preparations.firstIndex(where: { $0.order.id == commit.id }) else {
            return [notReady(commit.id, "no such preparation here")]
        }
        let preparation = preparations[place]
        guard preparation.order.asset.hash == commit.hash, commit.change.isPlayable else {
            return [notReady(commit.id, "the commit is not for what was prepared")]
        }
        switch preparation.standing {
        case .fetching, .prerolling, .clockless:
            return [notReady(commit.id, "not ready yet")]
        case .running:
            preparations.remove(at: place)
            guard
                let line = lines.firstIndex(where: {
                    $0.hash == commit.hash && $0.change == commit.change
                })
            else { return [notReady(commit.id, "the line to continue has ended")] }
            adopt(line, as: commit.id)
            return []
        case .ready:
            preparations.remove(at: place)
            if let sounding = lines.firstIndex(where: {
                $0.hash == commit.hash && $0.change == commit.change
            }) {
                // Offered twice, and joined by the first: it goes on.
                adopt(sounding, as: commit.id)
                return [.withdraw(commit.id)]
            }
            if !commit.following { lines = [] }
            if lines.count >= Self.mostLines { lines.removeFirst() }
            lines.append(
                RoomLine(
                    id: commit.id, voice: commit.id, hash: commit.hash, change: commit.change,
                    end: preparation.order.asset.end(on: commit.change)))
            isPaused = false
            proof.begin(commit, voice: commit.id, of: preparation.order.asset, at: now)
            return [.apply(commit)]
        }
    }

    /// The leader knows of a line that was committed before.
    private mutating func adopt(_ place: Int, as id: UInt64) {
        lines[place].id = id
        lines[place].isAdopted = true
        proof.rename(lines[place].voice, to: id)
    }

    /// A commit by datagram: applied when it fits what is here, else left to the stream.
    mutating func notified(_ notice: CommitDatagram, at now: LocalInstant) -> [RoomEffect] {
        let commit = notice.commit
        guard isJoined, notice.instance == configuration.instance,
            notice.term == membership?.term, commit.change.isPlayable
        else { return [] }
        if commit.isPause {
            return lines.contains { $0.id == commit.id } ? pause(commit) : []
        }
        let isAwaited = preparations.contains {
            $0.order.id == commit.id && $0.standing == .ready
                && $0.order.asset.hash == commit.hash
        }
        return isAwaited ? start(commit, at: now) : []
    }

    mutating func pause(_ commit: Commit) -> [RoomEffect] {
        if commit == lastPause { return [] }
        guard let place = lines.firstIndex(where: { $0.id == commit.id }) else {
            return [notReady(commit.id, "nothing of this preparation sounds here")]
        }
        lastPause = commit
        var order = commit
        order.id = lines.remove(at: place).voice
        isPaused = true
        proof.stop(order.id, at: commit.change.instant)
        return [.apply(order)]
    }

    mutating func withdraw(_ id: UInt64) -> [RoomEffect] {
        if let place = preparations.firstIndex(where: { $0.order.id == id }) {
            return preparations.remove(at: place).hasVoice ? [.withdraw(id)] : []
        }
        if let place = lines.firstIndex(where: { $0.id == id }) {
            let voice = lines.remove(at: place).voice
            proof.forget(voice)
            return [.withdraw(voice)]
        }
        return []
    }

    mutating func itemEnded(_ voice: UInt64) -> [RoomEffect] {
        lines.removeAll { $0.voice == voice }
        return []
    }

    /// The leader offers the line again.
    mutating func itemFailed(_ voice: UInt64, _ reason: String) -> [RoomEffect] {
        let broken = lines.filter { $0.voice == voice }
        let place = preparations.firstIndex { $0.order.id == voice && $0.hasVoice }
        guard let hash = broken.first?.hash ?? place.map({ preparations[$0].order.asset.hash })
        else { return [] }  // withdrawn meanwhile
        lines.removeAll { $0.voice == voice }
        proof.forget(voice)
        if let place { preparations.remove(at: place) }
        distrust(hash)
        failure = reason.limited(toBytes: RoomReport.longestText)
        let ids = broken.map(\.id) + (place == nil ? [] : [voice])
        return [.withdraw(voice)] + ids.map { notReady($0, reason) }
    }

    // MARK: The session

    mutating func take(_ state: SessionState) -> [RoomEffect] {
        guard state.term == membership?.term else { return [] }
        if !awaitsState, let session, !state.isNewer(than: session) { return [] }
        var effects: [RoomEffect] = []
        if awaitsState, !lines.isEmpty, !continues(state) {
            // The group went elsewhere while we were away: silence is better than out of step.
            forgetVoices()
            effects.append(.stop)
        }
        effects += dropStrays(from: state)
        awaitsState = false
        session = state
        isPaused = state.phase == .paused
        switch state.phase {
        case .playing, .preparing: break
        case .waiting, .paused, .stopped, .ended: proof.calm()
        }
        return effects + [.state(state)] + prefetch()
    }

    mutating func take(_ progress: SessionProgress) -> [RoomEffect] {
        // The whole state comes first on every link; what does not fit it is left over from before.
        guard !awaitsState, let state = session?.with(progress) else { return [] }
        return take(state)
    }

    mutating func take(_ change: QueueChange) -> [RoomEffect] {
        guard !awaitsState, let state = session?.with(change) else { return [] }
        return take(state)
    }
}
