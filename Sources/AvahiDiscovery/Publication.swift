import CTuttiAvahi

/// One advertisement and the daemon's entry group behind it; confined to the poll's lock.
@safe
final class Publication {
    private var advertisement: Advertisement
    /// Where it is advertised.
    private var interface = AvahiIfIndex(AVAHI_IF_UNSPEC)
    private var group: OpaquePointer?
    /// Said once, whatever the daemon is asked again after a restart.
    private var said: PublicationNews?
    private let tell: @Sendable (PublicationNews) -> Void

    /// Names tried in a row, one after another.
    private static let mostNames = 16

    init(_ advertisement: Advertisement, tell: @escaping @Sendable (PublicationNews) -> Void) {
        self.advertisement = advertisement
        self.tell = tell
    }

    /// Hands the advertisement to the daemon, as often as it takes.
    func commit(on client: OpaquePointer, _ interface: AvahiIfIndex) {
        self.interface = interface
        if unsafe group == nil {
            // The group is freed with the client, and we live as long as the session lists us.
            let context = unsafe Unmanaged.passUnretained(self).toOpaque()
            unsafe group = avahi_entry_group_new(client, groupChanged, context)
        }
        guard let group = unsafe group else {
            return refused("avahi_entry_group_new", unsafe avahi_client_errno(client))
        }
        unsafe avahi_entry_group_reset(group)
        var records: UnsafeMutablePointer<AvahiStringList>?
        for (key, value) in advertisement.attributes.sorted(by: { $0.key < $1.key }) {
            unsafe records = avahi_string_list_add_pair(records, key, value)
        }
        defer { unsafe avahi_string_list_free(records) }
        var code = unsafe add(to: group, records)
        // A name that we ourselves hold already is refused at once, one on the LAN later.
        for _ in 0..<Self.mostNames where code == AVAHI_ERR_COLLISION {
            rename()
            code = unsafe add(to: group, records)
        }
        guard code >= 0 else { return refused("avahi_entry_group_add_service_strlst", code) }
        code = unsafe avahi_entry_group_commit(group)
        if code < 0 { refused("avahi_entry_group_commit", code) }
    }

    private func add(to group: OpaquePointer, _ records: UnsafeMutablePointer<AvahiStringList>?)
        -> Int32
    {
        unsafe avahi_entry_group_add_service_strlst(
            group, interface, AvahiProtocol(AVAHI_PROTO_UNSPEC),
            AvahiPublishFlags(0), advertisement.name, AvahiSession.roomType, nil, nil,
            UInt16(clamping: advertisement.port), records)
    }

    private func rename() {
        guard let next = unsafe avahi_alternative_service_name(advertisement.name) else { return }
        let old = advertisement.name
        advertisement.name = unsafe String(cString: next)
        unsafe avahi_free(next)
        say(.renamed(from: old, to: advertisement.name))
    }

    private func refused(_ operation: String, _ code: Int32) {
        say(.refused(AvahiError(operation: operation, code: code, subject: advertisement.name)))
    }

    private func say(_ news: PublicationNews) {
        guard news != said else { return }
        said = news
        tell(news)
    }

    /// Takes the service back. The group goes with it: a state change of the group that is still
    /// queued would otherwise be told to a publication that nobody holds any more.
    func withdraw() {
        if let group = unsafe group { unsafe avahi_entry_group_free(group) }
        unsafe group = nil
    }

    /// The client, and with it the group, is gone.
    func forget() { unsafe group = nil }

    fileprivate func changed(to state: AvahiEntryGroupState, group: OpaquePointer) {
        guard let client = unsafe avahi_entry_group_get_client(group) else { return }
        switch state {
        case AVAHI_ENTRY_GROUP_COLLISION:
            rename()
            unsafe commit(on: client, interface)
        case AVAHI_ENTRY_GROUP_FAILURE:
            refused("avahi_entry_group_commit", unsafe avahi_client_errno(client))
        default: break
        }
    }
}

extension AvahiError {
    /// The daemon does not take an advertisement.
    fileprivate init(operation: String, code: Int32, subject: String) {
        self.operation = operation
        self.code = code
        let text = unsafe avahi_strerror(code).map { unsafe String(cString: $0) } ?? "unknown error"
        let advice =
            switch Int(code) {
            case AVAHI_ERR_INVALID_SERVICE_NAME, AVAHI_ERR_INVALID_DOMAIN_NAME:
                "choose another --name"
            case AVAHI_ERR_NOT_PERMITTED, AVAHI_ERR_ACCESS_DENIED:
                "see disable-publishing and disable-user-service-publishing in avahi-daemon.conf"
            case AVAHI_ERR_TOO_MANY_CLIENTS, AVAHI_ERR_TOO_MANY_OBJECTS,
                AVAHI_ERR_TOO_MANY_ENTRIES:
                "see the limits in avahi-daemon.conf"
            default: "see the log of avahi-daemon"
            }
        reason = "\"\(subject)\" is not announced (\(text)): \(advice)"
    }
}

private let groupChanged: AvahiEntryGroupCallback = { group, state, context in
    guard let group = unsafe group, let context = unsafe context else { return }
    let publication = unsafe Unmanaged<Publication>.fromOpaque(context).takeUnretainedValue()
    unsafe publication.changed(to: state, group: group)
}
