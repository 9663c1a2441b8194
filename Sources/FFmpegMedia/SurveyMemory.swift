// The C module that reaches `timespec` first owns its members, so both are imported.
import CTuttiFFmpeg
import Glibc
import Synchronization
import TuttiPlayout

/// What is known of the packets of files that were opened before.
///
/// A room opens the same file for each start, seek and next round, and counting the packets of an
/// MP3 or Ogg reads all of it. What was found is kept for the next who opens the very same bytes:
/// the same file to the nanosecond of its last change, or what has the same hash.
///
/// Bounded by ``entriesMax`` and ``anchorsMax``; what was not used for longest goes first.
final class SurveyMemory: Sendable {
    static let shared = SurveyMemory()

    /// Chained files have an entry for each of their recordings.
    static let entriesMax = 2_048
    /// 32 bytes each: 4 MB, or nine hours of music.
    static let anchorsMax = 131_072

    /// Bytes, and how they are to be read.
    struct Key: Hashable {
        fileprivate enum Bytes: Hashable {
            case file(device: UInt64, FileStamp)
            /// Of a file that is still being fetched, as many frames as its leader counts.
            case hash([UInt8], frameCount: Int64?)
        }

        fileprivate let bytes: Bytes
        fileprivate let part: Range<Int64>?
        fileprivate let ignoresEdits: Bool
        fileprivate let followsRates: Bool
        fileprivate let container: String
        fileprivate let track: Int?

        /// - Parameter track: the stream that is surveyed, also where nobody asked for it by number.
        /// - Returns: `nil` for what may be something else the next time: a server's file, and one
        ///   that was written so lately that another write would not show.
        init?(_ location: MediaLocation, container: String, track: Int? = nil) {
            if let incoming = location.incoming {
                bytes = .hash(incoming.fingerprint.hash, frameCount: location.knownFrameCount)
            } else {
                guard let status = location.status, Self.isSettled(status) else { return nil }
                bytes = .file(device: UInt64(status.st_dev), FileStamp(status))
            }
            part = location.part
            ignoresEdits = location.ignoresEdits
            followsRates = location.followsRates
            self.container = container
            self.track = track
        }

        /// The clock of file times ticks every few milliseconds; two writes within one look like one.
        private static let tick: Int64 = 50_000_000

        private static func isSettled(_ status: stat) -> Bool {
            func nanoseconds(_ time: timespec) -> Int64 {
                Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
            }
            var now = timespec()
            unsafe clock_gettime(CLOCK_REALTIME, &now)
            return (nanoseconds(now) &- nanoseconds(status.st_ctim)).magnitude >= UInt64(tick)
        }
    }

    struct Survey {
        var map: PacketMap
        /// What ``PacketLength`` is to be told.
        var framesPerPacket: Int
        var sampleRate: Int
        var channelCount: Int

        fileprivate var anchorCount: Int {
            if case .anchors(let anchors, _) = map.numbering { anchors.count } else { 0 }
        }
    }

    private struct State {
        var surveys: [Key: (survey: Survey, use: Int)] = [:]
        var uses = 0
        var anchorCount = 0
        var added = 0

        mutating func remove(_ key: Key) {
            anchorCount -= surveys.removeValue(forKey: key)?.survey.anchorCount ?? 0
        }
    }

    private let state = Mutex(State())

    /// Surveys that were made, which may be more than are kept.
    var madeCount: Int { state.withLock { $0.added } }

    func survey(_ key: Key) -> Survey? {
        state.withLock { state in
            guard let found = state.surveys[key] else { return nil }
            state.uses += 1
            state.surveys[key]?.use = state.uses
            return found.survey
        }
    }

    func keep(_ survey: Survey, for key: Key) {
        state.withLock { state in
            state.added += 1
            state.remove(key)
            guard survey.anchorCount <= Self.anchorsMax else { return }
            state.uses += 1
            state.surveys[key] = (survey, state.uses)
            state.anchorCount += survey.anchorCount
            while state.surveys.count > Self.entriesMax || state.anchorCount > Self.anchorsMax,
                let oldest = state.surveys.min(by: { $0.value.use < $1.value.use })?.key
            {
                state.remove(oldest)
            }
        }
    }
}
