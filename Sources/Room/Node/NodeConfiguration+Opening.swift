import Logging
import Synchronization
import TuttiDeviceOutput
import TuttiFFmpegMedia
import TuttiGroupControl
import TuttiLinuxHost
import TuttiPlayout

/// Turns configuration into open things, with errors that a person can act on.
extension NodeConfiguration {
    func openCache() -> MediaCache {
        MediaCache(
            folder: cacheFolder, limit: cacheLimitBytes,
            trust: MediaTrust(insecureHosts: insecureHosts)
        ) { [logger] warning in
            logger.warning("\(warning)")
        }
    }

    /// With the key and the household that the state folder has.
    ///
    /// - Throws: `RoomError`, code `badState`.
    func withCredentials() throws(RoomError) -> NodeConfiguration {
        var configuration = self
        configuration.credentials =
            isOpen ? .open : try .household(in: stateFolder, name: name, logger: logger)
        return configuration
    }

    /// The crystal of this node, by its number in the state folder.
    func crystal() -> CrystalID {
        NodeIdentity.crystal(in: stateFolder.map(StateFolder.init(path:)), logger: logger)
    }

    /// What the owner says of this room, and what it remembers.
    func memberOptions(_ name: RoomID, isLeaders: Bool = false) -> Member.Options {
        let folder = stateFolder.map(StateFolder.init(path:))
        let store = folder.map {
            RoomStore(
                folder: $0, room: name, ownBoot: NodeIdentity.boot(),
                logger: logger)
        }
        var options = Member.Options(
            latencyOffset: latencyOffset, outputName: "\(output)", target: syncTarget,
            store: store, isLeaders: isLeaders,
            identity: RoomIdentity(room: name, in: folder, logger: logger))
        options.loudestLevel = Double(volumeLimit) / 100
        options.leadIn = leadIn
        options.role = role
        return options
    }

    /// A card that is not there yet is waited for like one that was lost: said once, and the node goes
    /// on without it.
    ///
    /// - Parameter sources: what is to be played: never written over.
    /// - Returns: `nil` for a node without sound.
    /// - Throws: `RoomError` with code `noOutput` for what no card can be called, and for a file that
    ///   cannot be written.
    func openOutput(sparing sources: [String] = []) throws(RoomError) -> OutputThread? {
        guard output != .none else { return nil }
        try OutputFiles(output).spare(sources: sources, cacheFolder: cacheFolder)
        let logger = logger
        let hasPlayed = Mutex(false)
        do {
            let thread = try OutputThread.open(
                output, sampleRate: sampleRate, bufferMilliseconds: bufferMilliseconds,
                manner: outputManner, realTimePriority: realTimePriority,
                overwrites: overwritesFiles, awaitsCard: true
            ) { state in
                switch state {
                case .lost(let error):
                    Self.say(error, hasPlayed: hasPlayed.withLock(\.self), logger)
                case .running:
                    let isBack = hasPlayed.withLock { hasPlayed in
                        defer { hasPlayed = true }
                        return hasPlayed
                    }
                    logger.notice(isBack ? "output is back" : "the output is there")
                case .released: logger.notice("nothing plays: other programs may have the output")
                case .opening, .closed: break
                }
            } onAdapt: { what in
                logger.notice("\(what)")
            } onRecordingFailure: { error in
                logger.error("recording ended, the room plays on", metadata: ["error": "\(error)"])
            }
            let scheduling: RealTimeThread.Scheduling = thread.scheduling
            if case .denied(let reason) = scheduling {
                logger.warning("no real-time priority", metadata: ["reason": "\(reason)"])
            }
            if case .lost(let error) = thread.state {
                Self.say(error, hasPlayed: false, logger)
            } else {
                hasPlayed.withLock { $0 = true }
            }
            thread.port.setRole(role)
            return thread
        } catch {
            throw RoomError(.noOutput, "\(error)", call: error.call)
        }
    }

    private static func say(_ error: OutputError, hasPlayed: Bool, _ logger: Logger) {
        let what =
            hasPlayed
            ? "output lost; it is looked for once a second"
            : "the output is not there yet; it is looked for once a second"
        logger.log(level: hasPlayed ? .error : .warning, "\(what)", metadata: ["error": "\(error)"])
        logger.debug("output lost", metadata: ["call": "\(error.call)"])
    }
}

func roomID(_ name: String) throws(RoomError) -> RoomID {
    do {
        return try RoomID(name)
    } catch {
        throw RoomError(.badName, "\(error)")
    }
}
