import TuttiPlayout

/// A file that was sent to a leader, as an addition to its queue names it: `upload:HASH`, and behind a
/// question mark what a playlist said of it.
struct UploadReference: Equatable {
    static let scheme = "upload:"

    /// The SHA-256 of its bytes, 64 hexadecimal digits.
    var id: String
    var title: String?
    /// Where only a part of it is meant.
    var span: CueSpan?

    init(id: String, title: String? = nil, span: CueSpan? = nil) {
        self.id = id
        self.title = title
        self.span = span
    }

    /// - Returns: `nil` for what is none.
    init?(_ text: String) {
        guard text.hasPrefix(Self.scheme) else { return nil }
        let parts = text.dropFirst(Self.scheme.count).split(separator: "?", maxSplits: 1)
        id = parts.first.map(String.init) ?? ""
        guard parts.count > 1 else { return }
        var (first, end): (Int64?, Int64?)
        for field in parts[1].split(separator: "&") {
            let pair = field.split(separator: "=", maxSplits: 1)
            guard pair.count == 2 else { return nil }
            let value = Array(pair[1].utf8)[...]
            switch pair[0] {
            case "title":
                title = String(decoding: PlaylistPlace.unescaped(value), as: UTF8.self)
            case "first": first = Int64(pair[1])
            case "end": end = Int64(pair[1])
            default: return nil
            }
        }
        guard let first else { return }
        guard CueSpan.units.contains(first),
            end.map({ $0 > first && CueSpan.units.contains($0) }) ?? true
        else { return nil }
        span = CueSpan(first: first, end: end)
    }

    var text: String {
        var fields: [String] = []
        if let title, !title.isEmpty { fields.append("title=" + AssetName.escaped(title)) }
        if let span {
            fields.append("first=\(span.first)")
            if let end = span.end { fields.append("end=\(end)") }
        }
        return Self.scheme + id + (fields.isEmpty ? "" : "?" + fields.joined(separator: "&"))
    }
}
