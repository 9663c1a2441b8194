import Glibc

/// The small text files under /proc and /sys in which the kernel tells about itself.
enum KernelFile {
    /// None of those read here is longer.
    private static let longest = 16_384

    /// The file without the newline at its end; `nil` when there is none or it may not be read.
    static func text(_ path: String) -> String? {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: longest)
        let count = unsafe read(descriptor, &bytes, bytes.count)
        guard count >= 0 else { return nil }
        while count > 0, bytes.count > count { bytes.removeLast(bytes.count - count) }
        if count == 0 { return "" }
        let text = String(decoding: bytes, as: UTF8.self)
        return text.hasSuffix("\n") ? String(text.dropLast()) : text
    }

    static func number(_ path: String) -> Int? { text(path).flatMap { Int($0) } }

    static func words(_ path: String) -> [String] {
        (text(path) ?? "").split(whereSeparator: \.isWhitespace).map(String.init)
    }

    /// What follows `key:` in a file of such lines.
    static func field(_ key: String, of path: String) -> String? {
        for line in (text(path) ?? "").split(separator: "\n") where line.hasPrefix(key + ":") {
            let value = line.dropFirst(key.utf8.count + 1).drop(while: \.isWhitespace)
            return String(value)
        }
        return nil
    }

    /// Names in a folder that begin so, in order.
    static func names(in folder: String, beginning prefix: String) -> [String] {
        guard let handle = unsafe opendir(folder) else { return [] }
        defer { unsafe closedir(handle) }
        var names: [String] = []
        while let entry = unsafe readdir(handle) {
            let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name.hasPrefix(prefix) { names.append(name) }
        }
        return names.sorted()
    }
}
