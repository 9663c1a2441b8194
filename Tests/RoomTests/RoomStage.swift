import Foundation
import Logging
import Testing
import TuttiDeviceOutput
import TuttiGroupControl
import TuttiLinuxHost
import TuttiPlayback
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

@testable import TuttiRoom

/// The players of one room and what a `Member` does for them; the test is their leader.
///
/// Items are numbered from 0, and each is prepared once, as number + 1 of its term.
actor RoomStage {
    private let players: RoomPlayers
    private let output: OutputThread
    private let clock = LeaderClock(epoch: 5)
    private let folder: TemporaryFolder
    private let pieces: [(path: String, asset: AssetDescriptor)]
    private let noise: [[Float]]
    private var hearing: [Task<Void, Never>] = []
    /// Items that were played to their end, in order.
    private(set) var ends: [Int] = []

    init(_ seconds: [Double], _ folder: TemporaryFolder) throws {
        self.folder = folder
        let rate = TemporaryFolder.sampleRate
        pieces = try seconds.enumerated().map { number, length in
            let path = try folder.writeNoise(
                seconds: length, seed: 40 + UInt64(number), as: "\(number).wav")
            let asset = try AssetDescriptor(
                hash: ContentHash(bytes: [UInt8](repeating: UInt8(number), count: 32)),
                byteCount: 1_000, sampleRate: rate,
                frameCount: Int64(Int(length * Double(rate))), title: "\(number)",
                fileExtension: "wav")
            return (path, asset)
        }
        noise = try pieces.map { try Self.samples(of: $0.path) }
        output = try OutputThread.open(
            .virtual(VirtualCardOptions(record: folder.path("card"))), sampleRate: rate,
            bufferMilliseconds: 200, realTimePriority: 0)
        players = RoomPlayers(port: output.port, logger: Logger(label: "players"))
    }

    /// Of the left channel of a file that the folder wrote.
    static func samples(of path: String) throws -> [Float] {
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path)).dropFirst(44)
        return stride(from: bytes.startIndex, to: bytes.endIndex - 3, by: 4).map {
            Float(Int16(bitPattern: UInt16(bytes[$0]) | UInt16(bytes[$0 + 1]) << 8)) / 32_768
        }
    }

    // MARK: What a leader says

    /// Prepares and commits the first item.
    ///
    /// - Returns: the lines of all, each where the one before it ends.
    func begin() async throws -> [RateChange] {
        try await prepare(0, nil)
        var instant = clock.cell.load().map(HostClock.now()) + .milliseconds(400)
        let lines = try pieces.map { piece in
            let line = RateChange(itemFrame: 0, instant: instant, rate: 1)
            instant = try #require(
                line.instant(
                    ofFrame: piece.asset.frameCount, sampleRate: piece.asset.sampleRate))
            return line
        }
        try commit(0, lines[0], following: false)
        return lines
    }

    func id(_ number: Int) -> UInt64 { UInt64(number) + 1 }

    func prepare(_ number: Int, _ change: RateChange?) async throws {
        let (path, asset) = pieces[number]
        let order = Preparation(
            id: id(number), asset: asset, itemFrame: 0, rate: 1, change: change)
        let ticket = players.expect(order)
        try await players.prepare(
            order, ticket, Member.AssetFile(path: path), clock: clock.cell
        ) {}
        hearing.append(Task { await self.hear(number, ticket) })
    }

    private func hear(_ number: Int, _ ticket: RoomPlayers.Ticket) async {
        while let notices = players.notices(of: ticket) {
            for await notice in notices {
                guard players.isWanted(ticket) else { return }
                switch notice {
                case .didPlayToEnd:
                    ends.append(number)
                    players.withdraw(id(number))
                case .failedToPlayToEnd(let error): Issue.record(error, "item \(number)")
                default: break
                }
            }
        }
    }

    func commit(_ number: Int, _ change: RateChange, following: Bool = true) throws {
        apply(
            try players.apply(
                Commit(
                    id: id(number), index: number, hash: pieces[number].asset.hash, change: change,
                    following: following)))
    }

    func pause(_ number: Int, at instant: GroupInstant) throws {
        try commit(number, RateChange(itemFrame: 0, instant: instant, rate: 0), following: false)
    }

    func withdraw(_ number: Int) { players.withdraw(id(number)) }

    /// As ``Member/dropOnceSilent(_:)``.
    private func apply(_ ending: [RoomPlayers.Ticket]) {
        for ticket in ending {
            hearing.append(
                Task {
                    guard let instant = players.end(of: ticket) else { return }
                    try? await until(instant + .milliseconds(250))
                    players.dropEnded(ticket, at: instant)
                })
        }
    }

    // MARK: What comes of it

    var playerCount: Int {
        Set(players.parts.values.compactMap(\.player).map { ObjectIdentifier($0) }).count
    }

    /// Preparations that are heard at this moment.
    var soundingIDs: [UInt64?] {
        let look = players.look(by: clock.cell, isRunning: true, at: HostClock.now())
        return look.voices?.map(\.voice) ?? []
    }

    var isSilent: Bool { soundingIDs.isEmpty && players.parts.isEmpty }

    func until(_ instant: GroupInstant) async throws {
        while clock.cell.load().map(HostClock.now()) < instant {
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    func untilEnded(_ numbers: Int...) async throws {
        while !numbers.allSatisfy(ends.contains) { try await Task.sleep(for: .milliseconds(5)) }
        // What is said is of the last frame that is heard; the card is somewhat behind.
        try await Task.sleep(for: .milliseconds(100))
    }

    func stop() async {
        players.withdrawAll()
        output.stop()
        for task in hearing {
            task.cancel()
            await task.value
        }
    }

    /// What left the card up to now; nothing plays afterwards.
    func record() async throws -> RoomRecording {
        await stop()
        return RoomRecording(
            card: try CardRecording.load(path: folder.path("card")), noise: noise,
            clock: clock.cell.load())
    }
}

/// What left a card, held against the noise of the items.
struct RoomRecording {
    let card: CardRecording
    let noise: [[Float]]
    let clock: SharedClock

    /// Noise of which so little is alike is other noise, or another place of the same.
    private static let alike = 0.7
    /// So much noise is alike to itself by chance to a twentieth, which is a tenth of a frame.
    private static let block = TemporaryFolder.sampleRate / 40
    private static let reach = 24
    /// Quieter than noise ever is for a hundredth of a second.
    private static let quiet: Float = 1e-3

    /// Where the card is at an instant, in its frames.
    private func place(_ instant: GroupInstant) -> Double? {
        card.frame(at: clock.map.inverted(instant))
    }

    private func sample(_ frame: Int) -> Float {
        let index = frame * card.channelCount
        return card.samples.indices.contains(index) ? card.samples[index] : 0
    }

    /// By how many frames a piece is heard later than its line says, around a frame of it; `nil`: it
    /// is not heard there.
    private func lateness(_ piece: [Float], _ begin: Int, _ line: RateChange) -> Double? {
        let middle = begin + Self.block / 2
        guard
            let instant = line.instant(
                ofFrame: Int64(middle), sampleRate: TemporaryFolder.sampleRate),
            let place = place(instant)
        else { return nil }
        let first = Int(place.rounded()) - Self.block / 2
        func alike(_ lag: Int) -> Double {
            var (product, heard, meant) = (0.0, 0.0, 0.0)
            for offset in 0..<Self.block {
                let (x, y) = (Double(piece[begin + offset]), Double(sample(first + offset + lag)))
                (product, heard, meant) = (product + x * y, heard + y * y, meant + x * x)
            }
            return product / max((heard * meant).squareRoot(), 1e-12)
        }
        let lags = (-Self.reach...Self.reach).map { ($0, alike($0)) }
        guard let best = lags.max(by: { $0.1 < $1.1 }) else { return nil }
        let (before, after) = (alike(best.0 - 1), alike(best.0 + 1))
        let power = (before * before + best.1 * best.1 + after * after).squareRoot()
        guard power > Self.alike else { return nil }
        // Between two frames noise is alike to both, as sin(πd)/πd says: their shares are where.
        let fraction =
            after > before ? after / (best.1 + after) : -before / (best.1 + before)
        return Double(best.0) + fraction + place.rounded() - place
    }

    /// That each of these items is heard on its line from one time of it to another, in seconds, and by
    /// the same little everywhere.
    func expectSteady(
        _ spans: [(item: Int, from: Double, to: Double)], from lines: [RateChange],
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let rate = Double(TemporaryFolder.sampleRate)
        var all: [Double] = []
        for span in spans {
            let frames = Int(span.from * rate)..<Int(span.to * rate)
            for begin in stride(
                from: frames.lowerBound, through: frames.upperBound - Self.block, by: Self.block)
            {
                guard let late = lateness(noise[span.item], begin, lines[span.item]) else {
                    Issue.record(
                        "item \(span.item) is not heard at \(Double(begin) / rate) s",
                        sourceLocation: sourceLocation)
                    return
                }
                all.append(late)
            }
        }
        let middle = all.sorted()[all.count / 2]
        let worst = all.map { abs($0 - middle) }.max() ?? 0
        #expect(worst < 0.5, "\(worst) frames out of place", sourceLocation: sourceLocation)
        // A millisecond: the card was not there for long.
        #expect(abs(middle) < rate / 1_000, sourceLocation: sourceLocation)
    }

    /// That between the first sound and the last nothing is missing: no two milliseconds are quiet.
    func expectWhole(sourceLocation: SourceLocation = #_sourceLocation) {
        let loud = (0..<card.frameCount).filter { abs(sample($0)) > Self.quiet }
        let widest = zip(loud, loud.dropFirst()).map { $1 - $0 }.max() ?? .max
        #expect(
            widest < TemporaryFolder.sampleRate / 500, "\(widest) frames of silence",
            sourceLocation: sourceLocation)
        let expected = noise.reduce(0) { $0 + $1.count }
        #expect(
            abs((loud.last ?? 0) - (loud.first ?? 0) - expected) < Self.block,
            sourceLocation: sourceLocation)
    }

    func expectSilence(
        from begin: GroupInstant, to end: GroupInstant,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        guard let first = place(begin), let last = place(end), last - first > 100 else {
            Issue.record("there is no such stretch", sourceLocation: sourceLocation)
            return
        }
        // What the resampler makes of the beginning of a sound comes some frames before it.
        let loudest = (Int(first)..<Int(last) - 40).map { abs(sample($0)) }.max() ?? 0
        #expect(loudest < Self.quiet, "\(loudest)", sourceLocation: sourceLocation)
    }
}
