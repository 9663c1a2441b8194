import TuttiGroupControl
import TuttiPlayback
import TuttiPlayout

extension AssetDescriptor {
    /// Why it cannot be fetched or played, for people: what it is first, then the reason. Where its
    /// bytes are kept or come from means nothing to them, and whoever cuts the sentence cuts its end.
    func words(for error: any Error) -> String {
        switch error {
        case let error as MediaError: "\(title): \(error.reason)"
        case let error as PlaybackError: error.underlying.map(words) ?? "\(title): \(error.reason)"
        // They name it themselves, where it is about the item.
        default: "\(error)"
        }
    }
}
