import TuttiGroupControl
package import TuttiPlayback
package import TuttiPlayout

extension MediaOpener {
    /// Opens the part of the file that an item is.
    func part(_ asset: AssetDescriptor) -> MediaOpener {
        guard let excerpt = asset.excerpt else { return self }
        return MediaOpener(cancellableTracks: { location, track, cancellation throws(MediaError) in
            try Excerpt(
                of: open(location, track: track, cancellation: cancellation),
                first: excerpt.firstFrame, count: asset.frameCount)
        })
    }

    /// Opens a part of a file, with the names that it has; its picture is the file's.
    ///
    /// - Parameter opened: called with the format of the whole file.
    package func part(
        _ part: FilePart, opened: @escaping @Sendable (MediaFormat) -> Void = { _ in }
    ) -> MediaOpener {
        MediaOpener(cancellableTracks: { location, track, cancellation throws(MediaError) in
            let whole = try open(location, track: track, cancellation: cancellation)
            let (format, metadata) = (whole.format, part.named(whole.metadata))
            opened(format)
            guard let frames = part.frames(of: format) else {
                throw MediaError(
                    .damaged, operation: "cue", subject: location,
                    reason: "ends before \(part.credits.title ?? "one of its tracks") begins; "
                        + "the cue sheet is of another file")
            }
            return try Excerpt(
                of: whole, first: frames.lowerBound, count: Int64(frames.count), metadata: metadata)
        })
    }
}

extension FilePart {
    /// What the whole says, in the words of the part.
    fileprivate func named(_ whole: MediaMetadata) -> MediaMetadata {
        var metadata = whole
        metadata.chapters = []
        metadata.tags["title"] = credits.title
        metadata.tags["artist"] = credits.performer ?? whole.artist
        metadata.tags["album"] = credits.album ?? whole.album
        return metadata
    }
}
