import CAvahi

/// One advertisement and the daemon's entry group behind it; confined to the poll's lock.
@safe
final class Publication {
    private var advertisement: Advertisement
    private var group: OpaquePointer?

    init(_ advertisement: Advertisement) { self.advertisement = advertisement }

    /// Hands the advertisement to the daemon, as often as it takes.
    func commit(on client: OpaquePointer) {
        if unsafe group == nil {
            // The group is freed with the client, and we live as long as the session lists us.
            let context = unsafe Unmanaged.passUnretained(self).toOpaque()
            unsafe group = avahi_entry_group_new(client, groupChanged, context)
        }
        guard let group = unsafe group else { return }
        unsafe avahi_entry_group_reset(group)
        var records: UnsafeMutablePointer<AvahiStringList>?
        for (key, value) in advertisement.attributes.sorted(by: { $0.key < $1.key }) {
            unsafe records = avahi_string_list_add_pair(records, key, value)
        }
        defer { unsafe avahi_string_list_free(records) }
        var code = unsafe add(to: group, records)
        // A name that we ourselves hold already is refused at once, one on the LAN later.
        for _ in 0..<16 where code == AVAHI_ERR_COLLISION {
            rename()
            code = unsafe add(to: group, records)
        }
        if code >= 0 { unsafe avahi_entry_group_commit(group) }
    }

    private func add(to group: OpaquePointer, _ records: UnsafeMutablePointer<AvahiStringList>?)
        -> Int32
    {
        unsafe avahi_entry_group_add_service_strlst(
            group, AvahiIfIndex(AVAHI_IF_UNSPEC), AvahiProtocol(AVAHI_PROTO_UNSPEC),
            AvahiPublishFlags(0), advertisement.name, AvahiSession.roomType, nil, nil,
            UInt16(clamping: advertisement.port), records)
    }

    private func rename() {
        guard let next = unsafe avahi_alternative_service_name(advertisement.name) else { return }
        advertisement.name = unsafe String(cString: next)
        unsafe avahi_free(next)
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
        guard state == AVAHI_ENTRY_GROUP_COLLISION else { return }
        rename()
        if let client = unsafe avahi_entry_group_get_client(group) {
            unsafe commit(on: client)
        }
    }
}

private let groupChanged: AvahiEntryGroupCallback = { group, state, context in
    guard let group = unsafe group, let context = unsafe context else { return }
    let publication = unsafe Unmanaged<Publication>.fromOpaque(context).takeUnretainedValue()
    unsafe publication.changed(to: state, group: group)
}
