import GroupControl
import Testing
import Timing

@testable import tutti

@Suite struct EffectTextTests {
    @Test func `a seek says where and when`() {
        let effect = CommandEffect(
            phase: .playing, title: "Arabesque", instant: GroupInstant(nanoseconds: 1),
            delay: .milliseconds(243), positionSeconds: 83.5)
        #expect(EffectText(effect).lines == ["plays \"Arabesque\" from 1:23.5 in 0.25 s"])
    }

    @Test func `what was so before has no delay`() {
        let effect = CommandEffect(
            phase: .paused, title: "Arabesque", instant: GroupInstant(nanoseconds: 1),
            delay: .seconds(-4), positionSeconds: 3)
        #expect(EffectText(effect).lines == ["paused at 0:03.0"])
    }

    @Test func `what the rooms still prepare is no promise`() {
        for phase in [SessionPhase.preparing, .playing] {
            let lines = EffectText(CommandEffect(phase: phase, title: "Arabesque")).lines
            #expect(lines.count == 1 && lines[0].hasPrefix("prepares \"Arabesque\""))
        }
    }

    @Test func `loudness is a line for each room`() {
        let effect = CommandEffect(
            phase: .playing, title: "Arabesque",
            rooms: [
                CommandEffect.Loudness(room: "attic", volume: 40, isMuted: false),
                CommandEffect.Loudness(room: "bath\u{1B}", volume: 7, isMuted: true),
            ])
        let lines = EffectText(effect).lines
        #expect(lines[0] == "attic: 40 %")
        #expect(lines[1].hasSuffix(": muted, 7 %") && !lines[1].contains("\u{1B}"))
    }
}
