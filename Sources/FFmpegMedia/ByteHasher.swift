import Crypto

/// The SHA-256 of bytes that come one after the other, for whoever does not hold them together.
package struct ByteHasher {
    private var hasher = SHA256()

    package init() {}

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        unsafe hasher.update(bufferPointer: bytes)
    }

    /// 32 bytes, of what came so far.
    package func hash() -> [UInt8] { Array(hasher.finalize()) }
}
