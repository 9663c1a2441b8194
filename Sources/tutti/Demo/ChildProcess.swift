import Glibc

/// A process that ends with us, whatever happens to us.
///
/// The child's standard input is a pipe that we never write to. When we end, even by SIGKILL, the
/// kernel closes our end and the child reads the end of the file. Children get a process group of
/// their own, so that Ctrl-C reaches them through us, in order.
final class ChildProcess {
    let pid: pid_t
    private var lifeline: Int32?
    private(set) var status: Int32?

    /// - Parameters:
    ///   - arguments: the program's path first; it is looked up in PATH when it has no slash.
    ///   - log: file that takes stdout and stderr; replaced.
    init(_ arguments: [String], log: String) throws(CommandError) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            throw CommandError(
                "\(arguments[0]): no pipe for it (\(String(cString: strerror(errno))))")
        }
        // A sibling that held our end too would keep this child alive.
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO)
        posix_spawn_file_actions_addopen(
            &actions, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
        posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        // We ignore some signals; a child that inherited that could not be stopped.
        var defaults = sigset_t()
        sigemptyset(&defaults)
        for number in [SIGINT, SIGTERM, SIGHUP, SIGPIPE] { sigaddset(&defaults, number) }
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF))
        var words = arguments.map { strdup($0) }
        words.append(nil)
        var pid = pid_t()
        let code = posix_spawnp(&pid, arguments[0], &actions, &attributes, words, environ)
        for word in words { free(word) }
        posix_spawn_file_actions_destroy(&actions)
        posix_spawnattr_destroy(&attributes)
        close(ends[0])
        guard code == 0 else {
            close(ends[1])
            throw CommandError("\(arguments[0]) does not start: \(String(cString: strerror(code)))")
        }
        self.pid = pid
        lifeline = ends[1]
    }

    deinit { kill() }

    /// Whether it still runs; reaps it when it does not.
    var isRunning: Bool {
        guard status == nil else { return false }
        var code: Int32 = 0
        if waitpid(pid, &code, WNOHANG) == pid { status = code }
        return status == nil
    }

    /// Asks it to end.
    func terminate() { signal(SIGTERM) }

    func signal(_ number: Int32) { if isRunning { Glibc.kill(pid, number) } }

    /// Lets go of it, as our own end would: the end of its standard input.
    func release() {
        if let lifeline { close(lifeline) }
        lifeline = nil
    }

    /// Ends it and what it started (its process group), and waits for that.
    func kill() {
        release()
        guard isRunning else { return }
        Glibc.kill(-pid, SIGKILL)
        var code: Int32 = 0
        while waitpid(pid, &code, 0) == -1 && errno == EINTR {}
        status = code
    }

    /// Waits until all have ended, at most for `limit`; then ends the rest by force.
    static func reap(_ children: [ChildProcess], limit: Duration) async {
        let deadline = ContinuousClock.now + limit
        // The caller may be cancelled already: then there is no sleeping, only a last look.
        while children.contains(where: \.isRunning), ContinuousClock.now < deadline,
            (try? await Task.sleep(for: .milliseconds(20))) != nil
        {}
        while children.contains(where: \.isRunning), ContinuousClock.now < deadline {
            usleep(20_000)
        }
        for child in children { child.kill() }
    }

    /// How it ended, for people; `nil` while it runs.
    var ending: String? {
        guard !isRunning, let status else { return nil }
        let signal = status & 0x7F
        return signal == 0 ? "exit status \(status >> 8 & 0xFF)" : "signal \(signal)"
    }
}
