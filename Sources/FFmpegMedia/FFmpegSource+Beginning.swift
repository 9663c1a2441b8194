import CTuttiFFmpeg
import TuttiPlayout

/// What is played from a server's first byte on, before all of it is here.
extension FFmpegSource {
    /// What opening finds.
    typealias Opened = (Demuxer, AudioDecoder, PacketMap, PacketLength, framesPerPacket: Int)

    /// An MP3 whose length is known by its first frame (``PromisedLength``).
    ///
    /// It is read once, in order; what comes is kept, and the first seek gets the rest and counts its
    /// packets, see ``complete(_:_:_:)``.
    ///
    /// - Returns: `nil` where all packets have to be counted first, or are known.
    static func beginEarly(
        _ demuxer: Demuxer, _ cancellation: MediaCancellation
    ) throws(MediaError) -> Opened? {
        var location = demuxer.location
        guard location.beginsEarly, demuxer.containerName == "mp3", demuxer.isSeekable,
            let size = Spool.byteCount(of: demuxer), !Spool.holds(location),
            let promised = try demuxer.looking({ () throws(MediaError) in
                PromisedLength(size: size) { demuxer.bytes(from: $0, count: $1) }
            }), let file = Spool.namelessFile()
        else { return nil }
        location.spool = SpoolFile(file)
        let first = try Demuxer(
            location, container: demuxer.containerName, cancellation: cancellation)
        let decoder = unsafe try AudioDecoder(for: first.stream, location: location)
        let survey = PacketSurvey(demuxer: first, decoder: decoder)
        guard let (map, framesPerPacket) = try survey.run(promised: promised) else { return nil }
        let length = unsafe PacketLength(
            for: first.stream.pointee.codecpar, probed: framesPerPacket)
        return (first, decoder, map, length, framesPerPacket)
    }

    /// All of what was begun so, with every packet counted. Blocks until it is here.
    static func complete(
        _ demuxer: Demuxer, _ format: MediaFormat, _ cancellation: MediaCancellation
    ) throws(MediaError) -> FFmpegSource {
        guard let spool = demuxer.location.spool, let size = demuxer.byteCount else {
            preconditionFailure("\(demuxer.location.subject) was not begun early")
        }
        var location = demuxer.location
        (location.spool, location.beginsEarly) = (nil, false)
        let here = try Spool.finish(spool, size, of: location, cancellation)
        let whole = try FFmpegSource(
            at: here ?? location, container: demuxer.containerName, cancellation: cancellation)
        guard whole.format.sampleRate == format.sampleRate else {
            throw MediaError(
                .damaged, operation: "seek", subject: location.subject,
                reason: "has another sample rate than its beginning says; open it again")
        }
        return whole
    }
}
