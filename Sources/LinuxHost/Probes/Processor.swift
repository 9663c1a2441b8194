/// The processor that this runs on.
public enum Processor {
    /// Its name; `nil` where the kernel gives none.
    public static var name: String? { KernelFile.text("/proc/cpuinfo").flatMap(name(in:)) }

    /// The name in the text of `/proc/cpuinfo`.
    ///
    /// x86 says "model name" of each core. ARM numbers its cores and names the board, if anything.
    static func name(in text: String) -> String? {
        for wanted in ["model name", "Model", "Hardware"] {
            for line in text.split(separator: "\n") {
                let parts = line.split(separator: ":", maxSplits: 1)
                guard parts.count == 2, trimmed(parts[0]) == wanted else { continue }
                let name = trimmed(parts[1])
                if !name.isEmpty { return name }
            }
        }
        return nil
    }

    private static func trimmed(_ text: Substring) -> String {
        text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }
}
