import CTuttiFFmpeg
import TuttiPlayout

/// Which web servers may give us media: those whose certificate somebody we trust has signed for
/// their name (RFC 9110, 4.3.4), and those whose certificate the owner said not to look at.
public struct MediaTrust: Equatable, Sendable {
    /// The certificates of this machine (on Debian the package ca-certificates), and no exception.
    public static let system = MediaTrust()

    /// Hosts whose certificate is not looked at, in lower case.
    public let insecureHosts: Set<String>
    /// A PEM file of trusted certificates instead of the system's, for tests.
    let certificates: String?

    /// Trusts the system's certificates, and whoever answers for the hosts.
    public init(insecureHosts: Set<String> = []) {
        self.init(insecureHosts: insecureHosts, certificates: nil)
    }

    init(insecureHosts: Set<String> = [], certificates: String?) {
        self.insecureHosts = Set(insecureHosts.map { $0.lowercased() })
        self.certificates = certificates
    }

    /// Whether a server of that name has to show a certificate that is in order.
    func looks(at host: String) -> Bool { !insecureHosts.contains(host.lowercased()) }

    /// Tells libavformat what to look at when it connects to `location`.
    func set(_ options: inout OpaquePointer?, for location: MediaLocation) {
        guard location.isRemote else { return }
        let looks = location.webAddress.map { self.looks(at: $0.host) } ?? true
        unsafe set(&options, looks: looks)
        // An exception is one host's: libavformat would take it along to where that one leads. Who
        // wants to get there follows a ``WebRoute``.
        if !looks { unsafe av_dict_set(&options, "max_redirects", "0", 0) }
    }

    func set(_ options: inout OpaquePointer?, looks: Bool) {
        unsafe av_dict_set(&options, "tls_verify", looks ? "1" : "0", 0)
        if let certificates { unsafe av_dict_set(&options, "ca_file", certificates, 0) }
    }
}
