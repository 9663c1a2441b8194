import TuttiGroupControl
import TuttiPlayout

extension SessionAssets.Asset {
    /// Of errors that are about a part by its own name, and not about its file.
    static let partOperation = "cue"

    /// The part of the same file that an item of a cue sheet means.
    ///
    /// - Throws: `MediaError` where the file ends before it begins.
    func part(_ item: AssetList.Item) throws(MediaError) -> SessionAssets.Asset {
        guard let span = item.span else { return self }
        let count = descriptor.fileFrameCount
        func failure(_ reason: String) -> MediaError {
            MediaError(
                .damaged, operation: Self.partOperation, subject: item.title ?? item.location,
                reason: reason)
        }
        guard let frames = span.frames(sampleRate: descriptor.sampleRate, count: count) else {
            throw failure(
                "begins behind the end of its file; the cue sheet is of another file (\(AssetName.shown(item.location)))"
            )
        }
        do {
            var part = self
            part.item = item
            part.descriptor = try AssetDescriptor(
                hash: descriptor.hash, byteCount: descriptor.byteCount,
                sampleRate: descriptor.sampleRate, frameCount: Int64(frames.count),
                title: item.title ?? AssetName.shown(item.location),
                fileExtension: descriptor.fileExtension,
                piecesRoot: descriptor.piecesRoot,
                excerpt: AssetDescriptor.Excerpt(
                    firstFrame: frames.lowerBound, fileFrameCount: count))
            return part
        } catch {
            throw failure("cannot be played: \(error)")
        }
    }
}
