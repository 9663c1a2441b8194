import CTuttiFFmpeg
import TuttiPlayout
import TuttiTiming

/// What a web server says of an address before it sends any of it (RFC 9110, 6.3).
struct WebHeader {
    var status: Int
    /// By names in lower case.
    var fields: [String: String]

    /// Where it says that the address is now.
    var target: String? { (300..<400).contains(status) ? fields["location"] : nil }

    /// Whether the body says itself where it ends (RFC 9112, 6.3).
    var hasChunks: Bool { fields["transfer-encoding"]?.lowercased().contains("chunked") == true }

    static func parse(_ text: String) -> WebHeader? {
        let lines = text.split(omittingEmptySubsequences: false) { $0 == "\r\n" || $0 == "\n" }
        guard let words = lines.first?.split(separator: " "), words.count >= 2,
            words[0].hasPrefix("HTTP/"), let status = Int(words[1])
        else { return nil }
        var fields: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { break }
            let value = line[line.index(after: colon)...].drop(while: \.isWhitespace)
            fields[line[..<colon].lowercased()] = String(value)
        }
        return WebHeader(status: status, fields: fields)
    }
}

extension WebHeader {
    /// Longer than a server of the house takes, and all its answer may take.
    private static let patience = Nanoseconds.seconds(5)
    /// Headers are shorter; of a server that never ends its own, no more is read.
    private static let longest = 16_384

    /// Asks for the address and reads no more than the header.
    ///
    /// - Parameter trust: says whether the certificate of this very host is looked at.
    /// - Returns: `nil` where no web server answers that may be believed.
    static func of(
        _ address: WebAddress, _ trust: MediaTrust, _ cancellation: MediaCancellation
    ) -> WebHeader? {
        let asking = MediaCancellation(within: cancellation)
        asking.expect(within: patience)
        guard
            var io = unsafe connection(
                to: address, looks: trust.looks(at: address.host), trust, asking)
        else { return nil }
        defer { unsafe close(&io) }
        let request = Array(address.request.utf8)
        unsafe avio_write(io, request, Int32(request.count))
        unsafe avio_flush(io)
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 2_048)
        while bytes.count < longest, bytes.firstRange(of: Array("\r\n\r\n".utf8)) == nil {
            let count = unsafe avio_read_partial(io, &block, Int32(block.count))
            guard count > 0 else { break }
            bytes += block[..<Int(count)]
        }
        // The interrupt callback asks it until the connection is closed.
        withExtendedLifetime(asking) {}
        return parse(String(decoding: bytes, as: UTF8.self))
    }

    /// Whether the server can be connected to, and shows a certificate that is in order.
    static func connects(
        to address: WebAddress, looks: Bool, _ trust: MediaTrust, _ cancellation: MediaCancellation
    ) -> Bool {
        let asking = MediaCancellation(within: cancellation)
        asking.expect(within: patience)
        defer { withExtendedLifetime(asking) {} }
        guard var io = unsafe connection(to: address, looks: looks, trust, asking) else {
            return false
        }
        unsafe close(&io)
        return true
    }

    private static func close(_ io: inout UnsafeMutablePointer<AVIOContext>) {
        var closing: UnsafeMutablePointer<AVIOContext>? = unsafe io
        unsafe avio_closep(&closing)
    }

    private static func connection(
        to address: WebAddress, looks: Bool, _ trust: MediaTrust, _ cancellation: MediaCancellation
    ) -> UnsafeMutablePointer<AVIOContext>? {
        precondition(libraryIsQuiet)
        var options: OpaquePointer?
        defer { unsafe av_dict_free(&options) }
        unsafe av_dict_set(&options, "protocol_whitelist", "tcp,tls", 0)
        unsafe av_dict_set_int(&options, "timeout", patience.count / 1_000, 0)
        if address.isSecure { unsafe trust.set(&options, looks: looks) }
        var interrupt = unsafe cancellation.interrupt
        var io: UnsafeMutablePointer<AVIOContext>?
        let scheme = address.isSecure ? "tls" : "tcp"
        let code = unsafe avio_open2(
            &io, "\(scheme)://\(address.bracketedHost):\(address.port)", AVIO_FLAG_READ_WRITE,
            &interrupt, &options)
        return code >= 0 ? unsafe io : nil
    }
}

extension WebAddress {
    fileprivate var request: String {
        let isUsual = port == (isSecure ? 443 : 80)
        let host = bracketedHost + (isUsual ? "" : ":\(port)")
        return "GET \(path) HTTP/1.1\r\nHost: \(host)\r\nAccept: */*\r\n" + authorization
            + "Connection: close\r\n\r\n"
    }

    /// The name and password in the address (RFC 7617).
    private var authorization: String {
        guard let credentials else { return "" }
        let bytes = Array(MediaLocation.unescaped(Array(credentials.utf8)))
        var text = [CChar](repeating: 0, count: 4 * (bytes.count / 3 + 1) + 1)
        guard
            unsafe av_base64_encode(&text, Int32(text.count), bytes, Int32(bytes.count)) != nil
        else { return "" }
        let encoded = text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        return "Authorization: Basic \(String(decoding: encoded, as: UTF8.self))\r\n"
    }
}
