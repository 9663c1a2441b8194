import TuttiGroupControl
import TuttiTiming

/// What a command did, as lines for a person.
struct EffectText {
    let effect: CommandEffect

    init(_ effect: CommandEffect) { self.effect = effect }

    var lines: [String] {
        if let volume = effect.groupVolume {
            return ["the group: \(volume) %, and its rooms as loud to each other as before"]
        }
        guard effect.rooms.isEmpty else { return effect.rooms.map(line) }
        return [line]
    }

    /// What going to another item did: where nothing is heard of it, it has to be named.
    var linesOfItem: [String] {
        guard effect.phase == .paused, !effect.title.isEmpty else { return lines }
        return ["is at \"\(effect.title.printable)\", and stays paused"]
    }

    /// What a change of the rate did: what does not sound begins, or goes on, at it.
    func lines(atRate rate: Double) -> [String] {
        let pace = rate == 1 ? "as recorded" : "\(rate) times as fast"
        return switch effect.phase {
        case .playing: lines
        case .paused: ["\(line), and goes on \(pace)"]
        case .stopped, .ended: ["nothing plays; what begins next plays \(pace)"]
        case .waiting, .preparing: ["\(line), \(pace)"]
        }
    }

    private var line: String {
        let title = effect.title.isEmpty ? "" : " \"\(effect.title.printable)\""
        let place = effect.positionSeconds.map(PositionArgument.text)
        return switch effect.phase {
        case .waiting: "waits for rooms"
        case .preparing: "prepares\(title); it plays as soon as the rooms are ready"
        case .playing where place == nil:
            "prepares\(title); until then the group plays on"
        case .playing:
            "plays\(title)" + (place.map { (isComing ? " from " : ", at ") + $0 } ?? "") + delay
        case .paused: "paused" + (place.map { " at \($0)" } ?? "") + delay
        case .stopped: effect.title.isEmpty ? "nothing was playing" : "stopped"
        case .ended: "the queue has been played"
        }
    }

    private var isComing: Bool { effect.delay.map { $0 > .zero } ?? false }

    /// A command that finds everything as it asks for it has no effect to wait for.
    private var delay: String {
        guard let delay = effect.delay, delay > .zero else { return "" }
        let hundredths = Int((delay.seconds * 100).rounded(.up))
        return " in \(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100) s"
    }

    private func line(_ room: CommandEffect.Loudness) -> String {
        "\(room.room.printable): " + (room.isMuted ? "muted, " : "") + "\(room.volume) %"
    }
}
