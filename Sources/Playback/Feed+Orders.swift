import TuttiPlayout
import TuttiTiming

extension Feed {
    /// What the voice of a feed is told, and what of it has not reached the output thread yet: there
    /// may be no voice, or its queue of commands may be full.
    struct Orders {
        struct Stop {
            /// `nil`: now.
            var instant: GroupInstant?
        }

        /// Counts starts and stops. Who reports on one says which: a report that comes after a newer
        /// order is about something that nobody wants to know any more.
        private(set) var number: UInt64 = 0
        /// Of the last start.
        private(set) var startNumber: UInt64 = 0
        private(set) var start: Start?
        private(set) var stop: Stop?
        private var owesStart = false
        private var owesStop = false
        private var owesGain = false
        private var gain: Float = 1

        var isStopped: Bool { stop != nil }
        /// The start, unless a stop followed it.
        var running: Start? { isStopped ? nil : start }
        /// Whether everything has been passed on.
        var isPassed: Bool { !owesStart && !owesStop && !owesGain }

        mutating func setGain(_ linear: Float) {
            gain = linear
            owesGain = true
        }

        mutating func start(_ start: Start) {
            number += 1
            startNumber = number
            self.start = start
            stop = nil
            (owesStart, owesStop) = (true, false)
        }

        /// - Parameter isSounding: whether there is a voice that may have begun.
        mutating func stop(at instant: GroupInstant?, isSounding: Bool) {
            number += 1
            stop = Stop(instant: instant)
            guard start != nil else { return }
            owesStop = true
            // What has not begun need not begin to be ended now.
            if instant == nil, !isSounding {
                start = nil
                (owesStart, owesStop) = (false, false)
            }
        }

        /// Tells the voices what they have not been told. What their queue has no room for stays owed, by
        /// all of them: to be told twice changes nothing.
        mutating func pass(to voices: [Voice]) {
            guard !voices.isEmpty else { return }
            func tell(_ order: (Voice) -> Bool) -> Bool {
                var isTold = true
                for voice in voices where !order(voice) { isTold = false }
                return isTold
            }
            // First: a start takes it along.
            if owesGain { owesGain = !tell { $0.setGain(gain) } }
            if owesStart, let start {
                owesStart = !tell {
                    $0.start(
                        start.line, clock: start.clock?.cell, endFrame: start.endFrame,
                        fadeIn: start.fadesIn, number: startNumber, waits: start.waits)
                }
            }
            if owesStop, !owesStart, let stop { owesStop = !tell { $0.stop(at: stop.instant) } }
        }
    }
}
