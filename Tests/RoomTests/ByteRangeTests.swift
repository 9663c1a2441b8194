import Testing

@testable import TuttiRoom

struct ByteRangeTests {
    @Test func `every satisfiable range of a small file names bytes that exist`() {
        for size in 0...6 {
            for first in 0...7 {
                for last in first...8 {
                    let range = ByteRange.parse("bytes=\(first)-\(last)", size: size)
                    if first < size {
                        #expect(range == .part(first..<min(last + 1, size)))
                    } else {
                        #expect(range == .unsatisfiable)
                    }
                }
            }
        }
    }

    @Test func `an open range goes to the end and a suffix counts from it`() {
        #expect(ByteRange.parse("bytes=3-", size: 10) == .part(3..<10))
        #expect(ByteRange.parse("bytes=-4", size: 10) == .part(6..<10))
        #expect(ByteRange.parse("bytes=-40", size: 10) == .part(0..<10))
        #expect(ByteRange.parse("bytes=-0", size: 10) == .unsatisfiable)
    }

    @Test(arguments: [nil, "items=0-1", "bytes=", "bytes=a-b", "bytes=5-2", "bytes=0-1,3-4"])
    func `a header that is no single range is ignored as the RFC allows`(header: String?) {
        #expect(ByteRange.parse(header, size: 10) == .whole)
    }
}
