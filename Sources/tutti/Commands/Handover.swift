import ArgumentParser
import TuttiGroupControl

/// `tutti handover`.
struct Handover: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Let another room lead the group; what plays goes on.",
        discussion: """
            The room's node leads from now on, with the queue, the volumes and the group's clock; \
            the leader until now follows it, and goes on serving the files that only it has, so it \
            must keep running. Nothing of it is heard. Later commands find the new leader by Avahi, \
            or by --leader.

            What of the queue is still to be read the leader until now goes on reading. Refused while \
            a start is being prepared.

            Example:
              tutti handover bedroom
            """)

    @Argument(
        help: ArgumentHelp("The room that shall lead.", valueName: "room"),
        completion: .custom(Completions.rooms))
    var room: String

    @OptionGroup var options: ControlOptions

    func validate() throws { _ = try roomArgument(room) }

    func run() async throws {
        let room = try roomArgument(room)
        try await options.perform(.handOver(to: room), saying: "\"\(room)\" leads the group now")
    }
}
