import CTuttiFFmpeg
import TuttiPlayout

/// FFmpeg talks to stderr unless told not to; what matters comes back as codes. Read once per
/// process, before the first call that could log.
let libraryIsQuiet: Bool = {
    av_log_set_level(AV_LOG_QUIET)
    return true
}()

/// FFmpeg's own sentence for one of its negative codes.
func libraryText(_ code: Int32) -> String {
    var text = [CChar](repeating: 0, count: 128)
    unsafe av_strerror(code, &text, text.count)
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

extension MediaError {
    static func protected(_ location: MediaLocation) -> MediaError {
        MediaError(
            .encrypted, operation: "avformat_open_input", subject: location.subject,
            reason: "is protected against copying and cannot be played; use an unprotected copy")
    }

    /// A failed library call as what the user can understand and do.
    init(library code: Int32, operation: String, location: MediaLocation) {
        let said = libraryText(code)
        let subject = location.subject
        func make(_ code: Code, _ reason: String) -> MediaError {
            MediaError(code, operation: operation, subject: subject, reason: reason)
        }
        switch code {
        case cff_error_exit:
            self = make(.cancelled, "stopped on request")
        case cff_error(ENOENT), cff_error_http_not_found:
            self = make(.notFound, "is not there; check the name")
        case cff_error(EACCES), cff_error(EPERM), cff_error_http_unauthorized,
            cff_error_http_forbidden:
            self = make(.notReadable, "may not be read: \(said); check who is allowed to")
        case cff_error_http_other:
            self = make(
                .notReadable,
                "is refused by its server (a status of 400 to 499); look at the address in a browser"
            )
        case cff_error(ENOSPC):
            self = make(.tooLarge, "does not fit on the disk; make room")
        case cff_error_decoder_not_found, cff_error_patch_welcome:
            self = make(.unsupported, "is in a format that cannot be decoded here; convert it")
        case cff_error_protocol_not_found:
            self = make(.unsupported, "only files, http and https addresses can be opened")
        // A container that is not on our list is EINVAL.
        case cff_error(EINVAL) where operation == "avformat_open_input":
            self = make(.notMedia, "is not an audio file that can be played")
        case cff_error_invalid_data, cff_error_demuxer_not_found, cff_error_eof:
            self =
                operation == "avformat_open_input"
                ? make(.notMedia, "is not an audio file that can be played: \(said)")
                : make(.damaged, "is damaged: \(said); try another copy")
        // What libavformat says of a name that nobody knows, and of a transfer that breaks off.
        case cff_error(EIO) where location.isRemote:
            self = make(
                .network,
                operation.hasSuffix("read_frame") || operation.hasSuffix("read_partial")
                    ? "cannot be fetched to its end: the connection broke off; check the network"
                    : "cannot be fetched: its host is not found, or the connection broke off; "
                        + "check address and network")
        default:
            self =
                location.isRemote
                ? make(.network, "cannot be fetched: \(said); check address and network")
                : make(.notReadable, "cannot be read: \(said)")
        }
    }
}
