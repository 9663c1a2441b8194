import CAvahi

/// One browse request: resolves what the daemon reports; confined to the poll's lock.
@safe
final class Browser {
    private let type: String
    private let continuation: AsyncStream<ServiceEvent>.Continuation
    private var browser: OpaquePointer?
    /// On how many (interface, protocol) pairs each name is seen; it is gone with the last.
    private var sightings: [String: Int] = [:]

    init(type: String, continuation: AsyncStream<ServiceEvent>.Continuation) {
        self.type = type
        self.continuation = continuation
    }

    func start(on client: OpaquePointer) {
        guard unsafe browser == nil else { return }
        // Freed by `stop` or with the client; the session lists us that long.
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe browser = avahi_service_browser_new(
            client, AvahiIfIndex(AVAHI_IF_UNSPEC), AvahiProtocol(AVAHI_PROTO_UNSPEC), type, nil,
            AvahiLookupFlags(0), serviceChanged, context)
    }

    func stop() {
        if let browser = unsafe browser { unsafe avahi_service_browser_free(browser) }
        unsafe browser = nil
    }

    /// The client, and with it the browser, is gone; so is all that was seen.
    func forget() {
        unsafe browser = nil
        for name in sightings.keys { report(.removed(name: name)) }
        sightings = [:]
    }

    func finish() { continuation.finish() }

    func report(_ event: ServiceEvent) { continuation.yield(event) }

    fileprivate func appeared(name: String) { sightings[name, default: 0] += 1 }

    fileprivate func disappeared(name: String) {
        let left = sightings[name, default: 1] - 1
        sightings[name] = left > 0 ? left : nil
        if left <= 0 { report(.removed(name: name)) }
    }
}

private func browser(_ context: UnsafeMutableRawPointer) -> Browser {
    unsafe Unmanaged<Browser>.fromOpaque(context).takeUnretainedValue()
}

private let serviceChanged: AvahiServiceBrowserCallback = {
    handle, interface, ipProtocol, event, name, type, domain, _, context in
    guard let context = unsafe context else { return }
    let name = unsafe name.map { unsafe String(cString: $0) } ?? ""
    switch event {
    case AVAHI_BROWSER_NEW:
        unsafe browser(context).appeared(name: name)
        // The resolver frees itself in its callback. It may outlive the browse request, so it
        // holds a reference of its own; should the client go first, that reference leaks.
        let retained = unsafe Unmanaged.passRetained(browser(context)).toOpaque()
        let resolver = unsafe avahi_service_resolver_new(
            avahi_service_browser_get_client(handle), interface, ipProtocol, name, type, domain,
            ipProtocol, AvahiLookupFlags(0), serviceResolved, retained)
        if unsafe resolver == nil { unsafe Unmanaged<Browser>.fromOpaque(retained).release() }
    case AVAHI_BROWSER_REMOVE:
        unsafe browser(context).disappeared(name: name)
    case AVAHI_BROWSER_ALL_FOR_NOW:
        unsafe browser(context).report(.allKnownReported)
    default:
        break
    }
}

private let serviceResolved: AvahiServiceResolverCallback = {
    resolver, interface, ipProtocol, event, name, _, _, host, address, port, records, _, context in
    guard let context = unsafe context else { return }
    let browser = unsafe Unmanaged<Browser>.fromOpaque(context).takeRetainedValue()
    defer { unsafe avahi_service_resolver_free(resolver) }
    // A service that cannot be resolved has just gone: its removal is reported by the browser.
    guard event == AVAHI_RESOLVER_FOUND, let address = unsafe address, let name = unsafe name
    else { return }
    let service = unsafe Service(
        name: String(cString: name),
        hostName: host.map { unsafe String(cString: $0) } ?? "",
        address: text(of: address, interface: interface), port: Int(port),
        interfaceIndex: Int(interface), attributes: attributes(of: records))
    browser.report(.found(service))
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
