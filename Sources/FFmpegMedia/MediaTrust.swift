import CFFmpeg
import Playout

/// Which web servers may give us media: those whose certificate somebody we trust has signed for
/// their name (RFC 9110, 4.3.4), and those whose certificate the owner said not to look at.
public struct MediaTrust: Equatable, Sendable {
    /// The certificates of this machine (on Debian the package ca-certificates), and no exception.
    public static let system = MediaTrust()

    /// Hosts whose certificate is not looked at, in lower case.
    public let insecureHosts: Set<String>
    /// A PEM file of trusted certificates instead of the system's, for tests.
    let certificates: String?

    public init(insecureHosts: Set<String> = []) {
        self.init(insecureHosts: insecureHosts, certificates: nil)
    }

    init(insecureHosts: Set<String> = [], certificates: String?) {
        self.insecureHosts = Set(insecureHosts.map { $0.lowercased() })
        self.certificates = certificates
    }

    func isInsecure(_ host: String) -> Bool { insecureHosts.contains(host.lowercased()) }

    /// Tells libavformat what to look at when it connects to `location`.
    func set(_ options: inout OpaquePointer?, for location: MediaLocation) {
        guard location.isRemote else { return }
        let looks = location.webAddress.map { !isInsecure($0.host) } ?? true
        unsafe av_dict_set(&options, "tls_verify", looks ? "1" : "0", 0)
        if let certificates { unsafe av_dict_set(&options, "ca_file", certificates, 0) }
    }
}
