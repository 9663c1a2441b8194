/// What is spoken on a link, agreed upon in the handshake (ALPN, RFC 7301). A name is never given
/// another meaning: what changes gets another number.
package enum LinkProtocol: String, CaseIterable, Sendable {
    /// Envelopes: rooms and control clients. Members only.
    case control = "tutti/1"
    /// Assets over HTTP/1.1. Members only.
    case media = "tutti-media/1"
    /// Who belongs to the household, and requests about it. Members; others learn that they are none.
    case household = "tutti-household/1"
    /// A pairing by digits. Strangers.
    case pairing = "tutti-pairing/1"
    /// A pairing by an invite. Strangers.
    case invite = "tutti-invite/1"

    /// As it goes over the wire, without its length.
    var name: String { rawValue }
}
