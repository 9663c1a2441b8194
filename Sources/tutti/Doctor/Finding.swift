import TuttiDeviceOutput
import TuttiGroupControl
import TuttiLinuxHost

/// The result of one test: how it stands, what was found, and what to do about it.
struct Finding: Encodable, Equatable {
    enum Level: String, Encodable, CaseIterable, Comparable {
        /// As it should be.
        case ok
        /// Worth knowing; nothing is lost by it.
        case note
        /// Tutti works, but not as well as it could.
        case warning
        /// A room cannot play like this.
        case problem

        static func < (a: Self, b: Self) -> Bool {
            guard let a = allCases.firstIndex(of: a), let b = allCases.firstIndex(of: b) else {
                return false
            }
            return a < b
        }
    }

    /// What was tested, in two or three words.
    var area: String
    var level: Level
    /// One sentence with the measured value.
    var found: String
    /// One sentence: the command or the file that changes it; `nil` where there is nothing to do.
    var advice: String?

    private init(_ area: String, _ level: Level, _ found: String, _ advice: String?) {
        self.area = area
        self.level = level
        self.found = found
        self.advice = advice
    }

    static func ok(_ area: String, _ found: String) -> Finding {
        Finding(area, .ok, found, nil)
    }

    static func note(_ area: String, _ found: String, advice: String? = nil) -> Finding {
        Finding(area, .note, found, advice)
    }

    static func warning(_ area: String, _ found: String, advice: String) -> Finding {
        Finding(area, .warning, found, advice)
    }

    static func problem(_ area: String, _ found: String, advice: String) -> Finding {
        Finding(area, .problem, found, advice)
    }
}

/// Everything that the probes found out, or why not.
///
/// A probe that does not come back in time leaves `.unanswered`; judgement says so instead of
/// guessing.
struct DoctorFacts: Sendable {
    enum Answer<Value: Sendable>: Sendable {
        case found(Value)
        case failed(String)
        /// No answer within the probe's limit.
        case unanswered
        /// There was nothing to test.
        case skipped
    }

    var machine = DoctorFacts.Answer<MachineFacts>.skipped
    var wakeUps = DoctorFacts.Answer<WakeUpFacts>.skipped
    var output = DoctorFacts.Answer<OutputFacts>.skipped
    var interfaces = DoctorFacts.Answer<[InterfaceFacts]>.skipped
    var loopback = DoctorFacts.Answer<ExchangeFacts>.skipped
    var leader = DoctorFacts.Answer<ExchangeFacts>.skipped
    var group = DoctorFacts.Answer<GroupStatus>.skipped
    var multicast = DoctorFacts.Answer<[MulticastFacts]>.skipped
    var ports = DoctorFacts.Answer<PortFacts>.skipped
    var avahi = DoctorFacts.Answer<AvahiFacts>.skipped
    var cache = DoctorFacts.Answer<FolderFacts>.skipped
    var state = DoctorFacts.Answer<FolderFacts>.skipped
    var codecs = DoctorFacts.Answer<CodecFacts>.skipped
}

/// What the chosen output is.
enum OutputFacts: Equatable, Sendable {
    case card(CardFacts)
    /// A card without hardware, or none at all.
    case none(String)
    /// A file: the folder it goes to, and what is there already.
    case file(path: String, folder: FolderFacts, place: FilePlace)
}

struct AvahiFacts: Equatable, Sendable {
    /// A bus socket is there and answers.
    var hasBus: Bool
    /// The daemon has answered through the bus.
    var isRunning: Bool
}

struct CodecFacts: Equatable, Sendable {
    var version: String
    var titles: [String]
    var missing: [String]
    var readsHTTP: Bool
}

/// What a room is meant to do here: what counts as missing depends on it.
struct DoctorWishes: Sendable {
    var output: String
    var leader: String?
    var usesAvahi: Bool
    /// The owner wants leaders to be found, and said so.
    var asksForAvahi: Bool
    var bufferMilliseconds: Int
    var cacheLimitMegabytes: Int
}
