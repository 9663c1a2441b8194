import CTuttiFFmpeg
package import TuttiPlayout
package import TuttiTiming

/// What the header of a file says, without a look at its sound: a millisecond, where opening it to
/// play may take a second.
package struct MediaHeader: Equatable, Sendable {
    /// The beginning of a part.
    package struct Mark: Equatable, Sendable {
        package var start: MediaTime
        package var title: String?
    }

    /// Every tag by its name in lower case, as the container calls it.
    package var tags: [String: String] = [:]
    /// Where chapters begin, in their order; of FLAC the tracks of its cue sheet, which have no name.
    package var marks: [Mark] = []

    /// - Throws: `MediaError` for what is no audio file.
    package init(
        of path: String, cancellation: MediaCancellation = MediaCancellation()
    ) throws(MediaError) {
        precondition(libraryIsQuiet)
        let location = try MediaLocation(path)
        try location.checkReadable()
        var context = unsafe avformat_alloc_context()
        guard unsafe context != nil else { fatalError("no memory for a format context") }
        unsafe context!.pointee.interrupt_callback = cancellation.interrupt
        var options: OpaquePointer?
        defer { unsafe av_dict_free(&options) }
        unsafe av_dict_set(&options, "protocol_whitelist", "file", 0)
        unsafe av_dict_set(&options, "format_whitelist", Demuxer.containerList, 0)
        let code = unsafe avformat_open_input(
            &context, location.address.cFileName, nil, &options)
        guard code >= 0, let opened = unsafe context else {
            throw MediaError(library: code, operation: "avformat_open_input", location: location)
        }
        defer { unsafe avformat_close_input(&context) }
        // Ogg keeps its tags with the stream. What the file says counts more.
        for index in (0..<Int(unsafe opened.pointee.nb_streams)).reversed() {
            let stream = unsafe opened.pointee.streams[index]!
            unsafe Demuxer.collect(stream.pointee.metadata, into: &tags)
        }
        unsafe Demuxer.collect(opened.pointee.metadata, into: &tags)
        let isFLAC = unsafe String(cString: opened.pointee.iformat.pointee.name) == "flac"
        marks = unsafe Demuxer.chapters(of: opened).map {
            // FFmpeg gives the code of the recording (ISRC) for its title.
            Mark(start: $0.start, title: isFLAC ? nil : $0.title)
        }
    }
}
