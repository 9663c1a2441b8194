/// The `Range` header of RFC 9110, section 14, as far as a media reader uses it: one range.
enum ByteRange: Equatable {
    case whole
    case part(Range<Int>)
    case unsatisfiable

    /// - Returns: `.whole` where there is no header or one that the RFC lets a server ignore.
    static func parse(_ header: String?, size: Int) -> ByteRange {
        guard let header, header.hasPrefix("bytes="), !header.contains(",") else { return .whole }
        let bounds = header.dropFirst("bytes=".count)
            .split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard bounds.count == 2 else { return .whole }
        if bounds[0].isEmpty {
            guard let suffix = Int(bounds[1]), suffix >= 0 else { return .whole }
            return suffix == 0 || size == 0
                ? .unsatisfiable : .part(max(0, size - suffix)..<size)
        }
        guard let first = Int(bounds[0]), first >= 0 else { return .whole }
        var last = size - 1
        if !bounds[1].isEmpty {
            guard let given = Int(bounds[1]), given >= first else { return .whole }
            last = min(given, last)
        }
        return first < size ? .part(first..<(last + 1)) : .unsatisfiable
    }
}
