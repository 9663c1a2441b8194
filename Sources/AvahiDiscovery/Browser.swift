import CTuttiAvahi

/// One browse request: keeps what the daemon reports resolved; confined to the poll's lock.
@safe
final class Browser {
    /// Services times the interfaces and protocols on which each is seen; who invents more is not
    /// heard. A client of the daemon may have 1 024 objects (objects-per-client-max).
    static let mostSightings = 512

    /// Where a name is seen; it is gone with the last of these.
    struct Sighting: Hashable {
        var name: String
        var interface: AvahiIfIndex
        var ipProtocol: AvahiProtocol
    }

    /// How far the daemon's own knowledge has been told.
    private enum Cache {
        case reading
        /// It has named all that it knows; of some it is still not known where they are.
        case resolving
        case reported
    }

    private let type: String
    private let continuation: AsyncStream<ServiceEvent>.Continuation
    private var browser: OpaquePointer?
    private var resolvers: [Sighting: Resolver] = [:]
    /// As it was reported last.
    private var reported: [String: Service] = [:]
    private var cache = Cache.reading

    init(type: String, continuation: AsyncStream<ServiceEvent>.Continuation) {
        self.type = type
        self.continuation = continuation
    }

    func start(on client: OpaquePointer, _ interface: AvahiIfIndex) {
        guard unsafe browser == nil else { return }
        // Freed by `stop` or with the client; the session lists us that long.
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe browser = avahi_service_browser_new(
            client, interface, AvahiProtocol(AVAHI_PROTO_UNSPEC), type, nil,
            AvahiLookupFlags(0), serviceChanged, context)
    }

    func stop() {
        for resolver in resolvers.values { resolver.stop() }
        resolvers = [:]
        if let browser = unsafe browser { unsafe avahi_service_browser_free(browser) }
        unsafe browser = nil
    }

    /// The client is about to go, and the browser with it; so is all that was seen.
    func forget() {
        stop()
        cache = .reading
        for name in reported.keys { report(.removed(name: name)) }
        reported = [:]
    }

    func finish() { continuation.finish() }

    func report(_ event: ServiceEvent) { continuation.yield(event) }

    fileprivate func appeared(
        _ sighting: Sighting, type: UnsafePointer<CChar>?, domain: UnsafePointer<CChar>?
    ) {
        guard resolvers[sighting] == nil, resolvers.count < Self.mostSightings else { return }
        let resolver = Resolver(
            name: sighting.name, interface: sighting.interface, browser: self)
        resolvers[sighting] = resolver
        let client = unsafe avahi_service_browser_get_client(browser)
        unsafe resolver.start(
            on: client, protocol: sighting.ipProtocol, type: type, domain: domain)
    }

    fileprivate func disappeared(_ sighting: Sighting) {
        guard let resolver = resolvers.removeValue(forKey: sighting) else { return }
        resolver.stop()
        changed(sighting.name)
    }

    fileprivate func cacheEnds() {
        if cache == .reading { cache = .resolving }
        reportCache()
    }

    /// Something of a service has changed: says what there is of it now.
    func changed(_ name: String) {
        defer { reportCache() }
        let seen = resolvers.filter { $0.key.name == name }.sorted {
            ($0.key.interface, $0.key.ipProtocol) < ($1.key.interface, $1.key.ipProtocol)
        }.map(\.value)
        guard !seen.isEmpty else {
            if reported.removeValue(forKey: name) != nil { report(.removed(name: name)) }
            return
        }
        // Not yet resolved anywhere; or nowhere any more: then it is told without an address.
        guard let told = seen.first(where: { !$0.addresses.isEmpty }) ?? seen.first,
            !told.addresses.isEmpty || reported[name] != nil
        else { return }
        let service = Service(
            name: name, hostName: told.hostName, endpoints: seen.flatMap(\.endpoints),
            attributes: told.attributes)
        guard reported.updateValue(service, forKey: name) != service else { return }
        report(.found(service))
    }

    /// Of each service that the daemon knew it is known where it is.
    private func reportCache() {
        guard cache == .resolving, Set(resolvers.keys.map(\.name)).count == reported.count else {
            return
        }
        cache = .reported
        report(.cacheReported)
    }
}

private let serviceChanged: AvahiServiceBrowserCallback = {
    _, interface, ipProtocol, event, name, type, domain, _, context in
    guard let context = unsafe context else { return }
    let browser = unsafe Unmanaged<Browser>.fromOpaque(context).takeUnretainedValue()
    let sighting = Browser.Sighting(
        name: unsafe name.map { unsafe String(cString: $0) } ?? "", interface: interface,
        ipProtocol: ipProtocol)
    switch event {
    case AVAHI_BROWSER_NEW: unsafe browser.appeared(sighting, type: type, domain: domain)
    case AVAHI_BROWSER_REMOVE: browser.disappeared(sighting)
    case AVAHI_BROWSER_CACHE_EXHAUSTED: browser.cacheEnds()
    case AVAHI_BROWSER_ALL_FOR_NOW:
        browser.cacheEnds()
        browser.report(.allKnownReported)
    default: break
    }
}
