/// What a cue sheet, or a file's list of chapters, calls one of its tracks.
package struct TrackCredits: Equatable, Sendable {
    package var title: String?
    package var performer: String?
    /// What all of them are together.
    package var album: String?

    package init(title: String? = nil, performer: String? = nil, album: String? = nil) {
        (self.title, self.performer, self.album) = (title, performer, album)
    }
}
