import Foundation

/// The harnesses as libFuzzer's program; `deploy/fuzz` builds and calls it.
///
///     Fuzzing --list
///     Fuzzing --seeds NAME FOLDER          writes the seeds into the folder
///     Fuzzing NAME [FOLDER|FILE] [-OPTION …]     libFuzzer's arguments
@main enum Program {
    /// Of this process; set before the first input.
    nonisolated(unsafe) private(set) static var harness: Harness?

    static func main() throws {
        let arguments = CommandLine.arguments.dropFirst()
        switch (arguments.first, arguments.count) {
        case ("--list", 1):
            for harness in Harness.all { print(harness.name, harness.longest) }
        case ("--seeds", 3):
            let harness = try named(arguments[2])
            for (number, seed) in try harness.seeds().enumerated() {
                try Data(seed).write(to: URL(filePath: "\(arguments[3])/seed-\(number)"))
            }
        case (let name?, _):
            harness = try named(name)
            exit(run(name))
        case (nil, _):
            throw Finding(description: "name a parser; --list says which there are")
        }
    }

    private static func named(_ name: String) throws -> Harness {
        guard let harness = Harness.all.first(where: { $0.name == name }) else {
            throw Finding(description: "no parser is called \(name); --list says which there are")
        }
        return harness
    }

    /// libFuzzer sees what is behind the name. What it calls for itself, to make an input smaller, is the
    /// program with the name, which the shell takes apart again.
    private static func run(_ name: String) -> CInt {
        let words = ["\(CommandLine.arguments[0]) \(name)"] + CommandLine.arguments.dropFirst(2)
        // Kept until the process ends.
        var arguments = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>.allocate(
            capacity: words.count + 1)
        for (place, word) in words.enumerated() { arguments[place] = strdup(word) }
        arguments[words.count] = nil
        var count = CInt(words.count)
        return runFuzzer(&count, &arguments, testOneInput)
    }
}

@_silgen_name("LLVMFuzzerRunDriver")
private func runFuzzer(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ body: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

/// libFuzzer's own `main`, which is not called, wants it under this name.
@_cdecl("LLVMFuzzerTestOneInput")
func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard let harness = Program.harness else { fatalError("no parser was chosen") }
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    do {
        switch harness.check {
        case .plain(let check):
            try Harness.plain(check, bytes, heldPerByte: harness.heldPerByte)
        case .waiting(let check): try finished { try await check(bytes) }
        }
    } catch {
        fatalError("\(harness.name): \(error)")
    }
    return 0
}

/// Waits on a thread of libFuzzer's, which is none of the pool's.
private func finished(_ body: @escaping @Sendable () async throws -> Void) throws {
    let isDone = DispatchSemaphore(value: 0)
    nonisolated(unsafe) var failure: (any Error)?
    Task.detached {
        do {
            try await body()
        } catch {
            failure = error
        }
        isDone.signal()
    }
    isDone.wait()
    if let failure { throw failure }
}
