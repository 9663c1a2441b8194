import CFFmpeg
import Glibc
import Playout

/// Why an address could not be fetched, where libavformat has one code for many causes: a
/// certificate that nobody vouches for, a redirection in a circle or to a file, a body that is sent
/// compressed. Asked only after a fetch has failed, and only of servers.
struct WebDiagnosis {
    /// As many as libavformat follows.
    static let redirectsMax = 8
    /// A header is shorter; of a server that never ends it, no more is read.
    private static let longestHeader = 16_384
    private static let patienceSeconds = 3

    let location: MediaLocation
    let trust: MediaTrust
    let cancellation: MediaCancellation

    /// - Returns: `nil` when there is nothing more to say than what libavformat said.
    func error() -> MediaError? {
        guard location.isRemote, var address = location.webAddress else { return nil }
        for _ in 0...Self.redirectsMax {
            if cancellation.isCancelled { return nil }
            if address.isSecure { return certificateError(of: address) }
            guard let answer = answer(of: address) else { return nil }
            guard (300..<400).contains(answer.status), let target = answer.fields["location"] else {
                return bodyError(answer)
            }
            guard let next = address.redirected(to: target) else {
                return make(
                    .unsupported,
                    "leads to \(target.prefix(200)), which is no http or https address and is not followed"
                )
            }
            address = next
        }
        return make(
            .network,
            "is redirected more than \(Self.redirectsMax) times, as in a circle; check the address in a browser"
        )
    }

    private func make(_ code: MediaError.Code, _ reason: String) -> MediaError {
        MediaError(code, operation: "http", subject: location.subject, reason: reason)
    }

    private func bodyError(_ answer: Answer) -> MediaError? {
        if let coding = answer.fields["content-encoding"], coding != "identity" {
            return make(
                .unsupported,
                "is sent compressed (\(coding.prefix(20))), which audio must not be; tell the server to send the file as it is"
            )
        }
        guard answer.status >= 500 else { return nil }
        return make(
            .network,
            "cannot be fetched: the server has a fault of its own (\(answer.status)); try again later"
        )
    }

    // MARK: Certificates

    /// Whether the server can be talked to once its certificate is not looked at: then that is what
    /// is wrong.
    private func certificateError(of address: WebAddress) -> MediaError? {
        guard !trust.isInsecure(address.host), !connects(to: address, looks: true),
            connects(to: address, looks: false)
        else { return nil }
        return make(
            .network,
            "is not fetched: nobody whom this machine trusts has signed the certificate of "
                + "\(address.host) for that name (is it out of date, or self-signed? is the package "
                + "ca-certificates installed?); if you know the server: --insecure \(address.host)"
        )
    }

    private func connects(to address: WebAddress, looks: Bool) -> Bool {
        var options: OpaquePointer?
        defer { unsafe av_dict_free(&options) }
        unsafe av_dict_set(&options, "tls_verify", looks ? "1" : "0", 0)
        unsafe av_dict_set(&options, "protocol_whitelist", "tcp,tls", 0)
        unsafe av_dict_set_int(&options, "timeout", Int64(Self.patienceSeconds) * 1_000_000, 0)
        if let certificates = trust.certificates {
            unsafe av_dict_set(&options, "ca_file", certificates, 0)
        }
        let host = address.host.contains(":") ? "[\(address.host)]" : address.host
        var interrupt = unsafe cancellation.interrupt
        var io: UnsafeMutablePointer<AVIOContext>?
        let code = unsafe avio_open2(
            &io, "tls://\(host):\(address.port)", AVIO_FLAG_READ_WRITE, &interrupt, &options)
        unsafe avio_closep(&io)
        return code >= 0
    }

    // MARK: Headers

    private struct Answer {
        var status: Int
        /// By names in lower case.
        var fields: [String: String]
    }

    /// What the server says of the address, without its body.
    private func answer(of address: WebAddress) -> Answer? {
        guard let socket = connect(to: address) else { return nil }
        defer { close(socket) }
        let host = address.host.contains(":") ? "[\(address.host)]" : address.host
        let request = Array(
            ("GET \(address.path) HTTP/1.1\r\nHost: \(host):\(address.port)\r\n"
                + "Accept: */*\r\nConnection: close\r\n\r\n").utf8)
        guard send(socket, request, request.count, Int32(MSG_NOSIGNAL)) == request.count
        else { return nil }
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 2_048)
        while bytes.count < Self.longestHeader {
            let count = recv(socket, &block, block.count, 0)
            guard count > 0 else { break }
            bytes += block[..<count]
            if bytes.firstRange(of: Array("\r\n\r\n".utf8)) != nil { break }
        }
        return Self.parse(String(decoding: bytes, as: UTF8.self))
    }

    private static func parse(_ text: String) -> Answer? {
        let lines = text.split(omittingEmptySubsequences: false) { $0 == "\r\n" || $0 == "\n" }
        guard let words = lines.first?.split(separator: " "), words.count >= 2,
            let status = Int(words[1])
        else { return nil }
        var fields: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { break }
            let value = line[line.index(after: colon)...].drop(while: \.isWhitespace)
            fields[line[..<colon].lowercased()] = String(value)
        }
        return Answer(status: status, fields: fields)
    }

    private func connect(to address: WebAddress) -> Int32? {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard unsafe getaddrinfo(address.host, "\(address.port)", &hints, &list) == 0 else {
            return nil
        }
        defer { unsafe freeaddrinfo(list) }
        var next = unsafe list
        while let entry = unsafe next {
            let socket = unsafe Glibc.socket(
                entry.pointee.ai_family,
                entry.pointee.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), 0)
            if socket >= 0 {
                // For connecting too, on Linux (socket(7)).
                var limit = timeval(tv_sec: Self.patienceSeconds, tv_usec: 0)
                let size = socklen_t(MemoryLayout<timeval>.size)
                unsafe setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
                unsafe setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
                if unsafe Glibc.connect(
                    socket, entry.pointee.ai_addr, entry.pointee.ai_addrlen) == 0
                {
                    return socket
                }
                close(socket)
            }
            unsafe next = entry.pointee.ai_next
        }
        return nil
    }
}
