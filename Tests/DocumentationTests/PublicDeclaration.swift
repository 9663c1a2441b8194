import Foundation

/// A declaration that other modules see, as the text of its file has it.
///
/// Read line by line, as `swift format` writes them: what belongs to a type stands four columns
/// further in than its heading. What no scanner can know, types and overloads, is not asked.
struct PublicDeclaration {
    /// What it is declared in: a type, or an extension of one.
    struct Scope {
        var indentation: Int
        var keyword: Substring
        var name: Substring
        var isPublic: Bool
        /// The words of its heading behind the first colon: what it conforms to, among others.
        var conformances: Set<Substring>
    }

    /// From 1 on.
    var line: Int
    /// `func`, `var`, `init`, `struct` …
    var keyword: Substring
    /// With the labels of its arguments: `seek(toFrame:)`.
    var name: String
    var scope: Scope?
    var isOverride: Bool
    /// Lines of its docstring without their slashes; empty: it has none.
    var docstring: [Substring]

    /// For people: `func seek(toFrame:)`, `init(_:)`.
    var title: String { name.hasPrefix(keyword) ? name : "\(keyword) \(name)" }
}

extension PublicDeclaration {
    private static let kinds: Set<Substring> = [
        "func", "var", "let", "init", "subscript", "typealias", "associatedtype", "struct", "class",
        "enum", "protocol", "actor", "extension",
    ]
    private static let scopes: Set<Substring> = [
        "struct", "class", "enum", "protocol", "actor", "extension",
    ]
    private static let access: Set<Substring> = [
        "public", "open", "package", "internal", "fileprivate", "private",
    ]
    private static let modifiers = access.union([
        "static", "final", "convenience", "required", "override", "mutating", "nonmutating",
        "borrowing", "consuming", "indirect", "nonisolated", "lazy", "weak", "unowned", "unsafe",
    ])

    /// Modifiers and attributes, then what is declared and the rest of the line; `nil` for a line
    /// that declares nothing.
    private static func parse(
        _ line: Substring
    ) -> (modifiers: [Substring], keyword: Substring, rest: Substring)? {
        var modifiers: [Substring] = []
        var rest = line.drop { $0 == " " }
        while let word = rest.split(separator: " ", maxSplits: 1).first {
            let stem = word.prefix { $0.isLetter }
            let behind = rest.dropFirst(word.count).drop { $0 == " " }
            if word.first == "@" {
                let isOpen = word.contains("(") && !word.contains(")")
                rest = isOpen ? rest.drop { $0 != ")" }.dropFirst().drop { $0 == " " } : behind
            } else if modifiersAre(stem, of: word) || isClassMember(stem, behind) {
                modifiers.append(word)
                rest = behind
            } else {
                return kinds.contains(stem) ? (modifiers, stem, rest.dropFirst(stem.count)) : nil
            }
        }
        return nil
    }

    /// `private(set)` is one as `private` is.
    private static func modifiersAre(_ stem: Substring, of word: Substring) -> Bool {
        modifiers.contains(stem) && (stem.count == word.count || word.hasPrefix(stem + "("))
    }

    private static func isClassMember(_ stem: Substring, _ behind: Substring) -> Bool {
        stem == "class" && (behind.hasPrefix("func ") || behind.hasPrefix("var "))
    }

    /// All of a file, in its order.
    static func all(in text: String) -> [PublicDeclaration] {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        var found: [PublicDeclaration] = []
        var scopes: [Scope] = []
        for (place, line) in lines.enumerated() {
            let content = line.drop { $0 == " " }
            guard let first = content.first, !content.hasPrefix("//") else { continue }
            let indentation = line.count - content.count
            if !"})]{".contains(first) {
                while let last = scopes.last, last.indentation >= indentation {
                    scopes.removeLast()
                }
            }
            guard let (modifiers, keyword, rest) = parse(line) else { continue }
            let scope = scopes.last
            let isMember = scope.map { $0.indentation + 4 == indentation } ?? true
            let isPublic = isSeen(modifiers, in: isMember ? scope : nil)
            if isPublic, keyword != "extension" {
                found.append(
                    PublicDeclaration(
                        line: place + 1, keyword: keyword,
                        name: name(keyword, rest, lines[(place + 1)...]), scope: scope,
                        isOverride: modifiers.contains("override"),
                        docstring: docstring(above: place, in: lines)))
            }
            if Self.scopes.contains(keyword) {
                scopes.append(
                    heading(keyword, rest, lines[(place + 1)...], isPublic, indentation))
            }
        }
        return found
    }

    /// Requirements are as public as their protocol, members as the extension that says so.
    private static func isSeen(_ modifiers: [Substring], in scope: Scope?) -> Bool {
        if let said = modifiers.first(where: access.contains) {
            return said == "public" || said == "open"
        }
        guard let scope, scope.isPublic else { return false }
        return scope.keyword == "protocol" || scope.keyword == "extension"
    }

    private static func heading(
        _ keyword: Substring, _ rest: Substring, _ following: ArraySlice<Substring>,
        _ isPublic: Bool, _ indentation: Int
    ) -> Scope {
        var text = String(rest)
        for line in following.prefix(8) where !text.contains("{") { text += " " + line }
        let head = Substring(text).prefix { $0 != "{" }
        let name = head.drop { $0 == " " }.prefix { $0.isLetter || $0.isNumber || $0 == "." }
        let behind = head.drop { $0 != ":" }
        let words = behind.split { !$0.isLetter && !$0.isNumber }
        return Scope(
            indentation: indentation, keyword: keyword, name: name, isPublic: isPublic,
            conformances: Set(words))
    }

    /// As a link in the documentation writes it.
    private static func name(
        _ keyword: Substring, _ rest: Substring, _ following: ArraySlice<Substring>
    ) -> String {
        let rest = rest.drop { $0 == " " }
        let isWord: (Character) -> Bool = { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "`" }
        let takesArguments = ["func", "init", "subscript"].contains(keyword)
        let own = rest.first.map(isWord) == true ? rest.prefix(while: isWord) : ""
        guard takesArguments else { return String(own) }
        var text = String(rest)
        for line in following.prefix(12) where !isBalanced(text) { text += " " + line }
        let stem = keyword == "func" ? String(rest.prefix { $0 != "(" && $0 != "<" }) : "\(keyword)"
        return "\(stem)(\(labels(text).map { $0 + ":" }.joined()))"
    }

    private static func isBalanced(_ text: String) -> Bool {
        let opened = text.count { $0 == "(" }
        return opened > 0 && opened <= text.count { $0 == ")" }
    }

    /// The first word of each argument of the first pair of parentheses.
    private static func labels(_ text: String) -> [Substring] {
        var arguments = [Substring()]
        var (depth, before): (Int, Character) = (0, " ")
        for character in text.drop(while: { $0 != "(" }) {
            defer { before = character }
            if "([{<".contains(character) { depth += 1 }
            if ")]}".contains(character) || (character == ">" && before != "-") { depth -= 1 }
            if depth == 0 { break }
            if depth == 1, character == "," { arguments.append("") }
            if depth > 1 || !"(,".contains(character) {
                arguments[arguments.count - 1].append(character)
            }
        }
        return arguments.compactMap { argument in
            argument.drop { $0 == " " }.split { $0 == " " || $0 == ":" }.first
        }
    }

    private static func docstring(above place: Int, in lines: [Substring]) -> [Substring] {
        var above = place
        while above > 0, lines[above - 1].drop(while: { $0 == " " }).first == "@",
            parse(lines[above - 1]) == nil
        {
            above -= 1
        }
        return lines[..<above].reversed().map { $0.drop { $0 == " " } }
            .prefix { $0.hasPrefix("///") }.reversed()
            .map { $0.dropFirst(3).drop { $0 == " " } }
    }
}
