import CTuttiFFmpeg
import TuttiPlayout

/// What may be opened, and how.
extension Demuxer {
    /// Longest wait for a server that says nothing; long enough for a sleeping disk behind it.
    static let ioTimeoutMicroseconds = 10_000_000

    /// What may be opened. The list keeps out everything that names other files or devices
    /// (concat, playlists on disk, image sequences, lavfi); hls only from a server.
    private static let containers =
        "aac,ac3,aiff,alac,amr,ape,asf,au,avi,bonk,caf,dsf,dts,eac3,flac,flv,iff,loas,matroska,mlp,"
        + "mov,mp3,mpc,mpc8,mpeg,mpegts,oga,ogg,oma,rm,rso,sln,sox,tak,truehd,tta,voc,vqf,w64,wav,"
        + "wv,xwma"

    /// What else may be opened as a local file: old, of studios and of games. Whoever sends them over
    /// the network would reach demuxers that few look after.
    ///
    /// Left out on purpose: what only a name's ending tells (G.722, GSM, aptX), since rooms keep files
    /// under names of their own; and tracker modules and the chips of game consoles (libopenmpt,
    /// libgme), which are programs for a synthesiser that varies them at random or plays without
    /// end: two rooms would not hear the same.
    private static let localContainers =
        ",adx,aea,ast,avr,bfstm,brstm,epaf,gxf,hca,ircam,mmf,mxf,nistsphere,nsp,nut,paf,pvf,qcp,"
        + "sds,shn,spdif,svs,wtv,wve,xa"

    /// Headers are shorter, the pictures in them included: 64 MiB.
    private static let headerBlocksMax = (64 << 20) / ByteStream.blockSize

    static var containerList: String { containers + localContainers }

    /// Some demuxers call it an I/O error when a file ends within its header, as they call a disk
    /// that fails: whether it is not that.
    private static func readsToEnd(
        _ location: MediaLocation, _ cancellation: MediaCancellation
    ) -> Bool {
        // What arrives has an error of its own for bytes that do not.
        if location.incoming != nil { return true }
        guard !location.isRemote,
            let stream = try? ByteStream(location, cancellation: cancellation)
        else { return false }
        for _ in 0..<headerBlocksMax {
            guard let bytes = unsafe try? stream.next() else { return false }
            if bytes.isEmpty { return true }
        }
        return false
    }

    /// Whether a local file is an MP4 that ends before what tells where its samples are.
    private static func lacksTable(
        _ location: MediaLocation, _ cancellation: MediaCancellation
    ) -> Bool {
        guard let path = location.path, ContainerSignature.container(ofFile: path) == "mov" else {
            return false
        }
        var io: UnsafeMutablePointer<AVIOContext>?
        var interrupt = unsafe cancellation.interrupt
        guard
            unsafe avio_open2(&io, location.address.cFileName, AVIO_FLAG_READ, &interrupt, nil)
                >= 0,
            let opened = unsafe io
        else { return false }
        defer { unsafe avio_closep(&io) }
        return unsafe MP4Edits.isIncomplete(opened, size: avio_size(opened))
    }

    /// - Parameter location: is where it can be read, afterwards.
    /// - Returns: `nil` for what libavformat reads by itself.
    static func reader(
        of location: inout MediaLocation, _ cancellation: MediaCancellation
    ) throws(MediaError) -> LibraryReader? {
        if let file = location.incoming {
            return IncomingReader(file, location.part, cancellation: cancellation)
        }
        if let file = location.file {
            return FileReader(file, location, cancellation: cancellation)
        }
        guard location.isRemote else { return nil }
        switch try WebReader.open(location, cancellation: cancellation) {
        case .parts(let reader): return reader
        case .other: return nil
        case .body: break
        }
        switch try BodyReader.open(location, cancellation: cancellation) {
        case .read(let reader)?: return reader
        case .held(let here)?:
            location = here
            return try Self.reader(of: &location, cancellation)
        case nil: return nil
        }
    }

    /// What is opened, and the stream that is read.
    ///
    /// - Throws: `MediaError`; that bytes cannot be read goes before what a demuxer makes of it.
    static func open(
        _ location: MediaLocation, _ container: String?, _ kind: MediaTrack.Kind,
        _ reader: LibraryReader?, _ cancellation: MediaCancellation
    ) throws(MediaError) -> (UnsafeMutablePointer<AVFormatContext>, UnsafeMutablePointer<AVStream>)
    {
        do throws(MediaError) {
            let context = unsafe try open(location, container, reader, cancellation)
            do throws(MediaError) {
                return unsafe (context, try stream(kind, of: context, location))
            } catch {
                var context: UnsafeMutablePointer<AVFormatContext>? = unsafe context
                unsafe avformat_close_input(&context)
                throw error
            }
        } catch {
            throw reader?.firstFailure ?? error
        }
    }

    private static func open(
        _ location: MediaLocation, _ container: String?, _ reader: LibraryReader?,
        _ cancellation: MediaCancellation
    ) throws(MediaError) -> UnsafeMutablePointer<AVFormatContext> {
        var context = unsafe avformat_alloc_context()
        guard unsafe context != nil else { fatalError("no memory for a format context") }
        unsafe context!.pointee.interrupt_callback = cancellation.interrupt
        if let reader {
            unsafe context!.pointee.pb = reader.io
            unsafe context!.pointee.flags |= AVFMT_FLAG_CUSTOM_IO
        }
        var options: OpaquePointer?
        defer { unsafe av_dict_free(&options) }
        let protocols = location.isRemote ? "http,https,tcp,tls,crypto" : "file"
        let range = location.part == nil ? "" : ",subfile"
        unsafe av_dict_set(&options, "protocol_whitelist", protocols + range, 0)
        let kinds = containers + (location.isRemote ? ",hls" : localContainers)
        unsafe av_dict_set(&options, "format_whitelist", kinds, 0)
        // The demuxer's own cut at an edit list rounds the last packet to the movie's timescale,
        // often milliseconds; the table itself is exact.
        unsafe av_dict_set(&options, "advanced_editlist", "0", 0)
        unsafe MediaTrust.system.set(&options, for: location)
        if location.isRemote {
            unsafe av_dict_set_int(&options, "rw_timeout", Int64(ioTimeoutMicroseconds), 0)
        }
        let format = unsafe container.flatMap { unsafe av_find_input_format($0) }
        var code = unsafe avformat_open_input(
            &context, location.partAddress.cFileName, format, &options)
        guard code >= 0, let opened = unsafe context else {
            if code == cff_error(EIO), readsToEnd(location, cancellation) {
                throw MediaError(
                    .damaged, operation: "avformat_open_input", subject: location.subject,
                    reason: "ends within its header, as if cut off; try another copy")
            }
            if code == cff_error_invalid_data, lacksTable(location, cancellation) {
                throw MediaError(
                    .damaged, operation: "avformat_open_input", subject: location.subject,
                    reason: "is incomplete: its table of contents (moov) is missing, as when a "
                        + "recording or a download broke off; try another copy")
            }
            throw MediaError(library: code, operation: "avformat_open_input", location: location)
        }
        code = unsafe avformat_find_stream_info(opened, nil)
        guard code >= 0 else {
            unsafe avformat_close_input(&context)
            throw MediaError(
                library: code, operation: "avformat_find_stream_info", location: location)
        }
        return unsafe opened
    }
}
