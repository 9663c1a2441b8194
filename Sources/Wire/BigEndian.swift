// Numbers of fixed width in network order, for the packets that are not protobuf.

extension RawSpan {
    func bigEndian<T: FixedWidthInteger & BitwiseCopyable>(
        at offset: Int, as: T.Type
    ) -> T {
        precondition(offset + MemoryLayout<T>.size <= byteCount)
        return T(bigEndian: unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: T.self))
    }
}

extension MutableRawSpan {
    mutating func store<T: FixedWidthInteger & BitwiseCopyable>(
        _ value: T, at offset: Int
    ) {
        storeBytes(of: value.bigEndian, toByteOffset: offset, as: T.self)
    }
}
