import TuttiChance
import TuttiGroupControl
import TuttiTiming
import TuttiTrust
import TuttiWire

// Connections: messages as bytes over a stream that delays, cuts them anywhere and keeps order.

extension World {
    /// A room wants to reach the leader. A host that is off does not even refuse.
    func connect(_ room: SimulatedRoom) {
        let place = room.life.room
        let link = ControlLink(
            id: links.count, room: room.life, leaderLife: leader?.life ?? 0,
            leaderPlace: leaderPlace, at: now)
        links.append(link)
        room.link = link.id
        guard hosts[place].isOn, hosts[leaderPlace].isOn else { return }
        let there = hosts[place].toLeader.streamArrival(of: now)
        let back = hosts[place].toRoom.streamArrival(of: there)
        link.lastToRoom = back
        if leader != nil {
            queue.schedule(.linkUp(room.life, link: link.id), at: back)
        } else {
            queue.schedule(.linkDown(link: link.id, atLeader: false), at: back)
        }
    }

    func linkUp(_ life: RoomLife, link: Int) {
        guard let room = rooms[life.room], room.life == life, room.link == link,
            links[link].isOpen
        else { return }
        step(room) { $0.receive(.connected, at: $1) }
    }

    func send(_ envelope: Envelope, on link: ControlLink) {
        var isToLeader = false
        if case .toLeader = envelope { isToLeader = true }
        guard isToLeader ? !link.isClosedByRoom : !link.isClosedByLeader else { return }
        var bytes = FrameEncoder.frame(MessageCodec.encode(envelope))
        // Streams are cut wherever they like.
        if hosts[link.room.room].scheduling.chance(0.2) {
            let cut = Int(hosts[link.room.room].scheduling.next() % UInt64(bytes.count))
            transmit(Array(bytes[..<cut]), on: link, toLeader: isToLeader)
            bytes.removeFirst(cut)
        }
        transmit(bytes, on: link, toLeader: isToLeader)
    }

    /// Time from a notice to its repetition.
    private static let noticeRepeat = Nanoseconds.milliseconds(15)

    /// A datagram and its repetition: each late, doubled or lost like any other.
    func notify(_ notice: CommitDatagram, on link: ControlLink) {
        let place = link.room.room
        guard !link.isClosedByLeader, hosts[place].isOn, hosts[link.leaderPlace].isOn else {
            return
        }
        for departure in [now, now + Self.noticeRepeat] {
            guard let leader = leader(ofLife: link.leaderLife),
                let sealed = leader.tags.seal(
                    commit: MessageCodec.encode(notice), to: link.id, at: local(leader.place))
            else { return }
            let instants = hosts[place].toRoom.arrivals(of: departure)
            for (bytes, arrival) in arrivals(of: sealed, at: instants) {
                queue.schedule(.notice(link.room, bytes), at: arrival)
            }
        }
    }

    func noticeArrived(_ room: SimulatedRoom, _ bytes: [UInt8]) {
        guard let opened = room.tags?.open(commit: bytes, at: local(room.life.room)),
            let notice = try? MessageCodec.decodeNotice(Array(opened))
        else { return }
        step(room) { $0.receive(.notified(notice), at: $1) }
    }

    private func transmit(_ bytes: [UInt8], on link: ControlLink, toLeader: Bool) {
        guard let arrival = arrival(on: link, toLeader: toLeader) else { return }
        queue.schedule(.segment(link: link.id, toLeader: toLeader, bytes), at: arrival)
    }

    /// When what is sent now gets through, behind all that was sent before.
    private func arrival(on link: ControlLink, toLeader: Bool) -> TrueInstant? {
        let place = link.room.room
        guard hosts[place].isOn, hosts[link.leaderPlace].isOn else { return nil }
        if toLeader {
            link.lastToLeader = max(
                link.lastToLeader, hosts[place].toLeader.streamArrival(of: now))
            return link.lastToLeader
        }
        link.lastToRoom = max(link.lastToRoom, hosts[place].toRoom.streamArrival(of: now))
        return link.lastToRoom
    }

    func arrive(_ bytes: [UInt8], on id: Int, toLeader: Bool) {
        let link = links[id]
        do throws(WireError) {
            if toLeader {
                guard let leader = leader(ofLife: link.leaderLife) else { return }
                for message in try link.atLeader.feed(bytes) where !link.isClosedByLeader {
                    guard case .toLeader(let said) = try MessageCodec.decode(message) else {
                        continue
                    }
                    step(leader) { $0.receive(.received(said, from: id), at: $1) }
                }
            } else {
                for message in try link.atRoom.feed(bytes) {
                    guard case .toRoom(let said) = try MessageCodec.decode(message),
                        let room = rooms[link.room.room], room.life == link.room, room.link == id
                    else { continue }
                    step(room) { $0.receive(.received(said), at: $1) }
                }
            }
        } catch {
            preconditionFailure("our own bytes cannot be read: \(error)")
        }
    }

    /// One side ends the connection; the other learns of it behind all that was said.
    func close(_ link: ControlLink, fromLeader: Bool) {
        guard fromLeader ? !link.isClosedByLeader : !link.isClosedByRoom else { return }
        if fromLeader {
            link.isClosedByLeader = true
            leader(ofLife: link.leaderLife)?.tags.end(link.id)
        } else {
            link.isClosedByRoom = true
        }
        guard let arrival = arrival(on: link, toLeader: !fromLeader) else { return }
        queue.schedule(.linkDown(link: link.id, atLeader: !fromLeader), at: arrival)
    }

    func linkDown(_ id: Int, atLeader: Bool) {
        let link = links[id]
        if atLeader {
            guard let leader = leader(ofLife: link.leaderLife), !link.isClosedByLeader else {
                return
            }
            link.isClosedByLeader = true
            leader.tags.end(id)
            step(leader) { $0.receive(.closed(id), at: $1) }
        } else {
            link.isClosedByRoom = true
            guard let room = rooms[link.room.room], room.life == link.room, room.link == id else {
                return
            }
            room.link = nil
            step(room) { $0.receive(.closed(reason: "connection closed"), at: $1) }
        }
    }
}
