import Crypto

/// The SHA-256 of bytes that come one after the other, for whoever does not hold them together.
package struct ByteHasher {
    private var hasher = SHA256()

    package init() {}

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        unsafe hasher.update(bufferPointer: bytes)
    }

    /// 64 lower-case hexadecimal digits.
    package func text() -> String {
        hasher.finalize().map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
