public import Timing

extension LeaderMachine {
    /// The group as a person sees it at this instant; rooms sorted by name.
    public func status(at now: GroupInstant) -> GroupStatus {
        let asset = session.current
        let sampleRate = Double(asset?.sampleRate ?? 1)
        return GroupStatus(
            leader: configuration.name, phase: session.phase, title: asset?.title ?? "",
            index: session.index, count: session.queue.count,
            positionSeconds: session.itemFrame(at: now) / sampleRate,
            durationSeconds: asset?.durationSeconds ?? 0, rate: session.change?.rate ?? 0,
            rooms: members.sorted { $0.hello.room < $1.hello.room }.map(status))
    }

    private func status(of member: Member) -> RoomStatus {
        var report = member.report ?? RoomReport()
        if member.isLost {
            report.activity = .lost
            report.detail = "not heard for a while"
        } else if !member.hello.hasOutput {
            report.activity = .noOutput
        } else if !member.failure.isEmpty {
            report.activity = .failed
            report.detail = member.failure
        }
        return RoomStatus(
            name: member.hello.room.name, report: report,
            settings: rememberedSettings(of: member.hello.room))
    }
}
