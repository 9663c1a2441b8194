import Crypto
import NIOCore
import NIOSSL
package import TuttiTrust

/// What a node shows of itself on every link, made of its key once.
///
/// TLS 1.3 alone, a certificate on both sides, verified by the key in it: the handshake proves that
/// the other side has the private half, and says nothing of who that is. Whoever takes the link into
/// use asks the household (``Household/standing(of:)``).
package struct LinkIdentity: Sendable {
    package let publicKey: PublicKey
    let server: NIOSSLContext
    private let clients: [LinkProtocol: NIOSSLContext]

    /// - Throws: `TrustError` where the library takes no such key.
    package init(_ key: NodeKey) throws(TrustError) {
        publicKey = key.publicKey
        do {
            let chain: [NIOSSLCertificateSource] = [
                .certificate(
                    try NIOSSLCertificate(
                        bytes: try NodeCertificate.make(for: key.signingKey), format: .der))
            ]
            let own = NIOSSLPrivateKeySource.privateKey(
                try NIOSSLPrivateKey(
                    bytes: Array(key.signingKey.derRepresentation), format: .der))
            server = try NIOSSLContext(
                configuration: Self.bounded(
                    .makeServerConfiguration(certificateChain: chain, privateKey: own),
                    LinkProtocol.allCases))
            var clients: [LinkProtocol: NIOSSLContext] = [:]
            for spoken in LinkProtocol.allCases {
                var client = TLSConfiguration.makeClientConfiguration()
                client.certificateChain = chain
                client.privateKey = own
                clients[spoken] = try NIOSSLContext(configuration: Self.bounded(client, [spoken]))
            }
            self.clients = clients
        } catch {
            throw TrustError(.refused, "node key", "no certificate can be made of it (\(error))")
        }
    }

    /// One for each: the library takes the protocols with the context.
    func client(_ spoken: LinkProtocol) -> NIOSSLContext? { clients[spoken] }

    private static func bounded(
        _ configuration: TLSConfiguration, _ spoken: [LinkProtocol]
    ) -> TLSConfiguration {
        var configuration = configuration
        configuration.minimumTLSVersion = .tlsv13
        configuration.applicationProtocols = spoken.map(\.name)
        // Asks for the certificate of the other side too; who it is, is for our own callback to say.
        configuration.certificateVerification = .noHostnameVerification
        // Who closes a link to an address that is gone would wait for its answer, and a room does not
        // look for its leader meanwhile. Messages have their lengths: a link that is cut short is seen.
        configuration.shutdownTimeout = .milliseconds(100)
        // Nobody vouches for anybody here: the store of the system is not even read.
        configuration.trustRoots = .certificates([])
        return configuration
    }
}
