import NIOCore
import Synchronization
import TuttiLinuxHost
import TuttiTiming

/// Keeps the places of a port (``ConnectionPlaces``), and closes the connection of who loses one.
final class Doorkeeper: Sendable {
    private struct State {
        var places: ConnectionPlaces
        var channels: [ConnectionPlaces.ID: any Channel] = [:]
    }
    private let state: Mutex<State>

    init(_ limits: ConnectionPlaces.Limits = .init()) {
        state = Mutex(State(places: ConnectionPlaces(limits)))
    }

    func count(of kind: ConnectionPlaces.Kind) -> Int {
        state.withLock { $0.places.count(of: kind) }
    }

    /// A connection, from its beginning to ``Visitor/leave()``.
    ///
    /// - Parameter isKnown: whether a member has come from its address lately.
    func enter(_ channel: any Channel, isKnown: Bool = false) -> Visitor {
        let (id, gone) = state.withLock { state in
            let (id, sentAway) = state.places.enter(
                isLocal: channel.remoteAddress?.isLoopback ?? false,
                host: channel.remoteAddress?.ipAddress, isKnown: isKnown, at: HostClock.now())
            state.channels[id] = channel
            return (id, sentAway.flatMap { state.channels.removeValue(forKey: $0) })
        }
        gone?.close(promise: nil)
        return Visitor(id: id, door: self)
    }

    fileprivate func become(_ kind: ConnectionPlaces.Kind, _ id: ConnectionPlaces.ID) -> Bool {
        let (isAdmitted, gone) = state.withLock { state -> (Bool, (any Channel)?) in
            switch state.places.become(kind, id, at: HostClock.now()) {
            case .refused: return (false, nil)
            case .admitted(let sentAway):
                return (true, sentAway.flatMap { state.channels.removeValue(forKey: $0) })
            }
        }
        gone?.close(promise: nil)
        return isAdmitted
    }

    fileprivate func note(_ id: ConnectionPlaces.ID, isBusy: Bool) {
        state.withLock { $0.places.note(id, isBusy: isBusy, at: HostClock.now()) }
    }

    fileprivate func leave(_ id: ConnectionPlaces.ID) {
        state.withLock { state in
            state.places.leave(id)
            state.channels[id] = nil
        }
    }
}

/// One connection at a ``Doorkeeper``'s.
struct Visitor: Sendable {
    fileprivate let id: ConnectionPlaces.ID
    fileprivate let door: Doorkeeper

    /// It has said what it is.
    ///
    /// - Returns: false when there is no place for it; its connection is to be closed.
    func becomes(_ kind: ConnectionPlaces.Kind) -> Bool { door.become(kind, id) }

    /// It said something useful, or took what it had asked for.
    func isUseful(andBusy isBusy: Bool = false) { door.note(id, isBusy: isBusy) }

    func leave() { door.leave(id) }
}

extension SocketAddress {
    /// Whether the other end is on this machine.
    var isLoopback: Bool {
        guard let address = ipAddress else { return false }
        return address == "::1" || address.hasPrefix("127.") || address.hasPrefix("::ffff:127.")
    }
}
