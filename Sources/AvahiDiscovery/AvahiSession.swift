import CTuttiAvahi
import Dispatch
import Glibc

/// A connection to the machine's Avahi daemon: advertises services and browses for them.
///
/// The daemon may start late or restart: the session waits for it and repeats what it was asked to
/// advertise and browse. Only a missing D-Bus makes `init` fail, because then no daemon can come.
///
/// Avahi's threaded poll runs the callbacks on a thread of its own.
///
/// `@unchecked Sendable`: `state` is touched in the callbacks, which the poll runs with its lock
/// held, and in our methods between `avahi_threaded_poll_lock` and `unlock`; `poll` never changes.
@safe
public final class AvahiSession: @unchecked Sendable {
    /// DNS-SD type of all rooms.
    public static let roomType = "_tutti._tcp"

    private let poll: OpaquePointer
    private let interface: String?
    private var state = State()

    /// Everything that callbacks touch; guarded by the poll's lock.
    @safe struct State {
        var client: OpaquePointer?
        var isRunning = false
        /// All of the daemon's, or the one that was asked for.
        var interface = AvahiIfIndex(AVAHI_IF_UNSPEC)
        /// The one that was asked for is not there.
        var lacksInterface = false
        var publications: [Publication] = []
        var browsers: [Browser] = []
        var retry: OpaquePointer?
        /// When it is looked next whether the interface is the one that it was.
        var look: OpaquePointer?
    }

    /// - Parameter interface: the network interface on which is advertised and browsed, by its
    ///   name; it may come later. `nil`: all that the daemon uses.
    /// - Throws: when there is no D-Bus system bus to ask for Avahi.
    public init(interface: String? = nil) throws(AvahiError) {
        self.interface = interface
        guard let poll = unsafe avahi_threaded_poll_new() else {
            throw AvahiError(operation: "avahi_threaded_poll_new", code: -1, reason: "no memory")
        }
        unsafe self.poll = poll
        let code = connect()
        // All is initialised by now, so that `deinit` frees the poll.
        guard code >= 0 else { throw AvahiError(operation: "avahi_client_new", code: code) }
        unsafe avahi_threaded_poll_start(poll)
    }

    deinit {
        // The thread ends first: no callback can run while we take things apart.
        unsafe avahi_threaded_poll_stop(poll)
        dropClient()
        for browser in state.browsers { browser.finish() }
        unsafe avahi_threaded_poll_free(poll)
    }

    /// Whether the daemon answers now.
    public var isConnected: Bool { locked { $0.isRunning } }

    /// The network interface that was asked for and is not there now; `nil`: none, or it is there.
    public var missingInterface: String? { locked { $0.lacksInterface ? interface : nil } }

    /// Advertises until ``withdraw(_:)`` or the end of the session.
    ///
    /// When the name is taken on the LAN, the next free one ("Kitchen #2") is used.
    ///
    /// - Parameter tell: hears what became of it, on the thread of the poll; must not call us.
    @discardableResult
    public func advertise(
        _ advertisement: Advertisement,
        tell: @escaping @Sendable (PublicationNews) -> Void = { _ in }
    ) -> PublicationID {
        locked { state in
            let publication = Publication(advertisement, tell: tell)
            state.publications.append(publication)
            if state.isRunning, let client = unsafe state.client {
                unsafe publication.commit(on: client, state.interface)
            }
            return PublicationID(ObjectIdentifier(publication))
        }
    }

    /// Takes an advertisement back; the LAN hears a goodbye.
    public func withdraw(_ id: PublicationID) {
        locked { state in
            state.publications.removeAll { publication in
                guard ObjectIdentifier(publication) == id.identifier else { return false }
                publication.withdraw()
                return true
            }
        }
    }

    /// All services of a type, now and as they come and go.
    ///
    /// The stream keeps the newest 1 024 events; a consumer that lags loses the oldest.
    public func browse(type: String = AvahiSession.roomType) -> AsyncStream<ServiceEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: ServiceEvent.self, bufferingPolicy: .bufferingNewest(1_024))
        let browser = Browser(type: type, continuation: continuation)
        locked { state in
            state.browsers.append(browser)
            if state.isRunning, let client = unsafe state.client {
                unsafe browser.start(on: client, state.interface)
            }
        }
        let id = ObjectIdentifier(browser)
        // Not on the thread that cancels: it holds the lock of its task, for which the poll's thread waits
        // when it tells that task of a service, with the lock of the poll.
        continuation.onTermination = { [weak self] _ in
            DispatchQueue.global().async { [weak self] in self?.end(id) }
        }
        return stream
    }

    private func end(_ browser: ObjectIdentifier) {
        locked { state in
            for known in state.browsers where ObjectIdentifier(known) == browser { known.stop() }
            state.browsers.removeAll { ObjectIdentifier($0) == browser }
        }
    }

    // MARK: Connection

    private func locked<R>(_ body: (inout State) -> R) -> R {
        unsafe avahi_threaded_poll_lock(poll)
        defer { unsafe avahi_threaded_poll_unlock(poll) }
        return body(&state)
    }

    /// Makes the client; its callback reports when the daemon is there.
    private func connect() -> Int32 {
        var code: Int32 = 0
        // The context outlives the client: `deinit` frees the client first.
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        let client = unsafe avahi_client_new(
            avahi_threaded_poll_get(poll), AVAHI_CLIENT_NO_FAIL, clientChanged, context, &code)
        unsafe state.client = client
        return unsafe client == nil ? min(code, -1) : 0
    }

    private func dropClient() {
        state.isRunning = false
        for publication in state.publications { publication.forget() }
        for browser in state.browsers { browser.forget() }
        // Freeing the client frees its groups, browsers and resolvers.
        if let client = unsafe state.client { unsafe avahi_client_free(client) }
        unsafe state.client = nil
    }

    /// Called on the poll's thread, with its lock held.
    fileprivate func changed(to clientState: AvahiClientState, client: OpaquePointer) {
        unsafe state.client = client
        switch clientState {
        case AVAHI_CLIENT_S_RUNNING:
            state.lacksInterface = !findInterface()
            guard !state.lacksInterface else { return scheduleReconnect() }
            state.isRunning = true
            scheduleLook()
            for publication in state.publications {
                unsafe publication.commit(on: client, state.interface)
            }
            for browser in state.browsers { unsafe browser.start(on: client, state.interface) }
        case AVAHI_CLIENT_FAILURE:
            // The daemon was restarted: this client is of no use any more. It may not be freed
            // inside its own callback by all versions of the library, so a timer does it.
            state.isRunning = false
            for browser in state.browsers { browser.report(.daemonLost) }
            scheduleReconnect()
        case AVAHI_CLIENT_CONNECTING:
            state.isRunning = false
        default:
            // The host's name is being registered or collides: services wait until it runs again.
            for publication in state.publications { publication.withdraw() }
        }
    }

    /// - Returns: false where the one that was asked for is not there.
    private func findInterface() -> Bool {
        guard let interface else { return true }
        let index = if_nametoindex(interface)
        state.interface = AvahiIfIndex(clamping: index)
        return index > 0
    }

    /// Half a second later, in the poll's thread: a new client.
    private func scheduleReconnect() {
        guard unsafe state.retry == nil else { return }
        unsafe state.retry = timer(after: 500) { timer, context in
            unsafe AvahiSession.of(context)?.reconnect(timer: timer)
        }
    }

    private func reconnect(timer: OpaquePointer?) {
        unsafe free(timer: timer)
        unsafe state.retry = nil
        dropClient()
        if connect() < 0 { scheduleReconnect() }
    }

    /// An interface that goes, and comes back under its name, is another one: a stick that is
    /// plugged in again, a VPN that is made anew. What was bound to the one before is heard
    /// nowhere.
    private func scheduleLook() {
        guard interface != nil, unsafe state.look == nil else { return }
        unsafe state.look = timer(after: 1_000) { timer, context in
            unsafe AvahiSession.of(context)?.look(timer: timer)
        }
    }

    private func look(timer: OpaquePointer?) {
        unsafe free(timer: timer)
        unsafe state.look = nil
        guard state.isRunning else { return }
        let before = state.interface
        guard findInterface(), state.interface == before else {
            state.isRunning = false
            return scheduleReconnect()
        }
        scheduleLook()
    }

    private func timer(after milliseconds: UInt32, _ callback: AvahiTimeoutCallback)
        -> OpaquePointer?
    {
        guard let api = unsafe avahi_threaded_poll_get(poll) else { return nil }
        var time = timeval()
        unsafe avahi_elapse_time(&time, milliseconds, 100)
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        return unsafe api.pointee.timeout_new(api, &time, callback, context)
    }

    private func free(timer: OpaquePointer?) {
        if let api = unsafe avahi_threaded_poll_get(poll), let timer = unsafe timer {
            unsafe api.pointee.timeout_free(timer)
        }
    }

    private static func of(_ context: UnsafeMutableRawPointer?) -> AvahiSession? {
        unsafe context.map {
            unsafe Unmanaged<AvahiSession>.fromOpaque($0).takeUnretainedValue()
        }
    }
}

/// Names one advertisement of a session.
public struct PublicationID: Hashable, Sendable {
    let identifier: ObjectIdentifier

    init(_ identifier: ObjectIdentifier) { self.identifier = identifier }
}

extension AvahiError {
    init(operation: String, code: Int32) {
        self.operation = operation
        self.code = code
        let text = unsafe avahi_strerror(code).map { unsafe String(cString: $0) } ?? "unknown error"
        reason = "\(text); is avahi-daemon running? (apt-get install avahi-daemon dbus)"
    }
}

private let clientChanged: AvahiClientCallback = { client, state, context in
    guard let client = unsafe client, let context = unsafe context else { return }
    let session = unsafe Unmanaged<AvahiSession>.fromOpaque(context).takeUnretainedValue()
    unsafe session.changed(to: state, client: client)
}
