import TuttiClockSync
import TuttiGroupControl
import TuttiPlayout
import TuttiTiming

// What clock and card say of themselves, in the words of a report.

extension StampKind {
    init(_ stamps: StampClass) {
        switch stamps {
        case .program: self = .program
        case .kernelReceive: self = .kernelReceive
        case .kernel: self = .kernel
        }
    }
}

extension CardKind {
    init(_ card: CardClass) {
        switch card {
        case .probing: self = .undecided
        case .fine: self = .fine
        case .batch: self = .batch
        case .coarse: self = .coarse
        case .unreadable: self = .unreadable
        }
    }
}

extension BroadcastState {
    init(_ state: ReferenceState) {
        switch state {
        case .off: self = .off
        case .noMulticast: self = .noMulticast
        case .alone: self = .alone
        case .notHeard: self = .notHeard
        case .gathering: self = .gathering
        case .scattered: self = .scattered
        case .standingOffset: self = .standingOffset
        case .inUse: self = .inUse
        case .unneeded: self = .unneeded
        }
    }
}
