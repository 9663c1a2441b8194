import Foundation

/// The package's folder, read as text.
struct SourceTree {
    let root: URL

    init(file: String = #filePath) {
        root = URL(filePath: file).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
    }

    struct Source {
        var path: String
        var lines: [Substring]
    }

    /// All Swift files below a folder; generated ones too.
    func sources(below folder: String) throws -> [Source] {
        let base = root.appending(path: folder)
        guard let files = FileManager.default.enumerator(atPath: base.path) else { return [] }
        return try files.compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") }.sorted().map
        {
            let text = try String(contentsOf: base.appending(path: $0), encoding: .utf8)
            return Source(path: "\(folder)/\($0)", lines: text.split(separator: "\n"))
        }
    }

    func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    func folders(below folder: String) throws -> Set<String> {
        let path = root.appending(path: folder).path
        return Set(
            try FileManager.default.contentsOfDirectory(atPath: path).filter { name in
                var isFolder: ObjCBool = false
                return FileManager.default.fileExists(
                    atPath: "\(path)/\(name)", isDirectory: &isFolder) && isFolder.boolValue
            })
    }

    /// The targets of the manifest, each with the text of its declaration.
    func declarations() throws -> [(kind: String, name: String, text: Substring)] {
        let manifest = try text("Package.swift")
        let starts = manifest.matches(
            of: /\.(target|executableTarget|systemLibrary|testTarget)\(\s*name: "([A-Za-z]+)"/)
        return starts.indices.map { index in
            let end =
                index + 1 < starts.count ? starts[index + 1].range.lowerBound : manifest.endIndex
            return (
                String(starts[index].output.1), String(starts[index].output.2),
                manifest[starts[index].range.lowerBound..<end]
            )
        }
    }
}

extension StringProtocol {
    /// Whether `text` occurs in it other than as the end of a longer word.
    func contains(word text: String) -> Bool {
        let startsWord = text.first?.isLetter == true
        return ranges(of: text).contains { range in
            guard startsWord, range.lowerBound > startIndex else { return true }
            let before = self[index(before: range.lowerBound)]
            return !before.isLetter && !before.isNumber && before != "_"
        }
    }
}

/// `import` in a Swift file: the module, and the one symbol if only one is taken.
struct Import: Equatable {
    var module: String
    var symbol: String?

    private static let kinds: Set<Substring> = [
        "func", "struct", "class", "enum", "var", "let", "typealias", "protocol",
    ]
    private static let modifiers: Set<Substring> = [
        "public", "package", "internal", "fileprivate", "private", "@testable", "@preconcurrency",
        "@_exported", "@_implementationOnly", "@_spi",
    ]

    /// - Returns: `nil` for any other line.
    init?(line: Substring) {
        var words = line.split(whereSeparator: \.isWhitespace)[...]
        while let first = words.first, Self.modifiers.contains(first) { words.removeFirst() }
        guard words.first == "import", words.count >= 2 else { return nil }
        words.removeFirst()
        if let kind = words.first, Self.kinds.contains(kind) { words.removeFirst() }
        guard let path = words.first?.split(separator: ".") else { return nil }
        module = String(path[0])
        symbol = path.count > 1 ? path.dropFirst().joined(separator: ".") : nil
    }
}
