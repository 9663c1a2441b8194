import TuttiPlayout

/// What the name of a file or an address says, before anybody looks inside.
package enum AssetName {
    enum Kind: Equatable {
        case hidden, playlist, audio
        /// Nothing that sounds: a cover, a log, a text.
        case other
        /// Opening it tells.
        case unknown
    }

    static func kind(of name: String) -> Kind {
        if name.hasPrefix(".") { return .hidden }
        if Playlist.Format(name: name) != nil { return .playlist }
        let ending = name.lastIndex(of: ".").map { name[name.index(after: $0)...].lowercased() }
        guard let ending else { return .unknown }
        return audio.contains(ending) ? .audio : others.contains(ending) ? .other : .unknown
    }

    private static let audio: Set<String> = [
        "aac", "ac3", "aif", "aifc", "aiff", "alac", "amr", "ape", "au", "caf", "dff", "dsf", "dts",
        "eac3", "flac", "m4a", "m4b", "mka", "mp2", "mp3", "mp4", "mpc", "oga", "ogg", "opus", "ra",
        "rm", "spx", "tak", "tta", "voc", "w64", "wav", "webm", "wma", "wv",
    ]
    private static let others: Set<String> = [
        "7z", "accurip", "bmp", "crdownload", "db", "doc", "docx", "epub", "exe", "ffp",
        "gif",
        "htm", "html", "ico", "ini", "jpeg", "jpg", "json", "log", "lrc", "md", "md5", "nfo", "nzb",
        "odt", "par2", "part", "pdf", "plist", "png", "rar", "rtf", "sfv", "sha1", "sha256", "srt",
        "svg", "tif", "tiff", "tmp", "toc", "torrent", "txt", "url", "webp", "xml", "zip",
    ]

    /// The last part of an address, its escapes read, for want of a title.
    static func ofAddress(_ address: String) -> String {
        let path = address.prefix { $0 != "?" && $0 != "#" }
        guard let last = path.split(separator: "/").last else { return address }
        return String(unlabelled: PlaylistPlace.unescaped(Array(last.utf8)[...]))
    }

    /// The same without what says that it is audio: as files are called.
    static func title(ofAddress address: String) -> String { title(of: ofAddress(address)) }

    /// The same of the name of a file.
    static func title(of name: String) -> String {
        guard kind(of: name) == .audio, let dot = name.lastIndex(of: "."), dot > name.startIndex
        else { return name }
        return String(name[..<dot])
    }

    /// What people see of a file or an address until its title is known.
    package static func shown(_ location: String) -> String {
        if PlaylistPlace.isRemote(location) { return ofAddress(location) }
        let name = location.lastIndex(of: "/").map { location[location.index(after: $0)...] }
        return String(name ?? location[...]).readableFileName
    }

    /// The machine that an address names, with its port where there is one; `nil` for a path.
    package static func server(of location: String) -> String? {
        guard PlaylistPlace.isRemote(location), let scheme = location.firstRange(of: "://") else {
            return nil
        }
        let authority = location[scheme.upperBound...].prefix { !"/?#".contains($0) }
        // What stands before "@" is nobody's business.
        let host = authority.split(separator: "@", omittingEmptySubsequences: false).last ?? ""
        return host.isEmpty ? nil : String(host)
    }

    /// What people call a file or an address who have named it: of one that another machine has sent
    /// they know the name alone, and not where it is kept.
    static func known(_ location: String) -> String {
        UploadFolder.isOfUpload(location) ? shown(location) : location.readableFileName
    }

    /// The extension of a path or address when it looks like one, else empty: FFmpeg looks inside.
    ///
    /// - Parameter most: bytes it may have.
    static func ending(of location: String, most: Int) -> String {
        let isRemote = PlaylistPlace.isRemote(location)
        let path = isRemote ? location.prefix { $0 != "?" && $0 != "#" } : location[...]
        guard let dot = path.lastIndex(of: "."), !path[dot...].contains("/") else { return "" }
        let text = path[path.index(after: dot)...]
        let isPlain =
            text.utf8.count <= most
            && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
        return isPlain ? text.lowercased() : ""
    }

    /// With escapes of RFC 3986 for all that needs one somewhere.
    static func escaped(_ name: String) -> String {
        escaped(name) { byte in
            let scalar = Unicode.Scalar(byte)
            let isPlain =
                scalar.isASCII && (Character(scalar).isLetter || Character(scalar).isNumber)
            return isPlain || "-._~".utf8.contains(byte)
        }
    }

    /// A name whose bytes are written with percent signs where they are not `plain`.
    static func escaped(_ name: String, except plain: (UInt8) -> Bool) -> String {
        name.fileNameBytes.map { byte in
            if plain(byte) { return String(Character(Unicode.Scalar(byte))) }
            return "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
        }.joined()
    }
}
