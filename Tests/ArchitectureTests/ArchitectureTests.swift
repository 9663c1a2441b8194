import Foundation
import Testing

@Suite struct ArchitectureTests {
    let tree = SourceTree()

    @Test(arguments: Arrows.targets.map(\.name))
    func `a target imports only what the arrows allow`(name: String) throws {
        let target = try #require(Arrows.targets.first { $0.name == name })
        let sources = try tree.sources(below: target.folder)
        #expect(!sources.isEmpty, "\(target.folder) is empty")
        for source in sources {
            for line in source.lines {
                guard let found = Import(line: line) else { continue }
                if target.isPure && found.module == "Glibc" {
                    #expect(
                        found.symbol.map { Arrows.pureFunctions.contains($0) } ?? false,
                        "\(source.path): a pure target imports Glibc as a whole: \(line)")
                    continue
                }
                let allowed =
                    target.mayImport.union(Arrows.standard)
                    .union(target.isPure ? [] : Arrows.system)
                // SwiftProtobuf's generated code imports Foundation's essentials conditionally.
                if target.name == "TuttiWire" && source.path.hasSuffix(".pb.swift") { continue }
                #expect(
                    allowed.contains(found.module),
                    "\(source.path): \(name) may not import \(found.module)")
            }
        }
    }

    @Test(arguments: Arrows.targets.filter(\.isPure).map(\.name))
    func `a pure target has no clock, task, chance or console`(name: String) throws {
        for source in try tree.sources(below: Arrows.folder(of: name))
        where !source.path.hasSuffix(".pb.swift") {
            for line in source.lines {
                let code = line.drop(while: \.isWhitespace)
                guard !code.hasPrefix("//") else { continue }
                for impure in Arrows.impureNames {
                    #expect(
                        !code.contains(word: impure),
                        "\(source.path): \(impure) in a pure target: \(code)")
                }
            }
        }
    }

    @Test func `arrows never turn back`() {
        var known: Set<String> = []
        let all = Set(Arrows.targets.map(\.name))
        for target in Arrows.targets {
            #expect(
                target.mayImport.intersection(all).isSubset(of: known),
                "\(target.name) imports a target that comes later")
            let pure = Set(Arrows.targets.filter(\.isPure).map(\.name))
            if target.isPure {
                #expect(target.mayImport.intersection(all).isSubset(of: pure))
            }
            known.insert(target.name)
        }
    }

    @Test func `the manifest lists the targets in the order of the flow, and no others`() throws {
        let all = try tree.declarations()
        let declared = all.filter { target in
            ["target", "executableTarget"].contains(target.kind)
                && !target.text.contains(#"path: "Tests/"#)
        }
        #expect(declared.map(\.name) == Arrows.targets.map(\.name))
        let shims = all.filter { $0.kind == "systemLibrary" }.map(\.name)
        let folders = Set((declared.map(\.name) + shims).map { Arrows.folder(of: $0) })
        #expect(Set(try tree.folders(below: "Sources").map { "Sources/\($0)" }) == folders)
    }

    @Test func `the manifest declares no arrow that the table does not have`() throws {
        let own = Set(Arrows.targets.map(\.name))
        for (kind, name, text) in try tree.declarations() where own.contains(name) {
            guard kind != "testTarget",
                let target = Arrows.targets.first(where: { $0.name == name })
            else { continue }
            let declared = Set(text.matches(of: /"([A-Za-z]+)"/).map { String($0.output.1) })
            #expect(
                declared.intersection(own).subtracting([name]).isSubset(of: target.mayImport),
                "\(name) declares more than the table allows")
        }
    }

    @Test func `every target is tested, and resolved versions are not checked in`() throws {
        let tested = Set(try tree.declarations().filter { $0.kind == "testTarget" }.map(\.name))
        // The command line has tests under a word for people; Avahi is tested with the rooms.
        let expected = Set(Arrows.targets.map(\.folder))
            .subtracting(["Sources/tutti", "Sources/AvahiDiscovery"])
            .map { $0.dropFirst("Sources/".count) }
        for name in expected + ["CommandLine"] {
            #expect(tested.contains("\(name)Tests"), "\(name) has no tests")
        }
        #expect(try tree.text(".gitignore").split(separator: "\n").contains("Package.resolved"))
    }

    /// SwiftPM takes each name once in a whole graph of packages.
    @Test func `no module collides with one of an application`() {
        for target in Arrows.targets where target.name != "tutti" {
            #expect(target.name.hasPrefix("Tutti"))
        }
    }

    /// A fingerprint prints nothing.
    @Test func `a forbidden name is one where a word begins with it`() {
        #expect("print(1)".contains(word: "print("))
        #expect("Swift.print(1)".contains(word: "print("))
        #expect("fingerprint(1); print(1)".contains(word: "print("))
        #expect(!"Fingerprint(1)".contains(word: "print("))
        #expect("let x = Int.random(in: 0...1)".contains(word: ".random("))
    }

    @Test func `the import parser reads every form`() {
        #expect(Import(line: "import Timing")?.module == "Timing")
        #expect(Import(line: "public import Timing")?.module == "Timing")
        #expect(Import(line: "  @preconcurrency import Dispatch")?.module == "Dispatch")
        #expect(Import(line: "import func Glibc.sin")?.symbol == "sin")
        #expect(Import(line: "internal import struct Timing.Instant")?.module == "Timing")
        #expect(Import(line: "// import Timing") == nil)
        #expect(Import(line: "important(1)") == nil)
    }
}
