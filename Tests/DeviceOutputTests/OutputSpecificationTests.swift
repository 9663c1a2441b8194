import Testing
import TuttiDeviceOutput

@Suite struct OutputSpecificationTests {
    static let readings: [(String, OutputSpecification)] = [
        ("none", .none),
        ("alsa", .alsa(pcm: "default")),
        ("alsa:hw:1,0", .alsa(pcm: "hw:1,0")),
        ("alsa:plug:'dmix:0'", .alsa(pcm: "plug:'dmix:0'")),
        ("alsa:sysdefault:CARD=Loud=1", .alsa(pcm: "sysdefault:CARD=Loud=1")),
        ("file:/tmp/a.wav", .file(path: "/tmp/a.wav")),
        ("file:odd:name,x=1.wav", .file(path: "odd:name,x=1.wav")),
        ("virtual", .virtual(VirtualCardOptions())),
        ("virtual:ppm=80", .virtual(VirtualCardOptions(partsPerMillion: 80))),
        ("virtual:ppm=-1000", .virtual(VirtualCardOptions(partsPerMillion: -1000))),
        (
            "virtual:ppm=-0.25,wander=0.3,seed=18446744073709551615,record=/tmp/x:y=z,"
                + "rate=44100,channels=8",
            .virtual(
                VirtualCardOptions(
                    partsPerMillion: -0.25, wander: 0.3, seed: .max, record: "/tmp/x:y=z",
                    sampleRate: 44_100, channelCount: 8))
        ),
    ]

    @Test(arguments: readings)
    func `a text names an output, and the output's own text names it again`(
        text: String, meaning: OutputSpecification
    ) throws {
        let read = try OutputSpecification(parsing: text)
        #expect(read == meaning)
        #expect(try OutputSpecification(parsing: read.description) == read)
    }

    /// What is wrong, and a word that the sentence about it must contain.
    static let mistakes: [(String, String)] = [
        ("", "alsa[:PCM]"), ("ALSA", "alsa[:PCM]"), (":", "alsa[:PCM]"),
        ("hw:1", "alsa: before it"), ("/a.wav", "file: before it"),
        ("alsa:", "empty"), ("alsa:a\0b", "zero byte"),
        ("file", "path"), ("file:", "path"), ("file:a\0b", "path"),
        ("none:", "nothing"), ("none:x", "nothing"),
        ("virtual:", "ppm, wander"), ("virtual:ppm=1,", "ppm, wander"),
        ("virtual:speed=1", "speed"), ("virtual:PPM=1", "PPM"), ("virtual:ppm", "needs a value"),
        ("virtual:ppm=", "needs a value"), ("virtual:ppm=1,ppm=1", "twice"),
        ("virtual:ppm=1000.1", "1000"), ("virtual:ppm=-1001", "1000"), ("virtual:ppm=nan", "1000"),
        ("virtual:ppm=inf", "1000"), ("virtual:ppm=fast", "1000"), ("virtual:ppm= 1", "1000"),
        ("virtual:wander=-0.1", "100"), ("virtual:wander=101", "100"),
        ("virtual:seed=-1", "whole"), ("virtual:seed=1.5", "whole"),
        ("virtual:seed=18446744073709551616", "whole"),
        ("virtual:rate=7999", "8000"), ("virtual:rate=384001", "384000"),
        ("virtual:rate=48k", "8000"),
        ("virtual:channels=0", "1 to 8"), ("virtual:channels=9", "1 to 8"),
        ("virtual:record=/a,b", "b"),
    ]

    @Test(arguments: mistakes)
    func `a text that names nothing is refused with what is wrong and what is allowed`(
        text: String, word: String
    ) {
        let error = #expect(throws: OutputSpecificationError.self) {
            try OutputSpecification(parsing: text)
        }
        #expect(error?.text == text)
        #expect(error?.description.contains(word) == true, "\(error?.description ?? "")")
    }
}
