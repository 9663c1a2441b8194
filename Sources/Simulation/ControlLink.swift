import TuttiTiming
import TuttiWire

/// One connection of a room to the leader: bytes in order, late, never lost while both live.
final class ControlLink {
    let id: Int
    let room: World.RoomLife
    let leaderLife: Int
    let leaderPlace: Int
    var isClosedByRoom = false
    var isClosedByLeader = false
    /// Latest arrival in each direction; nothing arrives earlier, so that the stream keeps order.
    var lastToLeader: TrueInstant
    var lastToRoom: TrueInstant
    var atLeader = FrameDecoder(limit: FrameDecoder.leaderLimit)
    var atRoom = FrameDecoder(limit: FrameDecoder.roomLimit)

    init(
        id: Int, room: World.RoomLife, leaderLife: Int, leaderPlace: Int, at now: TrueInstant
    ) {
        self.id = id
        self.room = room
        self.leaderLife = leaderLife
        self.leaderPlace = leaderPlace
        lastToLeader = now
        lastToRoom = now
    }

    var isOpen: Bool { !isClosedByRoom && !isClosedByLeader }
}
