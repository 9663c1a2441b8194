import CFFmpeg

/// SHA-256 of bytes that come in pieces (libavutil's).
@safe
final class SHA256 {
    private let context: OpaquePointer

    init() {
        guard let context = unsafe av_sha_alloc() else { fatalError("no memory for a hash") }
        unsafe self.context = context
        unsafe av_sha_init(context, 256)
    }

    deinit { unsafe av_free(UnsafeMutableRawPointer(context)) }

    func update(_ bytes: UnsafeBufferPointer<UInt8>) {
        unsafe av_sha_update(context, bytes.baseAddress, bytes.count)
    }

    /// The 32 bytes; the object is not used afterwards.
    func finish() -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        unsafe av_sha_final(context, &digest)
        return digest
    }
}

/// Lower-case hexadecimal digits.
func hexadecimal(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef")
    return String(bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
}
