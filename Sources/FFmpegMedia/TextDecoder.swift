import CTuttiFFmpeg
import TuttiPlayout

import func Glibc.strlen

/// One codec context for text, and the lines of dialogue that come out of it.
@safe
final class TextDecoder {
    /// A line of Advanced SubStation Alpha as FFmpeg gives it, without times:
    /// `ReadOrder,Layer,Style,Name,MarginL,MarginR,MarginV,Effect,Text`.
    struct Line {
        var style: Substring
        var text: Substring

        init?(_ event: String) {
            let fields = event.split(
                separator: ",", maxSplits: 8, omittingEmptySubsequences: false)
            guard fields.count == 9 else { return nil }
            (style, text) = (fields[2], fields[8])
        }
    }

    let styles: DialogueStyles
    private var context: UnsafeMutablePointer<AVCodecContext>?

    /// Whether it is text, and no pictures of text.
    static func isText(_ id: AVCodecID) -> Bool {
        guard let descriptor = unsafe avcodec_descriptor_get(id) else { return false }
        return unsafe descriptor.pointee.props & AV_CODEC_PROP_TEXT_SUB != 0
    }

    /// - Throws: `.unsupported` for pictures of text, and for what this FFmpeg cannot decode.
    init(
        for stream: UnsafeMutablePointer<AVStream>, location: MediaLocation
    ) throws(MediaError) {
        let parameters = unsafe stream.pointee.codecpar!
        let id = unsafe parameters.pointee.codec_id
        if unsafe avcodec_descriptor_get(id) != nil, !Self.isText(id) {
            throw unsafe MediaError(
                .unsupported, operation: "avcodec_find_decoder", subject: location.subject,
                reason: "has pictures of text in track \(stream.pointee.index) "
                    + "(\(CodingName.text(of: parameters))), which cannot be read as letters; "
                    + "choose a track of text")
        }
        guard let codec = unsafe avcodec_find_decoder(id) else {
            throw unsafe MediaError(
                .unsupported, operation: "avcodec_find_decoder", subject: location.subject,
                reason: "has text in track \(stream.pointee.index) as "
                    + "\(CodingName.text(of: parameters)), which FFmpeg as installed here cannot "
                    + "decode; convert it, for example to SubRip")
        }
        guard let fresh = unsafe avcodec_alloc_context3(codec) else {
            fatalError("no memory for a codec context")
        }
        var owned: UnsafeMutablePointer<AVCodecContext>? = unsafe fresh
        var code = unsafe avcodec_parameters_to_context(fresh, parameters)
        if code >= 0 {
            unsafe fresh.pointee.pkt_timebase = stream.pointee.time_base
            // Bytes that are no UTF-8 are letters all the same: they are read here.
            unsafe fresh.pointee.sub_charenc_mode = FF_SUB_CHARENC_MODE_IGNORE
            code = unsafe avcodec_open2(fresh, codec, nil)
        }
        guard code >= 0 else {
            unsafe avcodec_free_context(&owned)
            throw MediaError(library: code, operation: "avcodec_open2", location: location)
        }
        unsafe context = owned
        styles = unsafe DialogueStyles(header: Self.header(of: fresh))
    }

    deinit { unsafe avcodec_free_context(&context) }

    private static func header(of context: UnsafeMutablePointer<AVCodecContext>) -> String {
        guard let header = unsafe context.pointee.subtitle_header else { return "" }
        let count = unsafe min(
            Int(context.pointee.subtitle_header_size), DialogueStyles.longestHeader)
        let bytes = unsafe UnsafeBufferPointer(start: header, count: max(0, count))
        return unsafe String(unlabelled: Array(bytes.prefix { $0 != 0 }))
    }

    /// The lines of a packet, none for a damaged or an empty one.
    ///
    /// - Parameter milliseconds: how long they are shown, where the decoder says it.
    func decode(
        _ packet: UnsafeMutablePointer<AVPacket>, milliseconds: inout UInt32?
    ) -> [Line] {
        var subtitle = unsafe AVSubtitle()
        var isDone: Int32 = 0
        guard unsafe avcodec_decode_subtitle2(context, &subtitle, &isDone, packet) >= 0, isDone != 0
        else { return [] }
        defer { unsafe avsubtitle_free(&subtitle) }
        let end = unsafe subtitle.end_display_time
        milliseconds = (1..<UInt32.max).contains(end) ? end : nil
        return (0..<Int(unsafe subtitle.num_rects)).compactMap { index in
            guard let rect = unsafe subtitle.rects[index], let text = unsafe rect.pointee.ass
            else { return nil }
            let bytes = unsafe UnsafeBufferPointer(start: text, count: strlen(text))
            return unsafe Line(String(unlabelled: bytes.map { UInt8(bitPattern: $0) }))
        }
    }
}
