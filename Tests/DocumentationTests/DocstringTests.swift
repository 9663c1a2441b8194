import Foundation
import Testing

/// Whoever holds the mouse over a name, or reads a module's page, finds what it is.
@Suite struct `Docstrings` {
    /// A file of a target, and what of it other modules see.
    private struct Source {
        var path: String
        var declarations: [PublicDeclaration]
    }

    /// All targets that can be imported: the command line cannot, and nobody reads what the
    /// compiler of messages wrote.
    private static let sources: [Source] = {
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Sources")
        let paths = FileManager.default.enumerator(atPath: folder.path)?
            .compactMap { $0 as? String }
        return (paths ?? []).sorted().filter {
            $0.hasSuffix(".swift") && !$0.hasSuffix(".pb.swift") && !$0.hasPrefix("tutti/")
        }.compactMap { path in
            let file = folder.appending(path: path)
            return (try? String(contentsOf: file, encoding: .utf8)).map {
                Source(path: path, declarations: PublicDeclaration.all(in: $0))
            }
        }
    }()

    // MARK: - What inherits its words

    /// Means the same in every type: `Equatable`, `Hashable`, `Codable` and those that make text.
    private static let common: Set<String> = [
        "description", "debugDescription", "errorDescription", "hash(into:)", "encode(to:)",
        "init(from:)",
    ]
    /// Of protocols that are declared, and described, in other packages.
    private static let foreign: [Substring: Set<String>] = [
        "LogHandler": [
            "log(event:)", "logLevel", "metadata", "metadataProvider", "subscript(metadataKey:)",
        ],
        "RandomNumberGenerator": ["next()"],
    ]

    /// By protocol: requirements that say what they are.
    private static func requirements(of sources: [Source]) -> [Substring: Set<String>] {
        var described = foreign
        for declaration in sources.flatMap(\.declarations) where !declaration.docstring.isEmpty {
            guard let scope = declaration.scope, scope.keyword == "protocol" else { continue }
            described[scope.name, default: []].insert(declaration.name)
        }
        return described
    }

    /// Whether the words are another declaration's: what it overrides, or the requirement of a protocol
    /// that its own type or extension names in its heading. An extension of the protocol itself
    /// has what requirements are by themselves.
    private static func inherits(
        _ declaration: PublicDeclaration, _ described: [Substring: Set<String>]
    ) -> Bool {
        if declaration.isOverride || common.contains(declaration.name) { return true }
        // Operators: the operator says it.
        if declaration.keyword == "func", declaration.name.first.map({ !$0.isLetter }) == true {
            return true
        }
        guard let scope = declaration.scope, scope.keyword != "protocol" else { return false }
        return scope.conformances.union([scope.name]).contains {
            described[$0]?.contains(declaration.name) == true
        }
    }

    private static func bare(_ sources: [Source]) -> [String] {
        let described = requirements(of: sources)
        return sources.flatMap { source in
            source.declarations.filter { $0.docstring.isEmpty && !inherits($0, described) }
                .map { "\(source.path):\($0.line): \($0.title)" }
        }
    }

    /// The words of a text, or of a name in camel case, without those that say nothing.
    private static func words(_ text: some StringProtocol) -> [String] {
        var words = [""]
        for character in text {
            if character.isUppercase || !character.isLetter { words.append("") }
            if character.isLetter { words[words.count - 1] += character.lowercased() }
        }
        return words.filter { !["", "a", "an", "the", "its", "this", "of", "is"].contains($0) }
    }

    /// A docstring of one line that has no other words than the name and the type around it. A figure
    /// and a piece of code are more than words.
    private static func repeatsName(_ declaration: PublicDeclaration) -> Bool {
        guard declaration.docstring.count == 1,
            !declaration.docstring[0].contains(where: { $0.isNumber || $0 == "`" })
        else { return false }
        let known =
            words(declaration.name.prefix { $0 != "(" }) + words(declaration.scope?.name ?? "")
        return Set(words(declaration.docstring[0])).isSubset(of: known)
    }

    // MARK: - Tests

    @Test func `stand above everything that other modules see`() {
        let bare = Self.bare(Self.sources)
        #expect(
            bare.isEmpty,
            """
            \(bare.count) without a word; say what it gives, in which unit and range, and what `nil` \
            means, or make it `package`:
            \(bare.joined(separator: "\n"))
            """)
        let count = Self.sources.reduce(0) { $0 + $1.declarations.count }
        #expect(count > 1_500, "declarations are not found any more")
    }

    @Test func `say more than the name does`() {
        for source in Self.sources {
            for declaration in source.declarations where Self.repeatsName(declaration) {
                Issue.record(
                    """
                    \(source.path):\(declaration.line): “\(declaration.docstring[0])” is what \
                    “\(declaration.name)” says already
                    """)
            }
        }
    }

    // MARK: - The scanner

    private static let example = """
        /// A port.
        public protocol Source: AnyObject {
            /// Begins again.
            func restart(at frame: Int, by: [Int: String])
            func silent()
        }

        extension Source {
            public func restart(at frame: Int, by: [Int: String]) {}
            public func restart() {}
        }

        /// One of them.
        public final class File: Source,
            Hashable
        {
            /// The name.
            public var name = ""
            // Not for readers of the documentation.
            public let size: Int

            /// Far away.

            public private(set) var place = 0
            @inlinable public var count: Int { 0 }
            /// With an attribute.
            @available(*, deprecated)
            @inlinable
            public var old: Int { 0 }

            public init(
                _ make: @escaping (Int) -> Bool, path: String
            ) {
                public let no = 1
            }
            public func restart(
                at frame: Int, by: [Int: String]
            ) {}
            public static func < (a: File, b: File) -> Bool { false }
            public func hash(into hasher: inout Hasher) {}
            var inner: Int { 0 }
            package var ours: Int { 0 }
        }

        public extension File {
            func added() {}
            private func hidden() {}
        }
        """

    private static var exampleSource: Source {
        Source(path: "F", declarations: PublicDeclaration.all(in: example))
    }

    @Test func `are missed where there are none, and only there`() {
        #expect(
            Self.bare([Self.exampleSource]) == [
                "F:5: func silent()", "F:10: func restart()", "F:20: let size", "F:24: var place",
                "F:25: var count", "F:31: init(_:path:)", "F:34: let no", "F:46: func added()",
            ])
    }

    @Test func `are whole where attributes stand between`() throws {
        let old = try #require(Self.exampleSource.declarations.first { $0.name == "old" })
        #expect(old.docstring == ["With an attribute."])
    }

    @Test func `of a protocol count only for types that name it`() {
        let stranger = Self.example.replacing("File: Source,", with: "File: Other,")
        let bare = Self.bare([
            Source(path: "F", declarations: PublicDeclaration.all(in: stranger))
        ])
        #expect(bare.contains("F:36: func restart(at:by:)"))
    }

    @Test(arguments: [
        ("status", "", "The status.", true), ("frameCount", "", "Frame count.", true),
        ("name", "File", "The name of the file.", true),
        ("status", "", "Whether it can play.", false),
        ("seconds", "", "The span in seconds.", false),
        ("channelCount", "", "1…8.", false),
        ("seek(to:)", "", "Seek.", true), ("seek(to:)", "", "Seeks to a frame.", false),
    ])
    func `that only repeat a name are known`(
        name: String, scope: String, text: String, repeats: Bool
    ) {
        let declaration = PublicDeclaration(
            line: 1, keyword: "var", name: name,
            scope: .init(
                indentation: 0, keyword: "struct", name: Substring(scope), isPublic: true,
                conformances: []),
            isOverride: false, docstring: [Substring(text)])
        #expect(Self.repeatsName(declaration) == repeats)
    }
}
