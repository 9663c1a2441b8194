import Testing
import TuttiTiming

@testable import TuttiGroupControl

/// A queue of items that are over before the next could be prepared.
@Suite struct `Short items` {
    /// A leader whose rooms answer each preparation after the same time.
    private struct Group {
        var stage: Stage
        let preparing: Nanoseconds
        var answered: [LinkID: Int] = [:]
        /// When each commit was said.
        var said: [UInt64: GroupInstant] = [:]
        var due: [(at: GroupInstant, id: UInt64, link: LinkID)] = []

        init(_ queue: [AssetDescriptor], preparing: Nanoseconds, loops: Bool = false) {
            stage = Stage(configuration(queue: queue, loops: loops))
            self.preparing = preparing
        }

        mutating func join(_ link: LinkID) {
            stage.hello(link, "room \(link)")
            stage.receive(.report(stage.report), from: link)
            answered[link] = 0
        }

        mutating func run(for span: Nanoseconds) {
            let end = stage.now + span
            while stage.now < end {
                stage.advance(by: .milliseconds(1), heard: Array(answered.keys))
                for (link, count) in answered {
                    let orders = stage.preparations(link)
                    for order in orders[count...] {
                        due.append((stage.now + preparing, order.id, link))
                    }
                    answered[link] = orders.count
                }
                for answer in due where answer.at <= stage.now {
                    stage.receive(
                        .ready(preparation: answer.id, latency: .milliseconds(80)),
                        from: answer.link)
                }
                due.removeAll { $0.at <= stage.now }
                for link in answered.keys {
                    for commit in stage.commits(link) where said[commit.id] == nil {
                        said[commit.id] = stage.now
                    }
                }
            }
        }
    }

    @Test(arguments: [(20, 60), (20, 200), (10, 60), (5, 20), (49, 400), (300, 900)])
    func `each begins where the one before it ends, and every room is told in time`(
        milliseconds: Int, preparing: Int64
    ) {
        let queue = (1...40).map { asset(UInt64($0), seconds: Double(milliseconds) / 1_000) }
        var group = Group(queue, preparing: .milliseconds(preparing))
        group.join(1)
        group.run(for: .milliseconds(Int64(milliseconds) * 41 + 2_500))
        let commits = group.stage.commits(1).sorted { $0.change.instant < $1.change.instant }
        #expect(commits.map(\.index) == Array(0..<40))
        for (one, next) in zip(commits, commits.dropFirst()) {
            let item = queue[one.index]
            #expect(
                next.change.instant
                    == one.change.instant(ofFrame: item.frameCount, sampleRate: item.sampleRate))
            // Half a round trip and the queue of the card.
            let told = group.said[next.id] ?? next.change.instant
            #expect(next.change.instant - told >= .milliseconds(81), "item \(next.index)")
        }
        #expect(group.stage.leader.session.phase == .ended)
    }

    @Test func `a room that joins plays along after a moment`() {
        let queue = (1...50).map { asset(UInt64($0), seconds: 0.04) }
        var group = Group(queue, preparing: .milliseconds(60), loops: true)
        group.join(1)
        group.run(for: .seconds(3))
        group.join(2)
        group.run(for: .seconds(4))
        let (old, new) = (group.stage.commits(1), group.stage.commits(2))
        // The very same lines, from some item on.
        let since = group.stage.now - .seconds(2)
        func late(_ commits: [Commit]) -> Set<RateChange> {
            Set(commits.map(\.change).filter { $0.instant > since && $0.instant < group.stage.now })
        }
        #expect(late(old).count >= 45)
        #expect(late(new) == late(old))
    }

    @Test func `a seek takes the whole chain back, and what is prepared stays bounded`() {
        let queue = [asset(1)] + (2...60).map { asset(UInt64($0), seconds: 0.02) }
        var group = Group(queue, preparing: .milliseconds(20))
        group.join(1)
        group.run(for: .seconds(1))
        #expect(group.stage.command(.seek(seconds: 58.5)) == .accepted)
        group.run(for: .milliseconds(1_000))
        let open = group.stage.preparations(1).count - group.stage.withdrawn(1).count
        #expect(open <= LeaderMachine.mostChained + 4)
        #expect(group.stage.leader.chain.count > 3)
        group.stage.command(.seek(seconds: 3))
        group.run(for: .milliseconds(100))
        #expect(group.stage.leader.chain.isEmpty && group.stage.leader.followUp == nil)
        let withdrawn = Set(group.stage.withdrawn(1))
        let ahead = group.stage.commits(1).filter(\.following).map(\.id)
        #expect(ahead.allSatisfy(withdrawn.contains))
    }

    @Test func `long items are prepared one at a time`() {
        var stage = Stage.playing(
            GroupControlTests.configuration(queue: (1...5).map { asset(UInt64($0)) }))
        stage.advance(by: .seconds(55), heard: [1])
        #expect(stage.preparations(1).count == 2)
        #expect(stage.leader.chain.isEmpty)
    }
}
