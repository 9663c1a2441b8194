import Glibc
import Testing
import TuttiLinuxHost

@Suite struct OpenFilesTests {
    private var limit: rlimit {
        var limit = rlimit()
        getrlimit(Int32(RLIMIT_NOFILE.rawValue), &limit)
        return limit
    }

    @Test func `the limit is raised as far as the hard one allows, and never lowered`() {
        let before = limit
        OpenFiles.allow(1)
        #expect(limit.rlim_cur == before.rlim_cur)
        let wanted = before.rlim_cur == .max ? before.rlim_cur : before.rlim_cur + 1
        OpenFiles.allow(Int(clamping: wanted))
        #expect(limit.rlim_cur == min(wanted, before.rlim_max))
        OpenFiles.allow(.max)
        #expect(limit.rlim_cur == min(before.rlim_max, rlim_t(Int.max)))
        #expect(limit.rlim_max == before.rlim_max)
        // Others of this process need no more than they had.
        var restored = before
        setrlimit(Int32(RLIMIT_NOFILE.rawValue), &restored)
    }
}
