import Dispatch
import Glibc
import Synchronization

/// The terminal as a live screen needs it, and then as it was found: whatever ends or stops this
/// process, the next one finds a cursor and a line that echoes.
///
/// Entered while a screen is drawn, and only in the foreground: a process in the background that
/// changes the terminal is stopped by the kernel.
final class TerminalMode: Sendable {
    static let shared = TerminalMode()

    private struct State {
        /// Where the cursor is to be hidden; `nil`: no screen is drawn.
        var screen: Terminal?
        var isEntered = false
        /// It has given the terminal back and stands still in a moment.
        var isStopping = false
        /// Asked before a stop; what it returns is done afterwards.
        var pausing: (@Sendable () -> @Sendable () -> Void)?
        /// The mode of standard input as we found it; `nil`: not changed.
        var before: termios?
        /// Takes away what would stay on the screen, such as a picture.
        var leaving = ""
        /// Until when the terminal may answer what it was asked, on the machine's own clock;
        /// `nil`: it was not, or has answered.
        var answerDue: ContinuousClock.Instant?
        /// Counts the times when others may have written on the terminal.
        var interruptions = 0
    }
    private let state = Mutex(State())

    /// When this number changes, the last frame is no longer ours to draw over.
    var interruptions: Int { state.withLock { $0.interruptions } }

    /// A screen is about to be drawn here.
    func open(_ screen: Terminal) {
        // Installs the handlers, which stay to the end of the process.
        _ = Self.signals
        state.withLock { $0.screen = $0.screen ?? screen }
        refresh()
    }

    /// What is written when the screen ends or stops, however it does.
    func leaves(_ text: String) { state.withLock { $0.leaving = text } }

    /// A terminal at the other end of the world answers within this; nobody waits for it but who
    /// quits before.
    private static let patience = Duration.milliseconds(300)

    /// Asks the terminal something; the answer comes among the ``keys()``, once there is a screen.
    ///
    /// - Returns: whether it could be asked.
    func ask(_ question: String) -> Bool {
        state.withLock { state in
            // Without the mode of a screen, the answer would be seen.
            guard state.isEntered, state.before != nil, let screen = state.screen else {
                return false
            }
            state.answerDue = .now + Self.patience
            return screen.write(question)
        }
    }

    /// The answer has come.
    func wasAnswered() { state.withLock { $0.answerDue = nil } }

    /// The screen has ended.
    func close() {
        restore()
        state.withLock { $0.screen = nil }
    }

    /// Bytes that wait to be read: what a terminal says of itself fits.
    private static let mostKeys = 256

    /// What is typed, letter by letter, while a screen is drawn and standard input is a terminal.
    func keys() -> AsyncStream<UInt8> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: UInt8.self, bufferingPolicy: .bufferingNewest(Self.mostKeys))
        guard isatty(STDIN_FILENO) == 1 else { return stream }
        let reader = KeyReader()
        continuation.onTermination = { _ in reader.end() }
        DispatchQueue(label: "tutti.keys").async { [self] in
            reader.run(while: { isForeground && state.withLock { $0.isEntered } }) {
                continuation.yield($0)
            }
            continuation.finish()
        }
        return stream
    }

    /// Takes the terminal again once this process is in the foreground.
    func refresh() {
        guard isForeground else { return }
        state.withLock { state in
            guard let screen = state.screen, !state.isEntered, !state.isStopping else { return }
            state.isEntered = true
            var mode = termios()
            if isatty(STDIN_FILENO) == 1, tcgetattr(STDIN_FILENO, &mode) == 0 {
                state.before = state.before ?? mode
                mode.c_lflag &= ~tcflag_t(ICANON | ECHO)
                tcsetattr(STDIN_FILENO, TCSADRAIN, &mode)
            }
            screen.write(LiveScreen.hideCursor)
        }
    }

    /// Gives the terminal back as it was; may be called at any time, from any thread.
    func restore() {
        state.withLock { state in
            guard state.isEntered else { return }
            state.isEntered = false
            if var before = state.before.take(), isForeground {
                // An answer that is still under way must not be typed to the shell.
                if let due = state.answerDue.take() {
                    let left = max(.zero, due - .now)
                    usleep(UInt32(left / .microseconds(1)))
                    tcsetattr(STDIN_FILENO, TCSAFLUSH, &before)
                } else {
                    tcsetattr(STDIN_FILENO, TCSADRAIN, &before)
                }
            }
            state.screen?.write(state.leaving + LiveScreen.showCursor)
            state.leaving = ""
        }
    }

    /// Whether the terminal is ours to draw on.
    var isForeground: Bool {
        let group = tcgetpgrp(STDOUT_FILENO)
        return group < 0 || group == getpgrp()
    }

    private static let pauseMicroseconds: UInt32 = 50_000

    /// What a stop by Ctrl-Z is to hold: otherwise time goes on without it.
    ///
    /// - Parameter pausing: returns what is to be done when it goes on.
    func hold(_ pausing: (@Sendable () -> @Sendable () -> Void)?) {
        state.withLock { $0.pausing = pausing }
    }

    private func stop() {
        // Whoever draws just now would hide the cursor again, and the shell would go without.
        state.withLock { $0.isStopping = true }
        restore()
        let goOn = state.withLock(\.pausing)?()
        // What was asked for reaches the output within a period or two.
        if goOn != nil { usleep(Self.pauseMicroseconds) }
        // Stops as Ctrl-Z does: SIGTSTP itself is handled here and no longer stops anything.
        kill(getpid(), SIGSTOP)
        goOn?()
        state.withLock { $0.isStopping = false }
    }

    /// Takes the terminal again after a stop, in which others may have written on it.
    private func goOn() {
        state.withLock { state in
            state.interruptions += 1
            // Whoever stopped us may have done it without asking; what we found first still counts.
            state.isEntered = false
        }
        refresh()
    }

    private func quit() {
        restore()
        _exit(131)
    }

    private static let signals = SignalSources([
        (SIGTSTP, { @Sendable in shared.stop() }), (SIGCONT, { @Sendable in shared.goOn() }),
        (SIGQUIT, { @Sendable in shared.quit() }),
    ])
}

/// Handlers of signals to the end of the process.
///
/// `@unchecked Sendable`: nobody touches the sources after `init`; they are only to be kept.
private final class SignalSources: @unchecked Sendable {
    private let sources: [any DispatchSourceProtocol]

    init(_ actions: [(CInt, @Sendable () -> Void)]) {
        let queue = DispatchQueue(label: "tutti.terminal")
        sources = actions.map { number, action in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler(handler: action)
            source.activate()
            return source
        }
        // For every end that passes through exit().
        atexit { TerminalMode.shared.restore() }
    }
}

/// Reads standard input a byte at a time, on a thread that may wait.
private final class KeyReader: Sendable {
    /// Milliseconds until it notices that nobody listens any more.
    private static let look: CInt = 200

    private let isWanted = Mutex(true)

    func end() { isWanted.withLock { $0 = false } }

    /// - Parameter isOurs: whether the terminal is ours; the kernel stops a process in the
    ///   background that reads.
    func run(while isOurs: () -> Bool, key: (UInt8) -> Void) {
        while isWanted.withLock({ $0 }) {
            guard isOurs() else {
                usleep(UInt32(Self.look) * 1_000)
                continue
            }
            var poll = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
            guard Glibc.poll(&poll, 1, Self.look) > 0, isOurs() else { continue }
            var byte: UInt8 = 0
            guard read(STDIN_FILENO, &byte, 1) == 1 else { return }
            key(byte)
        }
    }
}
