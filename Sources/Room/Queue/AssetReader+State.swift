import Synchronization
import TuttiGroupControl

extension AssetReader {
    /// Something that was given, to be looked into.
    struct Job {
        var arguments: [AssetList.Argument]
        var place: QueuePlace
    }

    struct State {
        var jobs: [Job] = []
        /// For the leader, and not handed over yet.
        var fresh: [LeaderInput] = []
        /// What the queue lists.
        var items: [QueueEntry.ID: AssetList.Item] = [:]
        var unread: Set<QueueEntry.ID> = []
        /// Items that have been read, until the leader is seen to know where they are: nothing else
        /// keeps their files.
        var unseen: [QueueEntry.ID: ContentHash] = [:]
        var nextID: QueueEntry.ID = 1
        /// Items that are still being looked for, at least.
        var coming = 0
        var isListing = false
        /// Items that were listed are on their way to the leader.
        var isTelling = false
        var known = 0
        /// Items that somebody misses and that are not played.
        var missed = 0
        /// Items that were known and became something that cannot be played.
        var lost = 0
        /// Why the first of them is not.
        var firstReason: String?
        /// What was to be added and is not, a sentence each, the latest last, and how many there
        /// were.
        var leftOut: [String] = []
        var leftOutCount: UInt64 = 0
        var isGivenAny = false
        var wanted: Wanted?
        var tell: Tell?
    }
}

extension AssetReader.State {
    mutating func nextJob() -> AssetReader.Job? {
        guard !jobs.isEmpty else { return nil }
        isListing = true
        return jobs.removeFirst()
    }

    mutating func noteLeftOut(_ sentence: String) {
        leftOutCount += 1
        leftOut.append(sentence.limited(toBytes: QueueListing.longestSentence))
        leftOut = leftOut.suffix(QueueListing.mostLeftOut)
    }

    var isDone: Bool { jobs.isEmpty && !isListing && unread.isEmpty }

    var reasonOfNothing: String? {
        firstReason ?? (isGivenAny ? "there is nothing to play in what was given" : nil)
    }
}

extension AssetReader {
    /// What of it people see in a listing, beside the queue itself: what is about to join it, or
    /// will not.
    ///
    /// - Parameter isListing: whether it was still listing before the queue was looked at.
    func complete(_ listing: QueueListing, isListing: Bool) -> QueueListing {
        state.withLock { state in
            var listing = listing
            listing.coming = max(listing.coming, isListing ? max(1, state.coming) : 0)
            (listing.leftOut, listing.leftOutCount) = (state.leftOut, state.leftOutCount)
            return listing
        }
    }
}

extension LeaderInput {
    var isListed: Bool { if case .listed = self { true } else { false } }
}
