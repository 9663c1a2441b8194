import GroupControl
import Playback
import Playout

extension MediaOpener {
    /// Opens the part of the file that an item is.
    func part(_ asset: AssetDescriptor) -> MediaOpener {
        guard let excerpt = asset.excerpt else { return self }
        return MediaOpener { [open] location throws(MediaError) in
            try Excerpt(
                of: open(location), first: excerpt.firstFrame, count: asset.frameCount)
        }
    }
}
