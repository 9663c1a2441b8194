import Logging
import TuttiGroupControl
import TuttiTiming

/// What whoever looks at the leader's log hears of its rooms.
extension LeaderCore {
    func log(_ news: RoomNews, of room: RoomID) {
        let name = room
        let room: Logger.Metadata = ["room": "\(name)"]
        switch news {
        case .joined: logger.notice("a room joined", metadata: room)
        case .renamed(let wanted):
            logger.warning(
                "two rooms have one name; choose another --name in one of them",
                metadata: ["name": "\(wanted)", "the second is called": "\(name)"])
        case .left: logger.notice("a room left", metadata: room)
        case .lost: logger.warning("a room is not heard any more", metadata: room)
        case .heardAgain: logger.notice("a room is heard again", metadata: room)
        case .failed(let reason):
            logger.warning(
                "a room cannot play",
                metadata: room.merging(["reason": "\(reason)"]) { $1 })
        case .line(let finding) where finding.isAlarm:
            logger.error(
                "a room does not play what was committed",
                metadata: room.merging(["reason": "it \(finding.words)"]) { $1 })
        case .line: logger.notice("a room plays what was committed again", metadata: room)
        case .card(isLost: true):
            logger.warning(
                "a room has no sound card; it plays along once there is one", metadata: room)
        case .card: logger.notice("a room has its sound card again", metadata: room)
        case .missing:
            logger.warning(
                "a room does not answer; the others do not wait for it until it does",
                metadata: room)
        case .leads: logger.notice("another room leads", metadata: room)
        case .moved(let other):
            logger.notice(
                "a room goes to another group",
                metadata: room.merging(["leader": "\(other)"]) { $1 })
        case .yielded(let other):
            logger.notice(
                "another leads this session; this node follows", metadata: ["leader": "\(other)"])
        case .declined(let reason):
            logger.warning(
                "a room does not take over the lead; this one goes on leading",
                metadata: room.merging(["reason": "\(reason)"]) { $1 })
        case .refused(let reason):
            logger.warning(
                "a room is refused", metadata: room.merging(["reason": "\(reason)"]) { $1 })
        case .alarm(let isRaised, let bound):
            let bound: Logger.Metadata = ["bound_us": "\(bound.count / 1_000)"]
            logger.log(
                level: isRaised ? .warning : .notice,
                isRaised
                    ? "a room may be further off than it should"
                    : "a room is within its target again",
                metadata: room.merging(bound) { $1 })
        }
    }
}
