import Foundation
import Testing
import TuttiPlayout

@testable import TuttiFFmpegMedia

/// Where two of those who tell an encoder's delay and padding disagree.
@Suite struct DelayTests {
    /// 12 345 frames of noise, stereo.
    private func make(_ name: String, rate: Int = 48_000, _ options: [String]) throws -> Data {
        let path = Fixtures.path("delay-" + name)
        Fixtures.run(
            ["-v", "error", "-y", "-i", Corpus.source(CorpusShape(rate: rate, channels: 2))]
                + ["-af", "atrim=end_sample=12345"] + options + [path])
        return try Data(contentsOf: URL(fileURLWithPath: path))
    }

    private func patch(
        _ data: Data, _ mark: String, _ offset: Int, _ bytes: [UInt8]
    ) throws -> Data {
        var data = data
        let place = try #require(data.range(of: Data(mark.utf8)))
        data.replaceSubrange(
            place.lowerBound + offset..<place.lowerBound + offset + bytes.count, with: bytes)
        return data
    }

    private func words(_ value: Int) -> [UInt8] {
        [UInt8(truncatingIfNeeded: value >> 8), UInt8(truncatingIfNeeded: value)]
    }

    /// Whether an item is what another one has from `start` on, up to `end`.
    private func expect(
        _ data: Data, _ name: String, is whole: [Float], _ start: Int, _ end: Int
    ) throws {
        let source = try FFmpegSource(Fixtures.write(data, "disagree-" + name))
        let frames = try readAll(source)
        let count = max(0, end - start)
        #expect(source.format.frameCount == Int64(count), "\(name)")
        let matches = frames.count == 2 * count && isSame(frames, whole, from: 2 * start)
        #expect(matches || count == 0 && frames.isEmpty, "\(name)")
        try expectExactSeeks(source, frames, at: [0, count / 3, max(0, count - 1)])
    }

    // MARK: MP3

    /// Frames before the item: what the LAME header says and the 529 of a decoder. Where it says
    /// nothing, those alone.
    private static let decoderDelay = 529

    /// Behind `Info`: 8 bytes further the count of frames, 141 further delay and padding, 12 bits each.
    private func headed(
        _ data: Data, _ delay: Int, _ padding: Int, frames: Int? = nil
    ) throws -> Data {
        let word = delay << 12 | padding
        let bytes = [UInt8(word >> 16)] + words(word & 0xFFFF)
        let data = try patch(data, "Info", 141, bytes)
        return try frames.map { try patch(data, "Info", 8, [0, 0] + words($0)) } ?? data
    }

    @Test func `a LAME header's padding ends the frames that it counts, or nothing`() throws {
        let data = try make("count.mp3", rate: 44_100, ["-b:a", "64k"])
        let whole = try readAll(FFmpegSource(Fixtures.write(headed(data, 0, 0), "bare-delay.mp3")))
        let count = (whole.count / 2 + Self.decoderDelay) / 1_152
        let end = whole.count / 2
        // Padding includes the decoder's delay, which came out in front.
        try expect(
            headed(data, 576, 900, frames: count), "right.mp3", is: whole, 576,
            end - 900 + Self.decoderDelay)
        // Something was appended or lost: the end that it means is not this one.
        for wrong in [1, count - 1, count + 1, 9_999] {
            try expect(
                headed(data, 576, 900, frames: wrong), "wrong.mp3", is: whole, 576, end)
        }
    }

    @Test func `a delay that is longer than all there is leaves nothing`() throws {
        let data = try make("short.mp3", rate: 44_100, ["-b:a", "64k", "-t", "0.01"])
        try expect(headed(data, 4_095, 4_095), "short.mp3", is: [], 0, 0)
        let opus = try make("nothing.opus", ["-c:a", "libopus"])
        try expect(skipping(65_535, opus), "nothing.opus", is: [], 0, 0)
    }

    /// It is a tag of MP4; programs copy it to what they convert.
    @Test func `where iTunes and the LAME header disagree, the LAME header is right`() throws {
        let plain = try make("plain.mp3", rate: 44_100, ["-b:a", "64k"])
        let whole = try readAll(FFmpegSource(Fixtures.write(plain, "plain-delay.mp3")))
        let comment = " 00000000 00000A40 00000100 0000000000001000 00000000"
        for version in ["3", "4"] {
            let tags = ["-id3v2_version", version, "-metadata", "iTunSMPB=" + comment]
            let tagged = try make("tagged.mp3", rate: 44_100, ["-b:a", "64k"] + tags)
            try expect(tagged, "tagged.mp3", is: whole, 0, 12_345)
        }
    }

    // MARK: Opus

    /// In Ogg the pre-skip is all there is, and the last page's position the end (RFC 7845, 4).
    private func skipping(_ frames: Int, _ data: Data) throws -> Data {
        OggPages.sealed(try patch(data, "OpusHead", 10, words(frames).reversed()))
    }

    /// 312 frames of delay, told in each place.
    private func raw(_ opus: Data) throws -> [Float] {
        try readAll(FFmpegSource(Fixtures.write(skipping(0, opus), "raw.opus")))
    }

    @Test(arguments: [0, 1, 312, 1_000, 5_760])
    func `the pre-skip of Opus in Ogg is cut, whatever it is`(skip: Int) throws {
        let opus = try make("skip.opus", ["-c:a", "libopus"])
        let whole = try raw(opus)
        #expect(whole.count == 2 * (12_345 + 312))
        try expect(skipping(skip, opus), "skip.opus", is: whole, skip, whole.count / 2)
    }

    /// There the pre-skip is only information ("Encapsulation of Opus in ISO Base Media File Format",
    /// 4.3.2); without an edit list it is all there is.
    @Test(arguments: [0, 312, 1_000])
    func `where the pre-skip and the edit list of an MP4 disagree, the edit list is right`(
        skip: Int
    ) throws {
        let whole = try raw(make("edits.opus", ["-c:a", "libopus"]))
        let end = 12_345 + 312
        let edited = try make("edits.mp4", ["-c:a", "libopus"])
        let data = try patch(edited, "dOps", 6, words(skip))
        try expect(data, "edits.mp4", is: whole, 312, end)
        // Behind type, flags, count and duration.
        let later = try patch(data, "elst", 16, [0, 0] + words(1_024))
        try expect(later, "later.mp4", is: whole, 1_024, end)
        let bare = try make("bare.mp4", ["-c:a", "libopus", "-use_editlist", "0"])
        try expect(try patch(bare, "dOps", 6, words(skip)), "bare.mp4", is: whole, skip, end)
    }

    /// `CodecDelay` repeats in nanoseconds what the head says in frames.
    @Test func `where the pre-skip and Matroska's delay disagree, the pre-skip is right`() throws {
        let whole = try raw(make("delay.opus", ["-c:a", "libopus"]))
        let data = try make("delay.mka", ["-c:a", "libopus"])
        let end = 12_345 + 312
        for skip in [312, 1_000] {
            let head = try patch(data, "OpusHead", 10, words(skip).reversed())
            try expect(head, "head.mka", is: whole, skip, end)
            try expect(delayed(head, nanoseconds: 4_000_000), "both.mka", is: whole, skip, end)
        }
        // Where the head says nothing, the container is asked.
        let none = try patch(data, "OpusHead", 10, [0, 0])
        try expect(none, "no-head.mka", is: whole, 312, end)
        try expect(delayed(none, nanoseconds: 0), "nothing.mka", is: whole, 0, end)
    }

    private func delayed(_ data: Data, nanoseconds: Int) throws -> Data {
        var data = data
        let place = try #require(data.range(of: Data([0x56, 0xAA, 0x83])))
        let bytes = [UInt8(nanoseconds >> 16)] + words(nanoseconds & 0xFFFF)
        data.replaceSubrange(place.upperBound..<place.upperBound + 3, with: bytes)
        return data
    }

    // MARK: MP4

    @Test func `where iTunes counts more than the sample table, the table is right`() throws {
        let bare = ["-use_editlist", "0"]
        let data = try make("table.m4a", bare)
        let whole = try readAll(FFmpegSource(Fixtures.write(data, "table.m4a")))
        let comment = "iTunSMPB= 00000000 00000400 00000100 0000000000010000 00000000"
        let tags = ["-movflags", "use_metadata_tags", "-metadata", comment]
        try expect(
            make("more.m4a", bare + tags), "more.m4a", is: whole, 1_024, 1_024 + 12_345)
    }
}

/// Pages of Ogg (RFC 3533, 6).
enum OggPages {
    /// The file with the sums that its pages should have.
    static func sealed(_ data: Data) -> Data {
        var bytes = [UInt8](data)
        var offset = 0
        while offset + 27 <= bytes.count, bytes[offset..<offset + 4].elementsEqual("OggS".utf8) {
            let segments = Int(bytes[offset + 26])
            let body = bytes[(offset + 27)...].prefix(segments).reduce(0) { $0 + Int($1) }
            let end = min(bytes.count, offset + 27 + segments + body)
            for index in 22..<26 { bytes[offset + index] = 0 }
            let sum = sum(of: bytes[offset..<end])
            for index in 0..<4 {
                bytes[offset + 22 + index] = UInt8(truncatingIfNeeded: sum >> (8 * index))
            }
            offset = end
        }
        return Data(bytes)
    }

    /// Polynomial 0x04C11DB7, from the highest bit on, beginning with 0.
    private static func sum(of page: ArraySlice<UInt8>) -> UInt32 {
        page.reduce(0) { sum, byte in
            (0..<8).reduce(sum ^ UInt32(byte) << 24) { sum, _ in
                sum << 1 ^ (sum >> 31 == 1 ? 0x04C1_1DB7 : 0)
            }
        }
    }
}
