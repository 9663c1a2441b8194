import TuttiPlayout

/// Where an address leads, from one server to the next: each is asked by what holds for its own name.
///
/// libavformat follows redirections with the settings of the first host. An owner who excepts one
/// host from the look at its certificate has not excepted what that host leads to.
enum WebRoute {
    /// As many as libavformat follows.
    static let most = 8

    enum End {
        /// The last server, and what it says.
        case answer(WebAddress, WebHeader)
        /// Nobody who may be believed answers there.
        case silence(WebAddress)
        /// Something that is no web address.
        case elsewhere(String)
        /// More than ``most`` redirections.
        case circle
    }

    static func end(
        from start: WebAddress, _ trust: MediaTrust, _ cancellation: MediaCancellation
    ) -> End {
        var address = start
        for _ in 0...most {
            guard let header = WebHeader.of(address, trust, cancellation) else {
                return .silence(address)
            }
            guard let target = header.target else { return .answer(address, header) }
            guard let next = address.redirected(to: target) else { return .elsewhere(target) }
            address = next
        }
        return .circle
    }
}
