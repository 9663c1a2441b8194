import CTuttiAvahi

/// One service on one interface and protocol: where it is, for as long as it is seen there.
///
/// The daemon's resolver is kept: it reports again whenever a record changes, and a leader that
/// gets another address is followed only by who hears of it. A resolver that found nothing in time
/// goes on looking.
///
/// Confined to the poll's lock.
@safe
final class Resolver {
    /// Addresses remembered, the newest first. The daemon tells of one address at a time, and not
    /// which of those before it have gone.
    static let mostAddresses = 4

    let name: String
    private let interface: AvahiIfIndex
    private(set) var hostName = ""
    private(set) var port = 0
    private(set) var addresses: [String] = []
    private(set) var attributes: [String: String] = [:]
    private var handle: OpaquePointer?
    /// The browser lists us, and frees us before it goes.
    private unowned let browser: Browser

    init(name: String, interface: AvahiIfIndex, browser: Browser) {
        self.name = name
        self.interface = interface
        self.browser = browser
    }

    func start(
        on client: OpaquePointer?, protocol ipProtocol: AvahiProtocol,
        type: UnsafePointer<CChar>?, domain: UnsafePointer<CChar>?
    ) {
        // Freed by `stop` or with the client; the browser lists us that long.
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe handle = avahi_service_resolver_new(
            client, interface, ipProtocol, name, type, domain, ipProtocol, AvahiLookupFlags(0),
            serviceResolved, context)
    }

    func stop() {
        if let handle = unsafe handle { unsafe avahi_service_resolver_free(handle) }
        unsafe handle = nil
    }

    var endpoints: [ServiceEndpoint] {
        addresses.map {
            ServiceEndpoint(address: $0, port: port, interfaceIndex: Int(interface))
        }
    }

    fileprivate func found(
        hostName: String, address: String, port: Int, attributes: [String: String]
    ) {
        if port != self.port || hostName != self.hostName { addresses = [] }
        addresses.removeAll { $0 == address }
        addresses.insert(address, at: 0)
        addresses.removeLast(max(0, addresses.count - Self.mostAddresses))
        self.hostName = hostName
        self.port = port
        self.attributes = attributes
        browser.changed(name)
    }

    /// Its records are gone, or never came; the daemon goes on looking for them.
    fileprivate func lost() {
        guard !addresses.isEmpty else { return }
        addresses = []
        browser.changed(name)
    }
}

private let serviceResolved: AvahiServiceResolverCallback = {
    _, interface, _, event, _, _, _, host, address, port, records, _, context in
    guard let context = unsafe context else { return }
    let resolver = unsafe Unmanaged<Resolver>.fromOpaque(context).takeUnretainedValue()
    guard event == AVAHI_RESOLVER_FOUND, let address = unsafe address else {
        return resolver.lost()
    }
    unsafe resolver.found(
        hostName: host.map { unsafe String(cString: $0) } ?? "",
        address: text(of: address, interface: interface), port: Int(port),
        attributes: attributes(of: records))
}

private func text(of address: UnsafePointer<AvahiAddress>, interface: AvahiIfIndex) -> String {
    let length = Int(AVAHI_ADDRESS_STR_MAX)
    let text = unsafe String(unsafeUninitializedCapacity: length) { buffer in
        unsafe buffer.withMemoryRebound(to: CChar.self) { characters in
            unsafe avahi_address_snprint(characters.baseAddress, length, address)
            return unsafe characters.firstIndex(of: 0) ?? 0
        }
    }
    return text.hasPrefix("fe80:") ? "\(text)%\(interface)" : text
}

private func attributes(of records: UnsafeMutablePointer<AvahiStringList>?) -> [String: String] {
    var result: [String: String] = [:]
    var record = unsafe records
    while let current = unsafe record {
        var key: UnsafeMutablePointer<CChar>?
        var value: UnsafeMutablePointer<CChar>?
        if unsafe avahi_string_list_get_pair(current, &key, &value, nil) == 0,
            let key = unsafe key
        {
            let name = unsafe String(cString: key)
            unsafe result[name] = value.map { unsafe String(cString: $0) } ?? ""
        }
        unsafe avahi_free(key)
        unsafe avahi_free(value)
        unsafe record = avahi_string_list_get_next(current)
    }
    return result
}
