import CTuttiFFmpeg
public import TuttiPlayout

extension Picture {
    /// Longest file of a picture that is decoded: what a cover may be, see ``Demuxer``.
    static let mostBytes = 16 << 20
    /// A square of 6 000: a scan of a sleeve. Decoded it takes up to 150 MB for a moment.
    static let mostPixels = 36_000_000
    /// Longest side of what comes out.
    static let longestSide = 4_096

    /// The first picture of a JPEG, PNG, GIF, BMP or WebP file, as large as fits, its shape kept.
    ///
    /// Blocks for as long as decoding takes: milliseconds, for the largest that is taken a few seconds.
    ///
    /// - Parameters:
    ///   - width: pixels at most, 1 to 4096; so is `height`.
    /// - Throws: `.unsupported` for no such file, `.tooLarge` for one that would take too much memory
    ///   or time, `.damaged` for one that cannot be decoded.
    public static func decode(
        _ bytes: [UInt8], fitting width: Int, _ height: Int
    ) throws(MediaError) -> Picture {
        precondition(libraryIsQuiet)
        precondition(
            1...longestSide ~= width && 1...longestSide ~= height,
            "a picture of \(width) × \(height) pixels")
        guard bytes.count <= mostBytes else {
            throw failure(.tooLarge, "is longer than \(mostBytes >> 20) MB; make it smaller")
        }
        guard let format = PictureFormat(bytes),
            let codec = unsafe avcodec_find_decoder(format.codec)
        else {
            throw failure(.unsupported, "is no JPEG, PNG, GIF, BMP or WebP that can be read here")
        }
        guard let data = format.decodable(bytes) else {
            throw failure(.tooLarge, "would take too long to decode; save it anew")
        }
        var frame = unsafe av_frame_alloc()
        defer { unsafe av_frame_free(&frame) }
        guard let frame = unsafe frame else { fatalError("no memory for a frame") }
        unsafe try decode(data, with: codec, into: frame)
        return unsafe try scaled(frame, fitting: width, height)
    }

    private static func failure(
        _ code: MediaError.Code, _ reason: String, in operation: String = "decode"
    ) -> MediaError {
        MediaError(code, operation: operation, subject: "the picture", reason: reason)
    }

    private static func decode(
        _ bytes: [UInt8], with codec: UnsafePointer<AVCodec>,
        into frame: UnsafeMutablePointer<AVFrame>
    ) throws(MediaError) {
        var context = unsafe avcodec_alloc_context3(codec)
        var packet = unsafe av_packet_alloc()
        defer {
            unsafe avcodec_free_context(&context)
            unsafe av_packet_free(&packet)
        }
        guard let context = unsafe context, let packet = unsafe packet else {
            fatalError("no memory for a decoder of pictures")
        }
        unsafe context.pointee.thread_count = 1
        // Before a picture takes any memory. The library counts the edges that it adds.
        unsafe context.pointee.max_pixels = Int64(mostPixels + mostPixels / 4)
        var code = unsafe avcodec_open2(context, codec, nil)
        if code >= 0 { code = unsafe av_new_packet(packet, Int32(bytes.count)) }
        if code >= 0 {
            unsafe packet.pointee.data.update(from: bytes, count: bytes.count)
            code = unsafe avcodec_send_packet(context, packet)
        }
        if code >= 0 {
            // There is no more: decoders that wait for the next picture are to give this one.
            unsafe avcodec_send_packet(context, nil)
            code = unsafe avcodec_receive_frame(context, frame)
        }
        guard code >= 0 else {
            // Which of both it is, decoders do not say.
            throw failure(
                .damaged,
                "cannot be decoded, or has many more than \(mostPixels / 1_000_000) million pixels: "
                    + libraryText(code), in: "avcodec_receive_frame")
        }
    }

    private static var tooLarge: MediaError {
        let most = mostPixels / 1_000_000
        return failure(.tooLarge, "has more than \(most) million pixels; make it smaller")
    }

    private static func scaled(
        _ frame: UnsafeMutablePointer<AVFrame>, fitting widthMax: Int, _ heightMax: Int
    ) throws(MediaError) -> Picture {
        let (width, height) = unsafe (Int(frame.pointee.width), Int(frame.pointee.height))
        guard width > 0, height > 0, var rows = unsafe PictureRows(frame) else {
            throw failure(.unsupported, "is stored in a way that cannot be shown; save it anew")
        }
        guard width * height <= mostPixels else { throw tooLarge }
        let size = size(of: width, height, fitting: widthMax, heightMax)
        var reduction = PictureReduction(of: width, height, to: size.width, size.height)
        for row in 0..<height {
            rows.read(row)
            reduction.add(row: row, rows.colours)
        }
        return reduction.picture
    }
}
