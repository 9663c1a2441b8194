import TuttiPlayout

/// Why an address could not be fetched, where libavformat has one code for many causes: a
/// certificate that nobody vouches for, a redirection in a circle or to a file, a body that is sent
/// compressed. Asked only after a fetch has failed, and only of servers.
struct WebDiagnosis {
    let location: MediaLocation
    let trust: MediaTrust
    let cancellation: MediaCancellation

    /// - Returns: `nil` when there is nothing more to say than what libavformat said.
    func error() -> MediaError? {
        guard let address = location.webAddress else { return nil }
        switch WebRoute.end(from: address, trust, cancellation) {
        case .answer(_, let header): return bodyError(header)
        case .silence(let last): return certificateError(of: last) ?? schemeError(of: last)
        case .elsewhere(let target):
            return make(
                .unsupported,
                "leads to \(target.prefix(200)), which is no http or https address and is not followed"
            )
        case .circle:
            return make(
                .network,
                "is redirected more than \(WebRoute.most) times, as in a circle; "
                    + "check the address in a browser")
        }
    }

    /// Whether the body ends with its connection, because the server tells in no other way where.
    func endsWithConnection() -> Bool {
        guard let address = location.webAddress,
            case .answer(_, let header) = WebRoute.end(from: address, trust, cancellation)
        else { return false }
        return !header.hasChunks && header.fields["content-length"] == nil
    }

    private func make(_ code: MediaError.Code, _ reason: String) -> MediaError {
        MediaError(code, operation: "http", subject: location.subject, reason: reason)
    }

    private func bodyError(_ header: WebHeader) -> MediaError? {
        if let coding = header.fields["content-encoding"], coding != "identity" {
            return make(
                .unsupported,
                "is sent compressed (\(coding.prefix(20))), which audio must not be; tell the server to send the file as it is"
            )
        }
        if (300..<400).contains(header.status) {
            return make(
                .network,
                "is somewhere else, but the server does not say where (status \(header.status)); "
                    + "check the address in a browser")
        }
        guard header.status >= 500 else { return nil }
        return make(
            .network,
            "cannot be fetched: the server has a fault of its own (\(header.status)); try again later"
        )
    }

    /// Whether the server can be talked to once its certificate is not looked at: then that is what
    /// is wrong.
    private func certificateError(of address: WebAddress) -> MediaError? {
        guard address.isSecure, trust.looks(at: address.host),
            !WebHeader.connects(to: address, looks: true, trust, cancellation),
            WebHeader.connects(to: address, looks: false, trust, cancellation)
        else { return nil }
        return make(
            .network,
            "is not fetched: nobody whom this machine trusts has signed the certificate of "
                + "\(address.host) for that name (is it out of date, or self-signed? is the package "
                + "ca-certificates installed?); if you know the server: --insecure \(address.host)"
        )
    }
    /// Whether whoever is there would answer to the other of the two schemes.
    private func schemeError(of address: WebAddress) -> MediaError? {
        // Who speaks TLS has another reason to be silent, and would wait for its beginning.
        if address.isSecure,
            WebHeader.connects(to: address, looks: false, trust, cancellation)
        {
            return nil
        }
        var other = address
        other.isSecure.toggle()
        let answers =
            other.isSecure
            ? WebHeader.connects(to: other, looks: false, trust, cancellation)
            : WebHeader.of(other, trust, cancellation) != nil
        guard answers else { return nil }
        return make(
            .network,
            "is not fetched: port \(address.port) of \(address.host) speaks "
                + (other.isSecure ? "https, not http" : "http without encryption, not https")
                + "; change the beginning of the address")
    }
}
