import Foundation
import Testing

/// Whoever copies a sample of the documentation has code that compiles: each is part of a file that
/// is compiled here, as an application would be.
@Suite struct `Samples of the documentation` {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    private static func files(below folders: [String], ending: String) -> [URL] {
        folders.flatMap { folder -> [URL] in
            let base = root.appending(path: folder)
            let paths = FileManager.default.enumerator(atPath: base.path)?
                .compactMap { $0 as? String }
            return (paths ?? []).sorted().filter { $0.hasSuffix(ending) }
                .map { base.appending(path: $0) }
        }
    }

    /// Modules that every program has, without a product.
    private static let toolchain = ["Foundation", "Synchronization"]

    /// Without the indentation that all lines have in common.
    private static func lines(_ text: String) -> [String] {
        let lines = text.components(separatedBy: "\n")
        let common =
            lines.filter { line in line.contains { !$0.isWhitespace } }
            .map { $0.prefix { $0 == " " }.count }.min() ?? 0
        return lines.map { String($0.dropFirst(common)) }
    }

    /// Blocks of Swift, each as its lines.
    static func samples(in text: String) -> [[String]] {
        text.components(separatedBy: "```swift\n").dropFirst().compactMap {
            $0.components(separatedBy: "\n```").first.map { lines($0) }
        }
    }

    static func contains(_ sample: [String], in file: String) -> Bool {
        let all = file.components(separatedBy: "\n")
        guard all.count >= sample.count else { return false }
        return (0...(all.count - sample.count)).contains { start in
            lines(all[start..<start + sample.count].joined(separator: "\n")) == sample
        }
    }

    @Test func `are compiled, each in the file that is called after its page`() throws {
        let pages =
            Self.files(below: ["Sources", ".github", "deploy"], ending: ".md")
            + [Self.root.appending(path: "README.md")]
        var count = 0
        for page in pages {
            let samples = Self.samples(in: try String(contentsOf: page, encoding: .utf8))
            guard !samples.isEmpty else { continue }
            let name = page.deletingPathExtension().lastPathComponent
            let file = try #require(
                Self.files(below: ["Tests"], ending: "/\(name)Samples.swift").first,
                "\(name).md has samples: compile them in DocumentationTests/\(name)Samples.swift"
            )
            let text = try String(contentsOf: file, encoding: .utf8)
            for sample in samples {
                count += 1
                #expect(
                    Self.contains(sample, in: text),
                    "not in \(name)Samples.swift:\n\(sample.joined(separator: "\n"))")
            }
        }
        #expect(count >= 9, "samples are not found any more")
    }

    /// What a function around a sample is given, a reader has to have from the page.
    @Test func `use no name that neither they nor another sample of the page defines`() throws {
        let pages = Dictionary(
            Self.files(below: ["Sources"], ending: ".md").map {
                ($0.deletingPathExtension().lastPathComponent, $0)
            }, uniquingKeysWith: { first, _ in first })
        var count = 0
        for file in Self.files(below: ["Tests/DocumentationTests"], ending: "Samples.swift") {
            let name = String(file.deletingPathExtension().lastPathComponent.dropLast(7))
            guard let page = pages[name] else { continue }
            let text = Self.samples(in: try String(contentsOf: page, encoding: .utf8))
                .map { $0.joined(separator: "\n") }.joined(separator: "\n")
            let code = try String(contentsOf: file, encoding: .utf8)
            for function in code.matches(of: /func (\w+)(?:<[^>]*>)?\(([^)]*)\)/)
            where !text.contains("func \(function.output.1)(") {
                for parameter in function.output.2.matches(of: /(\w+):\s/) {
                    count += 1
                    let word = String(parameter.output.1)
                    let isDefined = try Regex("\\b(let|var) [^=\n]*\\b\(word)\\b|[(, _]\(word): ")
                    #expect(
                        text.contains(isDefined), "\(name).md: no line defines \"\(word)\"")
                }
            }
        }
        #expect(count > 0, "functions around samples are not found any more")
    }

    /// An application names one product and imports what the samples import.
    @Test func `import nothing that the product does not have`() throws {
        let manifest = try String(
            contentsOf: Self.root.appending(path: "Package.swift"), encoding: .utf8)
        let declaration = try #require(
            manifest.firstMatch(of: /let besidesRoom = \[([^\]]*)\]/)?.output.1)
        let product = Set(
            declaration.matches(of: /"([A-Za-z]+)"/).map { String($0.output.1) }
                + ["Tutti", "TuttiRoom"] + Self.toolchain)
        let listed = #"name: "Tutti", targets: ["Tutti", "TuttiRoom"] + besidesRoom)"#
        #expect(manifest.contains(listed))
        for file in Self.files(below: ["Tests/DocumentationTests"], ending: "Samples.swift") {
            let text = try String(contentsOf: file, encoding: .utf8)
            for found in text.matches(of: /(?m)^(@testable )?import ([A-Za-z]+)/) {
                #expect(found.output.1 == nil, "\(file.lastPathComponent) looks inside")
                #expect(
                    product.contains(String(found.output.2)),
                    "\(file.lastPathComponent) imports \(found.output.2)")
            }
        }
    }

    @Test func `are found where they stand in a function, and not where a word differs`() {
        let page = "Text\n```swift\nlet a = 1\n\nif a > 0 {\n    b()\n}\n```\nmore ```swift\n"
        let sample = Self.samples(in: page)[0]
        #expect(sample == ["let a = 1", "", "if a > 0 {", "    b()", "}"])
        let file = "func f() {\n    let a = 1\n\n    if a > 0 {\n        b()\n    }\n}\n"
        #expect(Self.contains(sample, in: file))
        #expect(!Self.contains(sample, in: file.replacing("> 0", with: "> 1")))
    }
}
