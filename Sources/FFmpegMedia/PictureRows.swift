import CTuttiFFmpeg

/// The rows of a decoded frame as red, green and blue, whatever way its decoder stores them.
///
/// libavutil describes each of its formats and reads any of them by the description, so that neither
/// a list of formats nor libswscale is needed. Colours of JPEG and WebP are those of ITU-R BT.601
/// (JFIF 1.02; RFC 6386, 9.2). What is transparent lies on black.
@safe
struct PictureRows {
    private let description: UnsafePointer<AVPixFmtDescriptor>
    private let frame: UnsafeMutablePointer<AVFrame>
    private let width: Int
    private let height: Int
    /// Red, green and blue, 0…255.
    private(set) var colours: [[Float]]
    private var samples: [UInt16]

    /// - Parameter frame: stays as it is while this is used.
    /// - Returns: `nil` for a frame that is nowhere in memory, or of an unknown format.
    init?(_ frame: UnsafeMutablePointer<AVFrame>) {
        guard
            let description = unsafe av_pix_fmt_desc_get(
                AVPixelFormat(rawValue: frame.pointee.format)),
            unsafe description.pointee.flags & UInt64(AV_PIX_FMT_FLAG_HWACCEL) == 0
        else { return nil }
        unsafe (self.description, self.frame) = (description, frame)
        unsafe (width, height) = (Int(frame.pointee.width), Int(frame.pointee.height))
        colours = Array(repeating: Array(repeating: 0, count: width), count: 3)
        samples = Array(repeating: 0, count: width)
    }

    private func has(_ flag: Int32) -> Bool {
        unsafe description.pointee.flags & UInt64(flag) != 0
    }

    /// Puts a row, from the top, into ``colours``.
    mutating func read(_ row: Int) {
        if has(AV_PIX_FMT_FLAG_PAL) {
            return readPalette(row)
        } else if has(AV_PIX_FMT_FLAG_RGB) {
            for place in 0..<3 { colours[place] = component(place, row) }
        } else if unsafe description.pointee.nb_components >= 3 {
            readLumaAndChroma(row)
        } else {
            colours[0] = luma(row)
            colours[1] = colours[0]
            colours[2] = colours[0]
        }
        guard has(AV_PIX_FMT_FLAG_ALPHA) else { return }
        let opacity = component(unsafe Int(description.pointee.nb_components) - 1, row)
        for place in 0..<3 {
            for x in 0..<width { colours[place][x] *= opacity[x] / 255 }
        }
    }

    // MARK: Components

    /// One component of a row, scaled to 0…255; what is stored at half the resolution is doubled.
    private mutating func component(_ number: Int, _ row: Int) -> [Float] {
        // Of two components, the second is opacity.
        let isChroma =
            unsafe !has(AV_PIX_FMT_FLAG_RGB) && (1...2).contains(number)
            && description.pointee.nb_components >= 3
        let halvings = unsafe isChroma ? Int(description.pointee.log2_chroma_w) : 0
        let rowHalvings = unsafe isChroma ? Int(description.pointee.log2_chroma_h) : 0
        readSamples(
            number, row >> rowHalvings, (width + (1 << halvings) - 1) >> halvings)
        let bits = unsafe [
            description.pointee.comp.0.depth, description.pointee.comp.1.depth,
            description.pointee.comp.2.depth, description.pointee.comp.3.depth,
        ][number]
        let scale = 255 / Float((1 << max(1, min(16, bits))) - 1)
        return (0..<width).map { Float(samples[$0 >> halvings]) * scale }
    }

    private mutating func readSamples(_ number: Int, _ row: Int, _ count: Int) {
        let (data, strides) = unsafe (frame.pointee.data, frame.pointee.linesize)
        var planes: [UnsafePointer<UInt8>?] = unsafe [
            UnsafePointer(data.0), UnsafePointer(data.1), UnsafePointer(data.2),
            UnsafePointer(data.3),
        ]
        let lines = [strides.0, strides.1, strides.2, strides.3]
        unsafe samples.withUnsafeMutableBytes {
            unsafe av_read_image_line2(
                $0.baseAddress, &planes, lines, description, 0, Int32(row), Int32(number),
                Int32(count), 0, 2)
        }
    }

    // MARK: Colours

    /// As television has them: black is 16, white 235, and colours reach 112 to both sides.
    private var isNarrow: Bool { unsafe frame.pointee.color_range == AVCOL_RANGE_MPEG }

    private mutating func luma(_ row: Int) -> [Float] {
        let values = component(0, row)
        return isNarrow ? values.map { min(255, max(0, ($0 - 16) * (255.0 / 219))) } : values
    }

    private mutating func readLumaAndChroma(_ row: Int) {
        let (luma, blues, reds) = (luma(row), component(1, row), component(2, row))
        let reach: Float = isNarrow ? 255.0 / 224 : 1
        for x in 0..<width {
            let (y, blue, red) = (luma[x], (blues[x] - 128) * reach, (reds[x] - 128) * reach)
            colours[0][x] = min(255, max(0, y + 1.402 * red))
            colours[1][x] = min(255, max(0, y - 0.344_136 * blue - 0.714_136 * red))
            colours[2][x] = min(255, max(0, y + 1.772 * blue))
        }
    }

    private mutating func readPalette(_ row: Int) {
        readSamples(0, row, width)
        guard let palette = unsafe frame.pointee.data.1 else { return }
        let entries = UnsafeRawPointer(palette)
        for x in 0..<width {
            // Alpha, red, green and blue in one word.
            let entry = unsafe entries.loadUnaligned(
                fromByteOffset: 4 * Int(samples[x] & 0xFF), as: UInt32.self)
            let opacity = Float(entry >> 24) / 255
            for place in 0..<3 {
                colours[place][x] = Float(entry >> UInt32(16 - 8 * place) & 0xFF) * opacity
            }
        }
    }
}
