import CTuttiALSA
import Glibc
package import TuttiPlayout

/// One PCM that ALSA's configuration offers for playback.
public struct ALSAName: Equatable, Sendable {
    /// What to write after `alsa:`.
    public var name: String
    /// One line for people; may be empty.
    public var description: String
}

extension ALSADevice {
    /// The PCMs that can be played on, as ALSA's configuration lists them; cards come and go.
    ///
    /// The list is of hints: a PCM that is not on it can still exist (`plug:'dmix:0'`).
    public static func availablePCMs() -> [ALSAName] {
        tutti_alsa_silence()
        var list: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
        guard unsafe snd_device_name_hint(-1, "pcm", &list) >= 0, let hints = unsafe list else {
            return []
        }
        defer { unsafe snd_device_name_free_hint(hints) }
        var names: [ALSAName] = []
        var next = unsafe hints
        while let hint = unsafe next.pointee {
            unsafe next += 1
            guard let name = unsafe text(of: hint, "NAME"), name != "null" else { continue }
            let direction = unsafe text(of: hint, "IOID")
            guard direction == nil || direction == "Output" else { continue }
            let lines = (unsafe text(of: hint, "DESC") ?? "").split(separator: "\n")
            names.append(ALSAName(name: name, description: lines.joined(separator: ", ")))
        }
        return names
    }

    /// The cards that are in the machine now, as `hw:0` with what they are called.
    static func availableCards() -> [ALSAName] {
        var cards: [ALSAName] = []
        var number: Int32 = -1
        while unsafe snd_card_next(&number) >= 0, number >= 0 {
            var name: UnsafeMutablePointer<CChar>?
            let code = unsafe snd_card_get_name(number, &name)
            let text = unsafe code >= 0 ? name.map { unsafe String(cString: $0) } ?? "" : ""
            unsafe free(name)
            cards.append(ALSAName(name: "hw:\(number)", description: text))
        }
        return cards
    }

    /// Which cards there are, where a PCM names one that there is not; `nil` where it is there.
    public static func adviceOnMissingCard(of pcm: String) -> String? {
        tutti_alsa_silence()
        guard PCMName(pcm).isCardMissing else { return nil }
        return "there is no such card. \(ALSAFailure.known())"
    }

    private static func text(of hint: UnsafeMutableRawPointer, _ key: String) -> String? {
        guard let bytes = unsafe snd_device_name_get_hint(hint, key) else { return nil }
        defer { unsafe free(bytes) }
        return unsafe String(cString: bytes)
    }
}

/// Result codes of the library as errors that say what to do.
enum ALSAFailure {
    /// Names in an error; more do not fit a sentence.
    private static let namesInError = 12

    static func error(_ operation: String, _ code: Int32, pcm: String) -> OutputError {
        let library =
            switch -code {
            case driverRefuses: "the driver refuses to play"
            case ESTRPIPE: "the card, its bus or its machine is asleep"
            default: unsafe String(cString: snd_strerror(code))
            }
        return OutputError(
            operation: operation, code: code, device: "alsa:\(pcm)",
            reason: advice(code, of: pcm, opening: operation == "snd_pcm_open").map {
                "\(library); \($0)"
            } ?? library)
    }

    static func check(
        _ code: Int32, _ operation: String, pcm: String
    ) throws(OutputError) {
        if code < 0 { throw error(operation, code, pcm: pcm) }
    }

    /// ENOTSUPP of the kernel, which no C library has a name for: drivers of HDMI outputs return it
    /// while nothing is connected.
    private static let driverRefuses: Int32 = 524

    /// Whether a PCM that could not be opened may be there later without anybody correcting its
    /// name: the card is unplugged or in use, its sound server or its receiver is off.
    static func mayPass(_ error: OutputError, pcm: String) -> Bool {
        let name = PCMName(pcm)
        switch -error.code {
        case EBUSY, EAGAIN, EHOSTDOWN, ECONNREFUSED, EHOSTUNREACH, ETIMEDOUT, EPROTO, EIO, EPIPE,
            driverRefuses, ENODEV, ENOENT:
            return name.isPossible(isDefined: PCMName.isDefined)
        case EINVAL, ENXIO:
            // What else is wrong with a definition does not pass; some that name a card which is
            // not there fail like this.
            return name.isPossible(isDefined: PCMName.isDefined) && name.isCardMissing
        default: return false
        }
    }

    private static func advice(_ code: Int32, of pcm: String, opening: Bool) -> String? {
        switch (-code, opening) {
        case (EBUSY, _), (EAGAIN, true):
            "another program is using it: stop that program, or choose a PCM that mixes, "
                + "for example alsa:default"
        case (EACCES, _), (EPERM, _):
            "this user may not open it: add the user to the group “audio” and log in again"
        case (ENOENT, true) where PCMName(pcm).isCardMissing,
            (EINVAL, true) where PCMName(pcm).isCardMissing:
            "there is no such card. \(known())"
        case (ENOENT, true):
            "there is no PCM of that name, or no card behind it. \(known())"
        case (ENODEV, true), (ENXIO, true): "there is no such card. \(known())"
        case (driverRefuses, _):
            "on an HDMI or DisplayPort output this means that no screen or receiver is connected "
                + "and switched on: connect one, or choose another PCM. \(known())"
        case (EHOSTDOWN, _), (ECONNREFUSED, _), (EHOSTUNREACH, _), (EPIPE, true):
            "the sound server that this PCM leads to (PipeWire, PulseAudio) does not run for this "
                + "user: log in to a session that has one, or start it "
                + "(systemctl --user start pipewire pulseaudio), or play on the card itself, "
                + "alsa:hw:0"
        case (ETIMEDOUT, _):
            "the card or the sound server does not answer: restart it, or plug the card in again"
        case (EPROTO, _):
            "the USB connection to the card is disturbed: try another port or cable"
        case (ENOMEM, _):
            "the card's memory is used up: choose a smaller buffer with --buffer-ms"
        case (EINVAL, true):
            "the PCM's definition is not valid: dmix and dshare, for example, must lie on a hw: "
                + "card. \(known())"
        case (ENODEV, false), (ENXIO, false), (EBADFD, false), (EIO, false):
            "the card was unplugged or its driver failed: plug it in again"
        default: nil
        }
    }

    /// What can be played on instead: the cards first, since who misses one looks for its name.
    static func known() -> String {
        let others = ALSADevice.availablePCMs().map(\.name).filter {
            !converters.contains($0) && !$0.contains("CARD=")
        }
        let cards = ALSADevice.availableCards().map {
            $0.description.isEmpty ? $0.name : "\($0.name) (\($0.description))"
        }
        let names = cards + others
        let more = names.count > namesInError ? ", …" : ""
        let list = names.prefix(namesInError).joined(separator: ", ") + more
        if !cards.isEmpty { return "There are: \(list)" }
        return "No card is there now; without one play on virtual or file:PATH"
            + (others.isEmpty ? "" : ". Other names: \(list)")
    }

    /// PCMs of the library that only convert, on the way to the default one.
    private static let converters: Set = [
        "lavrate", "samplerate", "speexrate", "speex", "upmix", "vdownmix",
    ]
}

extension OutputSpecification {
    /// Whether an output that could not be opened may be there later, with nothing changed in what
    /// its owner wrote. What this program makes itself, a file or a virtual card, does not come.
    package func mayPass(_ error: OutputError) -> Bool {
        switch self {
        case .alsa(let pcm): ALSAFailure.mayPass(error, pcm: pcm)
        case .virtual, .file, .none: false
        }
    }
}
