import Testing
import TuttiTiming

@testable import TuttiRoom

@Suite struct DownloadProgressTests {
    @Test func `a large address says how far it is, a small one nothing`() {
        var now = LocalInstant(nanoseconds: 0)
        var progress = DownloadProgress("night.flac", at: now)
        #expect(progress.line(1_000, of: 2_000, at: now) == nil)
        now = now + DownloadProgress.interval
        #expect(
            progress.line(12_400_000, of: 80_000_000, at: now)
                == "loading night.flac: 12 of 80 MB")
        #expect(progress.line(13_000_000, of: 80_000_000, at: now) == nil)
        now = now + DownloadProgress.interval
        #expect(progress.line(20_000_000, of: nil, at: now) == "loading night.flac: 20 MB")
    }
}
