import Glibc

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A folder that is removed again with all that is in it.
final class TemporaryFolder {
    let path: String

    init() throws(CommandError) {
        // /run is hidden from the private daemons, and a comma would end an option of --output.
        let wish = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        let parent = wish.hasPrefix("/run") || wish.contains(",") || wish.isEmpty ? "/tmp" : wish
        var template = Array("\(parent)/tutti-demo-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw CommandError(
                "\(parent): no temporary folder can be made there; set TMPDIR to one that is writable"
            )
        }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }
}

/// The last line of a log that says something.
func lastLine(ofFile path: String) -> String? {
    guard let data = FileManager.default.contents(atPath: path) else { return nil }
    return String(decoding: data.suffix(4_096), as: UTF8.self)
        .split(whereSeparator: \.isNewline).last { !$0.allSatisfy(\.isWhitespace) }
        .map { String($0).printable }
}

/// The path of the program that runs: the demo starts it again for each room.
func ownProgram() -> String {
    var path = [UInt8](repeating: 0, count: 4_096)
    let count = path.withUnsafeMutableBytes {
        readlink("/proc/self/exe", $0.assumingMemoryBound(to: CChar.self).baseAddress!, $0.count)
    }
    return count > 0 ? String(decoding: path[..<count], as: UTF8.self) : CommandLine.arguments[0]
}

/// A port that is free for TCP and UDP at this moment.
func freePort() throws(CommandError) -> Int {
    for _ in 0..<20 {
        let tcp = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        let udp = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        defer {
            close(tcp)
            close(udp)
        }
        if let port = bindAny(tcp, port: 0), bindAny(udp, port: port) != nil { return port }
    }
    throw CommandError("no free port on this machine")
}

private func bindAny(_ descriptor: Int32, port: Int) -> Int? {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(port).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    return withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
            guard bind(descriptor, address, size) == 0,
                getsockname(descriptor, address, &size) == 0
            else { return nil }
            return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                Int(in_port_t(bigEndian: $0.pointee.sin_port))
            }
        }
    }
}
