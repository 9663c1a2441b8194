import TuttiPlayout

@testable import TuttiFFmpegMedia

/// What we read ourselves of files that FFmpeg plays.
extension Harness {
    static let media = [
        movieEdits, signatures, dataChunks, frameScans, promisedLengths, packetLengths, pictures,
        pieceLists,
    ]

    // MARK: MP4

    private static let movieEdits = Harness(
        name: "mp4-edits",
        seeds: {
            [MovieSeeds.movie(isWide: false), MovieSeeds.movie(isWide: true), MovieSeeds.endless]
        },
        check: .plain { bytes in
            let reader = MemoryReader(bytes)
            let size = Int64(bytes.count)
            _ = unsafe MP4Edits.isIncomplete(reader.io, size: size)
            let found = unsafe MP4Edits.read(reader.io, size: size)
            for edits in found.values {
                try expect(edits.edits.count * 12 <= bytes.count, "\(edits.edits.count) edits")
                try expect(
                    edits.movieTimescale > 0 && edits.mediaTimescale > 0, "no timescale: \(edits)")
                for (rate, end) in [(8_000, 1), (44_100, 1 << 20), (768_000, 1 << 50)]
                    as [(Int64, Int64)]
                {
                    for stretch in edits.stretches(sampleRate: rate, end: end) {
                        try expect(
                            !stretch.isEmpty && (0..<end).contains(stretch.lowerBound)
                                && stretch.upperBound <= end, "\(stretch) of \(end) frames")
                    }
                }
            }
            try expectEqual(unsafe MP4Edits.read(reader.io, size: size), found, "read again")
            // What the first bytes of a body decide stays so, however much comes behind.
            let verdict = MP4Edits.hasTableLast(bytes)
            for count in stride(from: 0, to: bytes.count, by: max(1, bytes.count / 16)) {
                let early = MP4Edits.hasTableLast(Array(bytes.prefix(count)))
                try expect(
                    early == nil || early == verdict, "\(count) bytes say \(early as Any)")
            }
        })

    // MARK: Containers

    private static let signatures = Harness(
        name: "container-signatures",
        seeds: {
            ["fLaC", "OggS", "RIFF....WAVE", "FORM....AIFC", "....ftyp", "\u{1A}E"].map {
                Array((Array($0.utf8) + [UInt8](repeating: 0, count: 12)).prefix(12))
            }
        },
        longest: 16,
        check: .plain { bytes in
            guard bytes.count == ContainerSignature.length else { return }
            _ = ContainerSignature.container(of: bytes)
        })

    private static let containers = [
        "wav", "w64", "caf", "asf", "avi", "iff", "dsf", "au", "adx", "sox",
    ]

    /// The first byte chooses the container, the second how long the file claims to be.
    private static let dataChunks = Harness(
        name: "data-chunks",
        seeds: { ChunkSeeds.files.map { [UInt8($0.container), 0] + $0.bytes } },
        check: .plain { bytes in
            guard bytes.count >= 2 else { return }
            let container = containers[Int(bytes[0]) % containers.count]
            let file = Array(bytes[2...])
            let size = bytes[1] & 1 == 0 ? Int64(file.count) : .max
            var (reads, asked) = (0, 0)
            let range = DataChunk.range(in: container, fileSize: size) { offset, count in
                (reads, asked) = (reads + 1, asked + count)
                return MemoryReader.bytes(file, offset, count)
            }
            try expect(reads <= 3_010 && asked <= 100_000, "\(reads) reads of \(asked) bytes")
            try expect(range.map { $0.lowerBound >= 0 } ?? true, "\(String(describing: range))")
        })

    private static let promisedLengths = Harness(
        name: "promised-lengths", seeds: { [ChunkSeeds.promise] },
        check: .plain { bytes in
            var asked = 0
            let promised = PromisedLength(size: Int64(bytes.count)) { offset, count in
                asked += count
                return MemoryReader.bytes(bytes, offset, count)
            }
            try expect(asked <= 200, "\(asked) bytes were asked for")
            if let promised {
                try expect(
                    promised.start > 0 && promised.start < promised.end,
                    "from \(promised.start) to \(promised.end)")
            }
        })

    /// The first byte chooses the coding.
    private static let frameScans = Harness(
        name: "frame-scans",
        seeds: { ChunkSeeds.recordings },
        longest: 65_536,
        check: .plain { bytes in
            guard let first = bytes.first else { return }
            let coding = [FrameScan.Coding.mpeg, .adts, .ac3][Int(first) % 3]
            let file = Array(bytes.dropFirst())
            let size = Int64(file.count)
            func scan(most: Int) -> [Range<Int64>] {
                FrameScan.recordings(coding, size: size) { offset, count in
                    MemoryReader.bytes(file, offset, min(count, most))
                }
            }
            let found = scan(most: .max)
            var end: Int64 = 0
            for recording in found {
                try expect(
                    recording.lowerBound >= end && !recording.isEmpty
                        && recording.upperBound <= size, "\(found) of \(size) bytes")
                end = recording.upperBound
            }
            try expect(found.count <= FrameScan.recordingsMax + 1, "\(found.count) recordings")
            try expectEqual(scan(most: 64), found, "read in small pieces")
        })

    private static let packetLengths = Harness(
        name: "packet-lengths",
        seeds: {
            [
                [0xFF, 0xF8, 0xC9, 0x18, 0x00, 0xC2, 0x00, 0x00], [0xFC, 0x7F], [0x03],
                [0, 0, 0x10, 0, 0, 8, 0, 0], [0xFF, 0xF8, 0x79, 0x18, 0xFF, 0, 0, 0],
            ]
        },
        longest: 64,
        check: .plain { bytes in
            guard !bytes.isEmpty else { return }
            try unsafe bytes.withUnsafeBufferPointer { bytes in
                let flac = unsafe PacketLength.flacFrames(bytes)
                try expect((0...65_536).contains(flac), "\(flac) frames of FLAC")
                let opus = unsafe PacketLength.opusFrames(bytes)
                try expect((0...2_880 * 63).contains(opus), "\(opus) frames of Opus")
                let alac = unsafe PacketLength.alacFrames(bytes) ?? 0
                try expect((0...0xFFFF_FFFF).contains(alac), "\(alac) frames of ALAC")
            }
        })

    // MARK: Pictures

    private static let pictures = Harness(
        name: "pictures",
        seeds: { ChunkSeeds.pictures },
        check: .plain { bytes in
            guard let format = PictureFormat(bytes) else { return }
            guard let kept = format.decodable(bytes) else { return }
            try expect(kept.count <= bytes.count, "a picture grows")
            try expectEqual(
                PictureFormat(kept), format, "what is given to the decoder is of its kind")
            try expectEqual(format.decodable(kept), kept, "looked through twice")
        })

    // MARK: Pieces

    /// The first eight bytes are the size of the file.
    private static let pieceLists = Harness(
        name: "piece-lists",
        seeds: {
            let file = [UInt8](repeating: 1, count: 70_000)
            var hasher = PieceHasher(fileSize: Int64(file.count))
            unsafe file.withUnsafeBytes { unsafe hasher.update($0) }
            let list = hasher.finish().pieces.bytes
            let size = UInt64(file.count)
            return [(0..<8).map { UInt8(truncatingIfNeeded: size >> (56 - 8 * $0)) } + list]
        },
        check: .plain { bytes in
            guard bytes.count >= 8 else { return }
            let size = bytes[..<8].reduce(Int64(0)) { $0 << 8 | Int64($1) }
            let list = Array(bytes[8...])
            let root = PieceHashes(list, fileSize: size).root
            guard let pieces = PieceHashes(list, fileSize: size, root: root) else { return }
            try expectEqual(
                list.count, PieceHashes.listSize(fileSize: size), "as long as it has to be")
            try expect(
                PieceHashes(list, fileSize: size, root: [0] + root.dropFirst()) == nil
                    || root[0] == 0, "of another root")
            let wrong = [UInt8](repeating: 0xEE, count: 1_000)
            try expectEqual(pieces.rightBytes(of: wrong, at: 0), 0, "bytes of nobody are right")
        })
}
