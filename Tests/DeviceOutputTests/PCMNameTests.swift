import Testing

@testable import TuttiDeviceOutput

@Suite struct PCMNameTests {
    private static let defined: Set = [
        "hw", "plughw", "plug", "default", "sysdefault", "hdmi", "pulse", "my_card",
    ]

    private func isPossible(_ text: String) -> Bool {
        PCMName(text).isPossible(isDefined: Self.defined.contains)
    }

    @Test(arguments: [
        "hw:9", "hw:9,0", "hw:0,7", "hw:Foo", "hw:CARD=Foo,DEV=3", "hw", "plughw:31", "default",
        "sysdefault:CARD=USB-2_0", "hdmi:CARD=PCH,DEV=0", "pulse", "my_card", "plug:'hw:9'",
        "plug:hw:Foo", "plug:SLAVE='hw:1,0'", "hw:/dev/snd/controlC0",
    ])
    func `what a card may be called may come`(text: String) { #expect(isPossible(text)) }

    @Test(arguments: [
        "nonsense", "nonsense:1", "", "hw:99", "hw:400", "hw:a b", "hw:1,2,3,4", "hw:FOO=2",
        "hw:1,x", "hw:ThisNameIsFarTooLongForACard", "plug:nonsense", "plugg:'hw:0'",
        "plughw:Gerät",
    ])
    func `what no card can be called will not`(text: String) { #expect(!isPossible(text)) }

    @Test func `the card that a name leads to is the one that is missed`() {
        func lacks(_ text: String) -> Bool { PCMName(text).lacksCard { $0 == "PCH" || $0 == "0" } }
        for text in ["hdmi:CARD=USB,DEV=0", "hw:1", "plug:'hw:1'", "front:CARD=USB"] {
            #expect(lacks(text), "\(text)")
        }
        for text in ["hdmi:CARD=PCH,DEV=7", "hw:0", "default", "pulse", "plug:'hw:PCH'"] {
            #expect(!lacks(text), "\(text)")
        }
    }

    /// An owner's names for cards, as an asound.conf has them.
    @Test func `a card is missed also behind a name of its owner's`() throws {
        let configuration = try #require(
            ALSADefinition.parsed(
                """
                pcm.kitchen { type hw card Foo }
                pcm.bath { type plug slave.pcm "hw:Foo,0" }
                pcm.attic { type plug slave { pcm { type hw card 1 } rate 48000 } }
                pcm.hall "bath"
                pcm.cellar { type asym playback.pcm "hall" capture.pcm "hw:PCH" }
                pcm_slave.far { pcm "hw:Foo" }
                pcm.loft { type dmix ipc_key 7 slave far }
                pcm.desk { type hw card PCH }
                pcm.door { type plug slave.pcm "desk" }
                pcm.one { type asym playback.pcm "desk" capture.pcm "hw:Foo" }
                pcm.left "right"
                pcm.right { type plug slave.pcm "left" }
                pcm.any { @args [ CARD ] @args.CARD { type string } type hw card $CARD }
                """))
        func defined(_ key: String) -> ALSADefinition? {
            key.split(separator: ".").reduce(configuration) { $0?[String($1)] }
        }
        func lacks(_ text: String) -> Bool {
            PCMName(text).lacksCard(isPresent: { $0 == "PCH" || $0 == "0" }, defined: defined)
        }
        for text in ["kitchen", "bath", "attic", "hall", "cellar", "loft", "plug:'kitchen'"] {
            #expect(lacks(text), "\(text)")
        }
        for text in ["desk", "door", "one", "left", "right", "any", "nothing", "plug:door"] {
            #expect(!lacks(text), "\(text)")
        }
    }
}
