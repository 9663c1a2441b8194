import CTuttiLinux
import CTuttiTap
import Foundation
import Glibc
import Synchronization
import TuttiChance
import TuttiLinuxHost
import TuttiTiming

@testable import TuttiSimulation
@testable import tutti

/// What lies between the hosts of a house: a path of the simulation, under real packets.
///
/// Each host hangs on a tap. A thread carries the frames from one to another, as late as the path's
/// model says, and loses what the model loses; frames from one host to another keep their order,
/// as in a queue. The first host is the leader's: one direction of the path leads to it, the other
/// from it, and from room to room both. What it sends to all who joined a group is one frame that
/// all of them hear at once, as on the air, or, as access points make it, a packet for each.
final class EmulatedNetwork {
    enum Multicast: Sendable { case together, apart }

    /// Why there can be no house with one here, in one sentence; `nil` where there can.
    static let obstacle: String? =
        House.obstacle
        ?? {
            let path = ClockPath.named("wired")
            do { _ = try House(hosts: 1, path: path) { _ in "" } } catch { return "\(error)" }
            return nil
        }()

    /// What befalls the whole path.
    enum Episode {
        case none
        /// Every frame that is sent is lost.
        case outage
        /// A queue makes frames to all hosts but the first so late; it drains in order.
        case queue(Nanoseconds)
        /// Whoever asks all for an address, but for the first host, is not heard (RFC 826).
        case lostQuestions
        /// Somebody in between repeats every datagram later, as it was and with another byte in it.
        case stranger
        /// A member of another household says to the first two hosts what the next two say to each
        /// other; see ``NeighbourHousehold``.
        case neighbours
    }
    private final class Shared: Sendable {
        let episode = Mutex(Episode.none)
    }

    /// The thread ends when this is closed.
    private let lifeline: Int32
    private let shared = Shared()

    /// - Parameter hosts: processes in the network namespaces; each of these gets an `eth0`.
    init(
        _ path: ClockPath, hosts: [pid_t], multicast: Multicast = .together, seed: UInt64 = 1
    ) throws {
        var ends: [Int32] = [-1, -1]
        // A child of another house that held our end would keep the thread alive.
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else {
            throw CommandError("no pair of sockets for a network")
        }
        lifeline = ends[1]
        var taps: [Int32] = []
        for host in hosts {
            let tap = openTap(host, "eth0")
            guard tap >= 0 else {
                let reason = String(cString: strerror(errno))
                for descriptor in taps + [ends[0]] { close(descriptor) }
                throw CommandError("no tap device: \(reason)")
            }
            taps.append(tap)
        }
        let ending = ends[0]
        Thread { [taps, shared] in
            var carrier = FrameCarrier(path, taps: taps, multicast: multicast, seed: seed)
            carrier.run(until: ending) { shared.episode.withLock(\.self) }
            for descriptor in taps + [ending] { close(descriptor) }
        }.start()
    }

    deinit { close(lifeline) }

    /// What befalls the path from now on.
    func begin(_ episode: Episode) { shared.episode.withLock { $0 = episode } }
}

/// Frames on their way.
private struct FrameCarrier {
    private let taps: [Int32]
    private let start = HostClock.now()
    private let multicast: EmulatedNetwork.Multicast
    /// What a frame of the leader's for a group meets; once, whoever hears it.
    private var air: NetworkPath
    /// By sender and receiver, and apart from those the leader's frames for groups.
    private var lanes: [[Int]: Lane] = [:]
    /// What a stranger sends when it is due, from one to another.
    private var waiting: [(due: TrueInstant, ends: [Int], bytes: [UInt8])] = []
    private var forging = 0
    private var neighbours = NeighbourHousehold()
    /// Where an address was last seen.
    private var hosts: [[UInt8]: Int] = [:]

    /// From one host to another.
    private struct Lane {
        var hops: [NetworkPath]
        var frames: [(due: TrueInstant, bytes: [UInt8])] = []
        var latest = TrueInstant(nanoseconds: 0)

        mutating func take(_ frame: [UInt8], at now: TrueInstant, queue: Nanoseconds) {
            var arrivals = [now + queue]
            for hop in hops.indices { arrivals = arrivals.flatMap { hops[hop].arrivals(of: $0) } }
            take(frame, arrivingAt: arrivals)
        }

        mutating func take(_ frame: [UInt8], arrivingAt arrivals: [TrueInstant]) {
            for arrival in arrivals {
                latest = max(latest, arrival)
                frames.append((latest, frame))
            }
        }
    }

    init(
        _ path: ClockPath, taps: [Int32], multicast: EmulatedNetwork.Multicast, seed: UInt64
    ) {
        self.taps = taps
        self.multicast = multicast
        let network = path.network(seed: seed)
        air = NetworkPath(network.toRoom, random: SplitMix64(seed: seed, "air"))
        for sender in taps.indices {
            for receiver in taps.indices where receiver != sender {
                var shapes: [PathShape] = []
                if sender != 0 { shapes.append(network.toLeader) }
                if receiver != 0 { shapes.append(network.toRoom) }
                let hops = shapes.enumerated().map { hop, shape in
                    NetworkPath(
                        shape, random: SplitMix64(seed: seed, "lane", sender, receiver, hop))
                }
                lanes[[sender, receiver]] = Lane(hops: hops)
            }
        }
        for receiver in taps.indices.dropFirst() {
            lanes[Self.groupLane(to: receiver)] = Lane(hops: [])
        }
    }

    private static func groupLane(to receiver: Int) -> [Int] { [0, receiver, 1] }

    private static let longestWait = Nanoseconds.milliseconds(100)

    /// Carries frames until the other end of `ending` is closed.
    mutating func run(until ending: Int32, episode: () -> EmulatedNetwork.Episode) {
        let watched = taps + [ending]
        while true {
            var polls = watched.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            let due = (lanes.values.compactMap { $0.frames.first?.due } + waiting.map(\.due)).min()
            let wait = due.map { max(.zero, min($0 - now, Self.longestWait)) } ?? Self.longestWait
            var limit = timespec(tv_sec: 0, tv_nsec: Int(wait.count))
            tutti_poll(&polls, UInt(polls.count), &limit)
            if polls[taps.count].revents != 0 { return }
            for tap in taps.indices where polls[tap].revents != 0 { receive(from: tap, episode()) }
            deliver()
        }
    }

    private var now: TrueInstant { TrueInstant(nanoseconds: (HostClock.now() - start).count) }

    private mutating func receive(from sender: Int, _ episode: EmulatedNetwork.Episode) {
        // An Ethernet frame: six bytes where to, six where from.
        var frame = [UInt8](repeating: 0, count: 2_048)
        let count = read(taps[sender], &frame, frame.count)
        guard count >= 14 else { return }
        frame.removeLast(frame.count - count)
        hosts[Array(frame[6..<12])] = sender
        // An address that nobody has been heard from, and a group's, are everywhere.
        let known = hosts[Array(frame[0..<6])]
        let instant = now
        neighbours.see(frame, from: sender, to: known)
        if sender == 0, multicast == .together, isForGroup(frame), case .none = episode {
            let arrivals = air.arrivals(of: instant)
            for receiver in taps.indices.dropFirst() {
                lanes[Self.groupLane(to: receiver)]?.take(frame, arrivingAt: arrivals)
            }
            return
        }
        for receiver in taps.indices where receiver != sender && receiver == known ?? receiver {
            switch episode {
            case .none: lanes[[sender, receiver]]?.take(frame, at: instant, queue: .zero)
            case .queue(let wait):
                lanes[[sender, receiver]]?.take(
                    frame, at: instant, queue: receiver == 0 ? .zero : wait)
            case .outage: break
            case .stranger:
                lanes[[sender, receiver]]?.take(frame, at: instant, queue: .zero)
                for forged in forgeries(of: frame) {
                    forging += 1
                    let wait = Nanoseconds.milliseconds([1, 20, 300, 900][forging % 4])
                    waiting.append((instant + wait, [sender, receiver], forged))
                }
            case .neighbours:
                lanes[[sender, receiver]]?.take(frame, at: instant, queue: .zero)
                guard let forged = neighbours.forgeries(of: frame, from: sender, to: receiver)
                else { break }
                for frame in forged.frames {
                    lanes[forged.ends]?.take(frame, at: instant, queue: .zero)
                }
            case .lostQuestions:
                if sender == 0 || known != nil || !isQuestion(frame) {
                    lanes[[sender, receiver]]?.take(frame, at: instant, queue: .zero)
                }
            }
        }
    }

    /// What somebody who has seen a datagram of IPv4 can send.
    private func forgeries(of frame: [UInt8]) -> [[UInt8]] {
        guard let start = Datagram.start(in: frame) else { return [] }
        var mutated = frame
        mutated[start + 8 + forging % (frame.count - start - 8)] ^= UInt8(1 + forging % 255)
        // Without a checksum it is taken as it is.
        mutated[start + 6] = 0
        mutated[start + 7] = 0
        return [frame, mutated]
    }

    /// Of IPv4, by its address (RFC 1112).
    private func isForGroup(_ frame: [UInt8]) -> Bool { frame[0..<3] == [0x01, 0x00, 0x5E] }

    /// Of the address resolution protocol, by its Ethernet type.
    private func isQuestion(_ frame: [UInt8]) -> Bool { frame[12..<14] == [0x08, 0x06] }

    private mutating func deliver() {
        // Beside the lanes, whose frames keep their order.
        let present = now
        for forged in waiting where forged.due <= present {
            _ = write(taps[forged.ends[1]], forged.bytes, forged.bytes.count)
        }
        waiting.removeAll { $0.due <= present }
        for (ends, var lane) in lanes where !lane.frames.isEmpty {
            let ready = lane.frames.prefix { $0.due <= now }
            // A tap whose queue is full loses frames, as an adapter does.
            for frame in ready { _ = write(taps[ends[1]], frame.bytes, frame.bytes.count) }
            lane.frames.removeFirst(ready.count)
            lanes[ends] = lane
        }
    }
}
