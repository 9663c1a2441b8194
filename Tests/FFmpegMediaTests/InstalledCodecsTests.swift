import Testing

@testable import TuttiFFmpegMedia

@Suite struct InstalledCodecsTests {
    @Test func `the usual formats are there, and one that nobody has is missed`() {
        #expect(InstalledCodecs.missing().isEmpty)
        let odd = [("Phonograph", "wax_cylinder", "wav"), ("Shellac", "pcm_s16le", "shellac78")]
        #expect(InstalledCodecs.missing(of: odd) == ["Phonograph", "Shellac"])
        #expect(InstalledCodecs.readsHTTP())
        #expect(InstalledCodecs.version.split(separator: ".").count == 3)
    }
}
