import Synchronization
import TuttiPlayback
import TuttiPlayout
import TuttiRoom
import TuttiTiming

/// What the keys of the player's terminal do.
extension PlayFiles {
    /// Into an item, from where "previous" means its own beginning.
    private static let restartSeconds = 3.0

    /// Where a seek goes that has not arrived.
    struct Aim {
        var item: ObjectIdentifier
        var time: MediaTime
        /// Of the seeks so far.
        var number: Int
    }

    /// - Returns: whether it is to end; false when nothing more is typed.
    func take(_ bytes: AsyncStream<UInt8>) async -> Bool {
        var parser = TerminalInputParser()
        for await byte in bytes {
            parser.expectsMessages = expectsAnswer
            guard let input = parser.take(byte) else { continue }
            hearAnswer(input)
            guard let key = PlayKey(input) else { continue }
            if key == .quit { return true }
            self.do(key)
        }
        return false
    }

    func `do`(_ key: PlayKey) {
        switch key {
        case .togglePause: if player.rate == 0 { player.play() } else { player.pause() }
        case .next: if player.items().count > 1 { player.advanceToNextItem() }
        case .previous: goBack()
        case .seek(let span): move(by: span)
        case .volume(let percent):
            player.isMuted = false
            player.volume =
                Float(min(100, max(0, Int((player.volume * 100).rounded()) + percent)))
                / 100
        case .mute: player.isMuted.toggle()
        case .rate(let step):
            let wanted = step.map { player.defaultRate + Double($0) / 100 } ?? 1
            let rate = min(Self.rates.upperBound, max(Self.rates.lowerBound, wanted))
            try? player.setDefaultRate(rate)
            if player.rate != 0 { try? player.setRate(rate) }
        case .chapter(let step): goToChapter(step)
        case .quit: break
        }
    }

    /// Before the beginning of a part is the part before it; before that of a file there is
    /// nothing.
    private func move(by span: Double) {
        let time = here.seconds + span
        if time < 0, let place, let length = lengthBefore(place) {
            return go(before: place, at: max(0, length + time))
        }
        seek(to: MediaTime(seconds: max(0, time)))
    }

    /// - Parameter step: 1: the next one; −1: the one before, or the beginning of this one.
    private func goToChapter(_ step: Int) {
        if let place, files.items[place].part != nil {
            return self.do(step > 0 ? .next : .previous)
        }
        let chapters = player.currentItem?.metadata?.chapters ?? []
        let now = here
        let starts = chapters.map(\.range.start)
        let target =
            step > 0
            ? starts.first { $0 > now }
            : starts.last { $0.seconds < now.seconds - Self.restartSeconds } ?? starts.first
        if let target { seek(to: target) }
    }

    private func goBack() {
        guard let place = place, place > 0,
            here.seconds < Self.restartSeconds
        else {
            return seek(to: .zero)
        }
        go(before: place, at: 0)
    }

    /// Plays the item before one, from so many seconds into it on.
    private func go(before place: Int, at seconds: Double) {
        // What has been played has left the queue.
        let (before, again) = (item(at: place - 1), item(at: place))
        try? player.replaceCurrentItem(with: before)
        try? player.insert(again, after: before)
        if seconds > 0 { seek(to: MediaTime(seconds: seconds)) }
    }

    // MARK: Places

    /// Where the next key moves from: where the last one went, whether it is heard there yet or
    /// not.
    var here: MediaTime {
        let item = player.currentItem.map { ObjectIdentifier($0) }
        let aim = state.withLock { $0.aim }
        return aim.flatMap { $0.item == item ? $0.time : nil } ?? player.currentTime()
    }

    /// Nobody waits for a slow medium: another key may be pressed meanwhile, and a newer seek ends
    /// it.
    func seek(to time: MediaTime) {
        guard let item = player.currentItem else { return }
        let end = item.duration
        let aim = state.withLock { state in
            state.seeks += 1
            let aim = Aim(
                item: ObjectIdentifier(item), time: end.isNumeric && end < time ? end : time,
                number: state.seeks)
            state.aim = aim
            return aim
        }
        // Begun before this returns: of two, the second is the newer one.
        Task.immediate {
            await player.seek(to: aim.time)
            state.withLock { if $0.aim?.number == aim.number { $0.aim = nil } }
        }
    }
}
