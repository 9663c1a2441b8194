import ArgumentParser
import Foundation
import Testing

@testable import tutti

@Suite struct CompletionsTests {
    /// Shells offer what begins with the letters that were typed.
    @Test func `names go on from what was typed, in either case`() {
        let names = ["Kitchen", "kids", "Bath"]
        #expect(Completions.continuing("", names) == names)
        #expect(Completions.continuing("ki", names) == ["kitchen", "kids"])
        #expect(Completions.continuing("KIT", names) == ["KITchen"])
        // In quotes, of which the shell knows.
        #expect(Completions.continuing("\"Ki", names) == names)
    }

    @Test func `an address keeps its colon in zsh, which takes it for an explanation`() {
        let addresses = ["192.168.1.20:7430", "[fe80::1%2]:7430"]
        #expect(
            Completions.shown(addresses, in: .zsh)
                == ["192.168.1.20\\:7430", "[fe80\\:\\:1%2]\\:7430"])
        #expect(Completions.shown(addresses, in: .bash) == addresses)
    }

    @Test func `interfaces are those of this machine`() throws {
        let names = Completions.interfaces(words: [], index: 0, typed: "")
        #expect(!names.contains("lo"))
        #expect(
            Set(names).isSubset(
                of: try FileManager.default.contentsOfDirectory(atPath: "/sys/class/net")))
    }

    @Test func `the leader that was written is asked`() {
        #expect(
            Completions.value(of: "--leader", in: ["volume", "--leader", "a:1", "k"]) == "a:1")
        #expect(Completions.value(of: "--leader", in: ["volume", "--leader=a:1"]) == "a:1")
        #expect(Completions.value(of: "--leader", in: ["volume", "--leader"]) == nil)
    }

    /// What bash offers behind a line, by the script that is installed; `words` as bash splits it.
    private func offered(_ words: [String], in folder: String, _ line: String? = nil) throws
        -> [String]
    {
        let program =
            ownProgram().split(separator: "/").dropLast()
            .reduce("") { "\($0)/\($1)" } + "/tutti"
        let script = folder + "/completions"
        try BashCompletions.completing(Tutti.completionScript(for: .bash))
            .write(toFile: script, atomically: true, encoding: .utf8)
        func quoted(_ text: String) -> String { "'" + text.replacing("'", with: "'\\''") + "'" }
        let last = words.last ?? ""
        let all = [program] + words
        let typed =
            line
            ?? words.joined(separator: " ").replacing(" : ", with: ":")
            .replacing(" :", with: ":")
        let test = """
            cd \(quoted(folder)); source \(script)
            COMP_WORDS=(\(all.map(quoted).joined(separator: " "))) COMP_CWORD=\(words.count)
            COMP_LINE=\(quoted(program + " " + typed)) COMP_POINT=${#COMP_LINE}
            _tutti_whole_words \(program) \(quoted(last == ":" ? "" : last)) x
            printf '%s\\n' "${COMPREPLY[@]}"
            """
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["bash", "-c", test]
        var environment = ProcessInfo.processInfo.environment
        environment["XDG_STATE_HOME"] = folder
        environment["ALSA_CONFIG_PATH"] = folder + "/asound.conf"
        process.environment = environment
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let bytes = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    @Test func `bash completes what has colons in it, and what help explains`() throws {
        let folder =
            FileManager.default.temporaryDirectory.path + "/tutti-complete-\(UUID().uuidString)"
        try FileManager.default.createDirectory(
            atPath: folder + "/tutti", withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try "pcm.kitchen { type null hint { show on } }\n".write(
            toFile: folder + "/asound.conf", atomically: true, encoding: .utf8)
        try "x".write(toFile: folder + "/room.wav", atomically: true, encoding: .utf8)
        var book = SceneBook()
        try book.keep(Scene(name: "evening", groups: []))
        try book.save(folder: folder + "/tutti")

        #expect(try offered(["play", "--output", "fi"], in: folder) == ["file:"])
        let cards = try offered(["play", "--output", "alsa", ":"], in: folder)
        #expect(
            cards.contains("kitchen")
                && !cards.contains { $0.contains(":") && $0.hasPrefix("alsa") })
        #expect(try offered(["play", "--output", "alsa", ":", "ki"], in: folder) == ["kitchen"])
        #expect(try offered(["follow", "--output", "file", ":", "ro"], in: folder) == ["room.wav"])
        #expect(
            try offered(["play", "--output", "=", "fi"], in: folder, "play --output=fi")
                == ["file:"])
        #expect(try offered(["help", "hou"], in: folder) == ["household"])
        #expect(try offered(["help", "scene", "re"], in: folder) == ["recall"])
        #expect(try offered(["scene", "recall", "ev"], in: folder) == ["evening"])
        #expect(try offered(["volume", "--lea"], in: folder) == ["--leader"])
    }
}
