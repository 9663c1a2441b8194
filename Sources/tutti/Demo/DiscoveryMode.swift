import Glibc
import TuttiRoom

/// How the rooms of a demo find each other.
enum DiscoveryMode: String, Sendable {
    /// The avahi-daemon of this machine.
    case avahi
    /// An avahi-daemon of our own, on the loopback interface.
    case privateAvahi = "private avahi"
    /// None could be started: followers are told the leader's address.
    case direct

    /// How the rooms got together, to end a heading.
    var phrase: String {
        switch self {
        case .avahi: "rooms found by Avahi"
        case .privateAvahi: "rooms found by an Avahi of the demo's own"
        case .direct: "rooms told the leader's address"
        }
    }
}

/// A D-Bus and an avahi-daemon that only the demo sees.
///
/// avahi-daemon has fixed paths under /run, so both run in a mount namespace of their own with an
/// empty /run; their bus is a socket in our folder, told to us and our children through
/// DBUS_SYSTEM_BUS_ADDRESS. They listen on the loopback interface only: nothing leaves the machine.
struct PrivateAvahi {
    private let child: ChildProcess

    /// Whether this machine's daemon can be reached, found out without libdbus: it remembers the
    /// bus it was told first.
    static var systemDaemonRuns: Bool {
        let bus: Bool =
            getenv("DBUS_SYSTEM_BUS_ADDRESS") != nil
            || answers("/run/dbus/system_bus_socket")
        return bus && answers("/run/avahi-daemon/socket")
    }

    /// - Throws: when a program is missing or namespaces are not permitted.
    init(folder: String) async throws(CommandError) {
        try Self.writeConfiguration(in: folder, hostName: "tutti-demo", interface: "lo")
        let log = "\(folder)/avahi.log"
        // Without root, a user namespace gives the right to mount in the mount namespace.
        let unshare = geteuid() == 0 ? ["unshare", "-m"] : ["unshare", "-r", "-m"]
        // Before the daemons start: avahi-daemon too is told where the bus is.
        setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=\(folder)/bus.socket", 1)
        child = try ChildProcess(unshare + ["sh", "-c", Self.script, "sh", folder], log: log)
        for _ in 0..<50 {
            guard child.isRunning else { break }
            if access("\(folder)/bus.socket", F_OK) == 0,
                (try? await Discovery.leaders(for: .milliseconds(100))) != nil
            {
                return
            }
            try? await Task.sleep(for: .milliseconds(100))
        }
        let reason = Self.failure(inLog: log) ?? "no answer within 5 s"
        child.kill()
        unsetenv("DBUS_SYSTEM_BUS_ADDRESS")
        throw CommandError("avahi-daemon cannot be started privately: \(reason)")
    }

    /// The line of the log that says why: not the daemon's good-bye after it.
    private static func failure(inLog log: String) -> String? {
        let lines =
            (try? readFile(log))?.split(whereSeparator: \.isNewline).map { String($0) } ?? []
        let telling = lines.last { $0.contains("ailed") || $0.contains("not ") } ?? lines.last
        return telling.map { $0.hasSuffix(".") ? String($0.dropLast()) : $0 }
    }

    func stop() async {
        child.release()
        await ChildProcess.reap([child], limit: .seconds(2))
    }

    private static func answers(_ path: String) -> Bool {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) {
            $0.copyBytes(from: path.utf8.prefix($0.count - 1))
        }
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
    }

    /// Both daemons end with the shell, and the shell with the end of its standard input.
    static let script = """
        mount -t tmpfs tmpfs /run || exit 1
        dbus-daemon --config-file="$1/bus.conf" --nofork --nopidfile & bus=$!
        tries=0
        while [ ! -S "$1/bus.socket" ] && [ $tries -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
        avahi-daemon -f "$1/avahi.conf" --no-drop-root --no-chroot --no-rlimits & avahi=$!
        cat >/dev/null
        kill $avahi $bus
        wait
        """

    /// What both daemons read.
    ///
    /// - Parameters:
    ///   - interface: the only one they use.
    ///   - isIPv6: instead of IPv4.
    static func writeConfiguration(
        in folder: String, hostName: String, interface: String, isIPv6: Bool = false
    ) throws(CommandError) {
        try writeFile(Array(busConfiguration(folder).utf8), to: "\(folder)/bus.conf")
        try writeFile(
            Array(avahiConfiguration(hostName, interface, isIPv6).utf8), to: "\(folder)/avahi.conf")
    }

    private static func busConfiguration(_ folder: String) -> String {
        """
        <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
          "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
        <busconfig>
          <type>system</type>
          <listen>unix:path=\(folder)/bus.socket</listen>
          <auth>EXTERNAL</auth>
          <policy context="default">
            <allow send_destination="*" eavesdrop="true"/>
            <allow eavesdrop="true"/>
            <allow own="*"/>
          </policy>
        </busconfig>
        """
    }

    private static func avahiConfiguration(
        _ hostName: String, _ interface: String, _ isIPv6: Bool
    ) -> String {
        """
        [server]
        host-name=\(hostName)
        use-ipv4=\(isIPv6 ? "no" : "yes")
        use-ipv6=\(isIPv6 ? "yes" : "no")
        allow-interfaces=\(interface)
        enable-dbus=yes
        [wide-area]
        enable-wide-area=no
        [publish]
        publish-workstation=no
        publish-hinfo=no
        [rlimits]
        """
    }
}
