import TuttiGroupControl
import TuttiTiming

// States that a room reports, as numbers and back. None is refused: a number of a newer version
// becomes `.unknown`, and a leader that does not know a state passes it on as such.

extension PBStamps {
    init(_ stamps: StampKind) {
        switch stamps {
        case .absent: self = .unspecified
        case .own: self = .own
        case .program: self = .program
        case .kernelReceive: self = .kernelReceive
        case .kernel: self = .kernel
        case .unknown: self = .unknown
        }
    }

    var kind: StampKind {
        switch self {
        case .unspecified: .absent
        case .own: .own
        case .program: .program
        case .kernelReceive: .kernelReceive
        case .kernel: .kernel
        case .unknown, .UNRECOGNIZED: .unknown
        }
    }
}

extension PBCardClass {
    init(_ card: CardKind) {
        switch card {
        case .undecided: self = .unspecified
        case .fine: self = .fine
        case .batch: self = .batch
        case .coarse: self = .coarse
        case .unreadable: self = .unreadable
        case .unknown: self = .unknown
        }
    }

    var kind: CardKind {
        switch self {
        case .unspecified: .undecided
        case .fine: .fine
        case .batch: .batch
        case .coarse: .coarse
        case .unreadable: .unreadable
        case .unknown, .UNRECOGNIZED: .unknown
        }
    }
}

extension PBQuality {
    init(_ clock: ClockState) {
        switch clock {
        case .unmeasured: self = .none
        case .holdover: self = .holdover
        case .acquiring: self = .acquiring
        case .locked: self = .locked
        case .unknown: self = .unspecified
        }
    }

    var state: ClockState {
        switch self {
        case .none: .unmeasured
        case .holdover: .holdover
        case .acquiring: .acquiring
        case .locked: .locked
        case .unspecified, .UNRECOGNIZED: .unknown
        }
    }
}

extension PBBroadcastState {
    init(_ state: BroadcastState) {
        switch state {
        case .absent: self = .unspecified
        case .off: self = .off
        case .noMulticast: self = .noMulticast
        case .alone: self = .alone
        case .notHeard: self = .notHeard
        case .gathering: self = .gathering
        case .scattered: self = .scattered
        case .standingOffset: self = .standingOffset
        case .inUse: self = .inUse
        case .unneeded: self = .unneeded
        case .unknown: self = .unknown
        }
    }

    var state: BroadcastState {
        switch self {
        case .unspecified: .absent
        case .off: .off
        case .noMulticast: .noMulticast
        case .alone: .alone
        case .notHeard: .notHeard
        case .gathering: .gathering
        case .scattered: .scattered
        case .standingOffset: .standingOffset
        case .inUse: .inUse
        case .unneeded: .unneeded
        case .unknown, .UNRECOGNIZED: .unknown
        }
    }
}
