import TuttiDeviceOutput
import TuttiGroupControl

/// What is wrong with a text that names no output, and what may have been meant by it.
struct MistypedOutput {
    let reason: String
    /// "; did you mean X?", or nothing.
    let question: String

    /// - Returns: `nil` for a text that names one.
    init?(_ text: String) {
        do {
            _ = try OutputSpecification(parsing: text)
            return nil
        } catch {
            var reason = error.reason
            if case .cardWithoutKind(let pcm) = error.slip,
                let advice = ALSADevice.adviceOnMissingCard(of: pcm)
            {
                reason += "; \(advice)"
            }
            self.reason = reason
            question = Self.meant(by: error).map { "; did you mean \"\($0)\"?" } ?? ""
        }
    }

    private static func meant(by error: OutputSpecificationError) -> String? {
        switch error.slip {
        case .cardWithoutKind(let pcm): return "alsa:\(pcm)"
        case .fileWithoutKind(let path): return "file:\(path)"
        case .mistyped(let word, let words):
            guard let range = error.text.firstRange(of: word),
                let nearest = Suggestion.nearest(to: word, among: words)
            else { return nil }
            var meant = error.text
            meant.replaceSubrange(range, with: nearest)
            guard (try? OutputSpecification(parsing: meant)) != nil else {
                // A PCM whose kind is missing too.
                return (try? OutputSpecification(parsing: "alsa:\(meant)")).map { "\($0)" }
            }
            return meant
        case nil: return nil
        }
    }
}
