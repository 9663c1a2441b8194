public import TuttiTiming

/// The leader's half of time exchange, whole: which requests are answered, when each answer leaves,
/// what it says, when a beacon goes with it, and whether the thread must wake for what arrives.
///
/// The shell hands in packets and stamps, and asks for what is due. It tells the time at each call;
/// the machine has no clock, and the same value runs in the simulation.
///
/// - ``receive(_:_:epoch:at:)``: a request has arrived. A beacon that comes back leaves at once.
/// - ``advance(to:packet:clock:)``: gives the answers that are due, one at each call, because an
///   answer says when it leaves and must be told right before.
/// - ``nextDeadline``: when the next one is.
///
/// Inlinable for the reason given at ``ReplyQueue``.
public struct ClockLeader<Peer: Hashable & Sendable, Route: Sendable>: Sendable {
    /// How a request came.
    public struct Arrival: Sendable {
        /// Who asks: packets of one peer are answered at distances from each other.
        public var peer: Peer
        /// The way back.
        public var route: Route
        /// When it arrived, by the local clock.
        public var instant: LocalInstant
        /// Whether the kernel says so, or the program.
        public var isKernelStamp: Bool
        /// Packets of different media are different packets; see
        /// ``ReferenceBroadcastJudge/receive(_:of:from:medium:at:)``.
        public var medium: Int

        /// A request that came at `instant` by `route`; `medium` is 0 where there is only one.
        @inlinable
        public init(
            peer: Peer, route: Route, instant: LocalInstant, isKernelStamp: Bool, medium: Int = 0
        ) {
            self.peer = peer
            self.route = route
            self.instant = instant
            self.isKernelStamp = isKernelStamp
            self.medium = medium
        }
    }

    /// What became of a request.
    public struct Receipt: Sendable {
        /// When its answer leaves, by the local clock; `nil`: it gets none, as a copy, or as one
        /// too many.
        public var due: LocalInstant?
        /// To be sent along the request's route at once, where one is due: the thread is awake
        /// anyway.
        public var beacon: ReferenceBeacon?

        /// What is to be done after an arrival: come back at `due`, send `beacon`.
        @inlinable
        public init(due: LocalInstant? = nil, beacon: ReferenceBeacon? = nil) {
            self.due = due
            self.beacon = beacon
        }
    }

    /// An answer that leaves now.
    public struct Answer: Sendable {
        /// The packet to send, with its stamps.
        public var reply: TimeReply
        /// What it answers.
        public var request: TimeRequest
        /// To whom it goes.
        public var peer: Peer
        /// The way by which the request came.
        public var route: Route

        /// An answer to `request`, to be sent to `peer` by `route`.
        @inlinable
        public init(reply: TimeReply, to request: TimeRequest, peer: Peer, route: Route) {
            self.reply = reply
            self.request = request
            self.peer = peer
            self.route = route
        }
    }

    @usableFromInline struct Waiting: Sendable {
        @usableFromInline var request: TimeRequest
        @usableFromInline var arrival: Arrival
        @inlinable init(request: TimeRequest, arrival: Arrival) {
            self.request = request
            self.arrival = arrival
        }
    }

    @usableFromInline var server = ClockServer<Peer>()
    @usableFromInline var queue = ReplyQueue<Waiting>()
    @usableFromInline var wakePolicy: WakePolicy
    /// `nil`: no broadcasts are sent.
    @usableFromInline var judge: ReferenceBroadcastJudge<Peer>?

    /// - Parameters:
    ///   - start: local time now.
    ///   - broadcasts: whether rooms that ask for them get reference broadcasts.
    @inlinable
    public init(start: LocalInstant, broadcasts: Bool) {
        wakePolicy = WakePolicy(start: start)
        judge = broadcasts ? ReferenceBroadcastJudge() : nil
    }

    /// A request has arrived; its answer is kept until it is due.
    ///
    /// - Parameters:
    ///   - epoch: of the group clock.
    ///   - now: local time of this call.
    @inlinable
    public mutating func receive(
        _ request: TimeRequest, _ arrival: Arrival, epoch: UInt64, at now: LocalInstant
    ) -> Receipt {
        wakePolicy.take(request, isKernelStamp: arrival.isKernelStamp, at: arrival.instant)
        guard !queue.isFull,
            let due = server.admit(
                request, from: arrival.peer, arrival: arrival.instant, at: now)
        else { return Receipt() }
        queue.insert(Waiting(request: request, arrival: arrival), until: due)
        guard request.reference != nil else { return Receipt(due: due) }
        judge?.receive(
            request.reference, of: request, from: arrival.peer, medium: arrival.medium,
            at: arrival.instant)
        return Receipt(
            due: due, beacon: judge?.beacon(on: arrival.peer, epoch: epoch, at: arrival.instant))
    }

    /// The next answer whose time has come; to be called until there is none.
    ///
    /// - Parameters:
    ///   - now: local time, right before the answer is sent.
    ///   - packet: the number by which ``transmitted(packet:at:)`` will name it.
    ///   - clock: the group clock. Nobody is answered while its quality is `none`: what was due
    ///     then is forgotten, and its sender asks again.
    @inlinable
    public mutating func advance(
        to now: LocalInstant, packet: UInt32, clock: SharedClock
    ) -> Answer? {
        while let waiting = queue.next(dueAt: now) {
            let arrival = waiting.arrival
            guard
                var reply = server.reply(
                    to: waiting.request, from: arrival.peer, arrival: arrival.instant,
                    isKernelStamp: arrival.isKernelStamp, departure: now, packet: packet,
                    clock: clock)
            else { continue }
            if waiting.request.reference != nil {
                reply.reference =
                    judge?.verdict(for: arrival.peer, on: waiting.request)
                    ?? ReferenceVerdict(state: .off)
            }
            return Answer(
                reply: reply, to: waiting.request, peer: arrival.peer, route: arrival.route)
        }
        return nil
    }

    /// When the next answer is due.
    @inlinable public var nextDeadline: LocalInstant? { queue.nextDeadline }

    /// Whether what arrives after `now` may lie, stamped by the kernel, until ``nextDeadline``.
    @inlinable
    public func mayLie(at now: LocalInstant) -> Bool {
        wakePolicy.mayLie(until: queue.nextDeadline, at: now)
    }

    /// The kernel's stamp of the answer that was sent as `packet`.
    @inlinable
    public mutating func transmitted(packet: UInt32, at instant: LocalInstant) {
        server.transmitted(packet: packet, at: instant)
    }

    /// Packet numbers start over, or an answer was not sent; see ``ClockServer/forgetPending()``.
    @inlinable public mutating func forgetPending() { server.forgetPending() }

    /// Answers given so far.
    @inlinable public var answered: Int { server.answered }
}
