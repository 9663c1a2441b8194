import Foundation
import Testing
import TuttiLinuxHost
import TuttiPlayout
import TuttiRealTime
import TuttiTiming

@testable import TuttiDeviceOutput

/// A sound server of our own with a sink that nobody hears: private folders, no bus, ended by its
/// standard input, which the kernel closes when this process ends, whatever it dies of.
final class SoundServer {
    enum Kind: String, CaseIterable, Sendable {
        case pulseAudio, pipeWire

        var pcm: String { "\(self)" }
        var folder: String { "\(TestFolder.url.path)/\(self)" }
        /// Where ALSA's plug-in finds it; a socket's name has a hundred letters at most.
        var socket: String {
            self == .pulseAudio ? "\(folder)/native" : "\(folder)/pulse/native"
        }

        fileprivate var programs: [String] {
            self == .pulseAudio
                ? ["pulseaudio"]
                : ["pipewire", "pipewire-pulse", "wireplumber", "dbus-run-session"]
        }

        /// Whether the machine has it (deploy/packages.txt).
        var isInstalled: Bool {
            let isThere = programs.allSatisfy {
                FileManager.default.isExecutableFile(atPath: "/usr/bin/\($0)")
            }
            let plugIn = "alsa-lib/libasound_module_pcm_pulse.so"
            let libraries = (try? FileManager.default.contentsOfDirectory(atPath: "/usr/lib")) ?? []
            return isThere
                && libraries.contains {
                    FileManager.default.fileExists(atPath: "/usr/lib/\($0)/\(plugIn)")
                }
        }

        fileprivate var script: String {
            switch self {
            case .pulseAudio:
                """
                pulseaudio -n --daemonize=no --exit-idle-time=-1 --use-pid-file=no \
                    --disable-shm=yes --high-priority=no --realtime=no \
                    -L 'module-null-sink sink_name=silent' \
                    -L 'module-native-protocol-unix socket=\(socket) auth-anonymous=1' &
                one=$!; cat >/dev/null; kill $one; wait
                """
            case .pipeWire:
                """
                mkdir -p config/pipewire/pipewire.conf.d
                cat >config/pipewire/pipewire.conf.d/sink.conf <<'END'
                context.objects = [ { factory = adapter args = {
                    factory.name = support.null-audio-sink node.name = silent
                    media.class = Audio/Sink audio.position = [ FL FR ] object.linger = true } } ]
                END
                pipewire & one=$!
                while [ ! -e pipewire-0 ]; do sleep 0.05; done
                wireplumber & two=$!
                pipewire-pulse & three=$!
                cat >/dev/null; kill $three $two $one; wait
                """
            }
        }
    }

    private let process = Process()
    private let life = Pipe()

    init(_ kind: Kind) throws {
        let folder = kind.folder
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700])
        let log = "\(folder)/log"
        _ = FileManager.default.createFile(atPath: log, contents: nil)
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        let bus = kind == .pipeWire ? "exec dbus-run-session -- sh -c \"$0\"" : "exec sh -c \"$0\""
        process.arguments = ["-c", bus, kind.script]
        process.currentDirectoryURL = URL(fileURLWithPath: folder)
        process.environment = [
            "PATH": "/usr/bin:/bin", "HOME": folder, "XDG_RUNTIME_DIR": folder,
            "PIPEWIRE_RUNTIME_DIR": folder, "PULSE_RUNTIME_PATH": "\(folder)/pulse",
            "PULSE_STATE_PATH": "\(folder)/state", "XDG_CONFIG_HOME": "\(folder)/config",
            "XDG_STATE_HOME": "\(folder)/state",
            "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nonexistent",
        ]
        process.standardInput = life.fileHandleForReading
        process.standardOutput = FileHandle(forWritingAtPath: log)
        process.standardError = FileHandle(forWritingAtPath: log)
        try process.run()
        try? life.fileHandleForReading.close()
    }

    deinit {
        try? life.fileHandleForWriting.close()
        process.waitUntilExit()
    }
}

@Suite(.serialized, .timeLimit(.minutes(2))) struct SoundServerTests {
    /// The null sink of PulseAudio has rendered two seconds of silence by the time that somebody
    /// comes, and takes nothing until they are over.
    private static let ownSilence = Nanoseconds.milliseconds(2_100)
    private static let limit = Nanoseconds.seconds(2)

    @Test(arguments: SoundServer.Kind.allCases)
    func `a room sounds through a sound server within two seconds`(kind: SoundServer.Kind)
        async throws
    {
        try #require(kind.isInstalled, "deploy/install-dependencies installs \(kind)")
        _ = SilentCards.folder
        let server = try SoundServer(kind)
        defer { withExtendedLifetime(server) {} }
        let thread = try await open(kind)
        defer { thread.stop() }
        let port = thread.port
        func until(_ limit: Nanoseconds, _ isMet: () -> Bool) async -> Bool {
            let end = HostClock.now() + limit
            while !isMet() {
                if HostClock.now() > end { return false }
                try? await Task.sleep(for: .milliseconds(2))
            }
            return true
        }
        // The server resamples anyhow; another stream would only have to begin once more.
        port.expectItem(sampleRate: 44_100)
        // Said in words from the first moment on.
        #expect(thread.waiting != nil)
        let voice = try #require(port.makeVoice(sampleRate: 48_000))
        let silence = [Float](repeating: 0, count: 2 * 96_000)
        _ = silence.withUnsafeBufferPointer { voice.ring.write($0) }
        let queue = Int64(port.format.bufferFrames)
        #expect(
            await until(Self.ownSilence) { port.report.framesWritten > queue },
            "nothing was taken")
        let begun = HostClock.now()
        let isKnown = await until(Self.limit) { port.report.cardDecided }
        #expect(isKnown, "not known after \((HostClock.now() - begun).seconds) s")
        let now = HostClock.now()
        voice.start(
            Line(itemFrame: 0, instant: GroupInstant(nanoseconds: now.nanoseconds)), clock: nil)
        #expect(await until(.milliseconds(500)) { voice.report.state == .playing })
        #expect(thread.waiting == nil)
        // Once it sounds it goes on.
        let restarts = port.report.restarts
        try await Task.sleep(for: .seconds(2))
        #expect(port.report.restarts == restarts)
        #expect(thread.state == .running && port.isPrepared)
        #expect(port.format.sampleRate == 48_000)
        voice.release()
    }

    private func open(_ kind: SoundServer.Kind) async throws -> OutputThread {
        let end = HostClock.now() + .seconds(10)
        while true {
            do {
                guard FileManager.default.fileExists(atPath: kind.socket) else {
                    throw OutputError(
                        operation: "connect", code: 0, device: kind.socket, reason: "not there")
                }
                return try OutputThread.open(
                    .alsa(pcm: kind.pcm), manner: OutputManner(followsItems: true),
                    realTimePriority: 0)
            } catch {
                guard HostClock.now() < end else { throw error }
                try await Task.sleep(for: .milliseconds(50))
            }
        }
    }
}
