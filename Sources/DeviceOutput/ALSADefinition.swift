import CTuttiALSA
import Glibc

/// A part of ALSA's configuration as it was read, before anything in it is expanded
/// (`<alsa/conf.h>`).
indirect enum ALSADefinition: Equatable {
    /// A number too.
    case text(String)
    case compound([String: ALSADefinition])

    /// Deeper than any definition of a PCM is.
    private static let deepest = 16

    /// What the configuration has under a key (`pcm.kitchen`); `nil` where there is nothing.
    static func named(_ key: String) -> ALSADefinition? {
        guard let copy = unsafe tutti_alsa_definition(key) else { return nil }
        defer { unsafe snd_config_delete(copy) }
        return unsafe ALSADefinition(copy, depth: 0)
    }

    /// - Returns: what a text of the configuration defines at its top; `nil` where it is none.
    static func parsed(_ text: String) -> ALSADefinition? {
        var top: OpaquePointer?
        var input: OpaquePointer?
        guard unsafe snd_config_top(&top) >= 0, let top = unsafe top else { return nil }
        defer { unsafe snd_config_delete(top) }
        guard unsafe snd_input_buffer_open(&input, text, -1) >= 0, let input = unsafe input else {
            return nil
        }
        defer { unsafe snd_input_close(input) }
        guard unsafe snd_config_load(top, input) >= 0 else { return nil }
        return unsafe ALSADefinition(top, depth: 0)
    }

    private init?(_ node: OpaquePointer, depth: Int) {
        guard depth < Self.deepest else { return nil }
        if unsafe snd_config_get_type(node) == SND_CONFIG_TYPE_COMPOUND {
            var parts: [String: ALSADefinition] = [:]
            var place = unsafe snd_config_iterator_first(node)
            let end = unsafe snd_config_iterator_end(node)
            while let at = unsafe place, unsafe at != end {
                if let entry = unsafe snd_config_iterator_entry(at) {
                    var name: UnsafePointer<CChar>?
                    if unsafe snd_config_get_id(entry, &name) >= 0, let name = unsafe name {
                        unsafe parts[String(cString: name)] = ALSADefinition(
                            entry, depth: depth + 1)
                    }
                }
                place = unsafe snd_config_iterator_next(at)
            }
            self = .compound(parts)
        } else {
            var text: UnsafeMutablePointer<CChar>?
            guard unsafe snd_config_get_ascii(node, &text) >= 0, let text = unsafe text else {
                return nil
            }
            defer { unsafe free(text) }
            self = .text(unsafe String(cString: text))
        }
    }

    subscript(key: String) -> ALSADefinition? {
        if case .compound(let parts) = self { parts[key] } else { nil }
    }
}
