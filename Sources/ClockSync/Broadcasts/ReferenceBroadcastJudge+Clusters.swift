import TuttiTiming

// Who hears the same packets, and what they learn from each.

extension ReferenceBroadcastJudge {
    /// How many others a room without a cluster is compared with in one pass.
    private static var attempts: Int { 8 }
    /// How fast the common line of a cluster follows the mean of its rooms, seconds. A room that
    /// comes or goes moves that mean, and nobody shall hear it.
    private static var meanTime: Double { 3 }
    private static var meanRateTime: Double { 10 }
    /// The least error that a room is believed to have, seconds, whatever it says.
    private static var leastError: Double { 0.5e-6 }
    /// The least trust in a room with a standing offset. Among others of its kind somebody must be
    /// the mean.
    private static var leastTrust: Double { 0.01 }
    /// A room that is further off than this many times its expected error is not believed.
    private static var doubt: Double { 4 }

    // MARK: Sorting

    /// Puts the receivers of one medium into clusters.
    mutating func sortClusters(of here: [Int], beacons: Range<UInt32>) {
        for cluster in clusters where here.contains(cluster[0]) {
            keep(cluster, beacons)
        }
        rebuildClusters()
        var heads = clusters.filter { here.contains($0[0]) }.map { $0[0] }
        // Two clusters may have begun apart: the later one's rooms come over, one pass later.
        for head in heads.dropFirst() where !isApart(compare(head, heads[0], beacons)) {
            for place in clusters.first(where: { $0[0] == head }) ?? [] { leave(place) }
            heads.removeAll { $0 == head }
        }
        let loose = here.filter { receivers[$0].cluster == 0 }
        for (turn, place) in loose.enumerated() where receivers[place].cluster == 0 {
            receivers[place].spread = .infinity
            // All others in their turn, as many in each pass.
            let rivals = loose.count - 1
            let others = (0..<min(rivals, Self.attempts)).map {
                loose[(turn + 1 + ($0 + passes * Self.attempts) % rivals) % loose.count]
            }
            for other in heads.prefix(Self.attempts) + others {
                let pair = compare(place, other, beacons)
                guard pair.count >= BeaconComparison.fewest else { continue }
                receivers[place].spread = min(receivers[place].spread, pair.spread)
                if isApart(pair) { continue }
                join(place, other, beacons)
                break
            }
        }
        rebuildClusters()
    }

    /// Lets go who does not hear what the first of its cluster hears.
    private mutating func keep(_ cluster: [Int], _ beacons: Range<UInt32>) {
        let head = cluster[0]
        var (left, nearest) = (1, Double.infinity)
        for place in cluster.dropFirst() {
            let pair = compare(place, head, beacons)
            let isLost = receivers[place].line?.isLost ?? true
            if pair.count < BeaconComparison.fewest / 2 || pair.spread > Self.spreadLimit
                || isLost
            {
                leave(place)
            } else {
                receivers[place].spread = pair.spread
                nearest = min(nearest, pair.spread)
                left += 1
            }
        }
        receivers[head].spread = nearest
        if left < 2 || receivers[head].line?.isLost ?? true {
            for place in cluster { leave(place) }
        }
    }

    private func compare(_ a: Int, _ b: Int, _ beacons: Range<UInt32>) -> BeaconComparison {
        BeaconComparison(
            beacons, receivers[a].heard, receivers[a].twoWay, receivers[b].heard,
            receivers[b].twoWay)
    }

    private func isApart(_ pair: BeaconComparison) -> Bool {
        // A spread of few is itself uncertain: two deviations of it must be below the limit.
        let margin = 1 - 2 / Double(max(1, pair.count)).squareRoot()
        return pair.count < BeaconComparison.fewest || pair.spread > Self.spreadLimit * margin
    }

    private mutating func join(_ place: Int, _ other: Int, _ beacons: Range<UInt32>) {
        if receivers[other].cluster == 0 {
            clustersMade += 1
            receivers[other].cluster = clustersMade
            let pair = compare(place, other, beacons)
            receivers[other].line = ReferenceLine(
                receivers[other].twoWay, at: receivers[other].t1, spread: pair.noise,
                scale: pair.scale / 2.0.squareRoot())
        }
        guard let line = receivers[other].line else { return }
        let pair = BeaconComparison(
            beacons, receivers[place].heard, receivers[place].twoWay, receivers[other].heard,
            line.map)
        var map = receivers[place].twoWay
        map.toAnchor += Nanoseconds(seconds: -pair.median)
        receivers[place].cluster = receivers[other].cluster
        receivers[place].spread = pair.spread
        receivers[other].spread = min(receivers[other].spread, pair.spread)
        receivers[place].line = ReferenceLine(
            map, at: receivers[place].t1, spread: pair.noise,
            scale: pair.scale / 2.0.squareRoot())
        beginOffsetsAnew(of: receivers[place].cluster)
    }

    private mutating func leave(_ place: Int) {
        beginOffsetsAnew(of: receivers[place].cluster)
        receivers[place].cluster = 0
        receivers[place].line = nil
    }

    /// The mean of other rooms is another mean: what moved then would pass for coming and going.
    private mutating func beginOffsetsAnew(of cluster: Int) {
        for place in receivers.indices where receivers[place].cluster == cluster {
            receivers[place].offset = PersistentOffset()
        }
    }

    mutating func rebuildClusters() {
        var members: [Int: [Int]] = [:]
        for place in receivers.indices where receivers[place].cluster != 0 {
            members[receivers[place].cluster, default: []].append(place)
        }
        clusters = members.sorted { $0.key < $1.key }.map(\.value).filter { $0.count > 1 }
        for (_, alone) in members where alone.count == 1 { leave(alone[0]) }
    }

    // MARK: Learning

    /// What the beacon `number` says about the clocks of a cluster.
    mutating func judge(_ number: UInt32, _ cluster: [Int]) {
        var present: [(place: Int, at: LocalInstant, late: Double)] = []
        var base: GroupInstant?
        for place in cluster {
            guard let at = receivers[place].heard[number], let line = receivers[place].line else {
                continue
            }
            receivers[place].line?.advance(to: at)
            let reading = line.map(at)
            let first = base ?? reading
            base = first
            present.append((place, at, (reading - first).seconds))
        }
        guard present.count > 1 else { return }
        var middle = 0.0
        if present.count > 2 {
            var values = present.map(\.late)
            middle = BeaconComparison.median(&values)
        }
        // Alike for all: a room that counted more would seem to scatter less, and count more still.
        var (sum, count) = (0.0, 0.0)
        for room in present {
            guard let line = receivers[room.place].line else { continue }
            let far = (room.late - middle).magnitude
            let isFar = far * far > 9 * (line.scale * line.scale + line.variance)
            // Of two, nobody knows which one was late.
            if present.count > 2, isFar { continue }
            sum += room.late
            count += 1
        }
        let mean = count > 0 ? sum / count : middle
        for room in present {
            receivers[room.place].line?.take(room.late - mean, of: present.count)
        }
    }

    /// Finds the mean of each cluster's two-way lines, and how far each room is from it.
    mutating func agree(after interval: Double) {
        for cluster in clusters {
            let errors = cluster.map { place -> Double in
                let receiver = receivers[place]
                guard let line = receiver.line else { return 0 }
                return (receiver.twoWay(receiver.t1) - line.map(receiver.t1)).seconds
            }
            var sorted = errors
            let middle = cluster.count > 2 ? BeaconComparison.median(&sorted) : nil
            var weights = cluster.indices.map {
                weight(errors[$0] - (middle ?? errors[$0]), cluster[$0])
            }
            var mean = Self.mean(errors, weights)
            for _ in 0..<2 {
                weights = cluster.indices.map { weight(errors[$0] - mean, cluster[$0]) }
                mean = Self.mean(errors, weights)
            }
            let rates = cluster.map { place in
                receivers[place].twoWay.skew - (receivers[place].line?.map.skew ?? 0)
            }
            let offset = mean * min(1, interval / Self.meanTime)
            let lean = Self.mean(rates, weights) * min(1, interval / Self.meanRateTime)
            let total = weights.reduce(0, +)
            for (index, place) in cluster.enumerated() {
                receivers[place].offset.take(
                    errors[index] - mean, weight: weights[index] / total, after: interval)
                receivers[place].line?.shift(by: offset, rate: lean)
            }
        }
    }

    private static func mean(_ values: [Double], _ weights: [Double]) -> Double {
        zip(values, weights).reduce(0) { $0 + $1.0 * $1.1 } / weights.reduce(0, +)
    }

    /// How much a room counts whose two-way line is `error` seconds off the mean: by what it thinks
    /// itself wrong by, or by what it is off the others, if that is more.
    private func weight(_ error: Double, _ place: Int) -> Double {
        let own = max(receivers[place].expectedError, Self.leastError)
        let scatter = receivers[place].line?.scale ?? 0
        let excess = max(0, error.magnitude - Self.doubt * max(own, 2 * scatter))
        let seen = receivers[place].offset.meanSquareToOthers / 2
        // What is not corrected shall not attract the others either.
        let trust = max(Self.leastTrust, 1 - receivers[place].offset.standing)
        return trust / (max(own * own, seen) + excess * excess)
    }
}
