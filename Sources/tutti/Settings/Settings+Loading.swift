import Glibc
import Logging
import TuttiGroupControl
import TuttiRoom

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension Settings {
    /// Asks flags, then environment, then the file, then the defaults.
    ///
    /// - Parameter file: what `--config` says; without it the user's and the system's file, where
    ///   they exist (the user's wins).
    static func load(
        flags: [SettingKey: String], file: String?,
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) async throws(SettingsError) -> Settings {
        var sources = [SettingSource.flags(flags), try SettingSource.environment(environment)]
        for path in file.map({ [$0] }) ?? usualFiles(environment) {
            sources.append(try await SettingSource.file(path))
        }
        return try Settings(
            sources: sources, hostName: hostName(), cacheFolder: usualCacheFolder(environment),
            stateFolder: usualStateFolder(environment))
    }

    /// The same for a command, which says on stderr what of it is not used.
    static func announced(
        flags: [SettingKey: String], file: String?
    ) async throws(SettingsError) -> Settings {
        let settings = try await load(flags: flags, file: file)
        for warning in settings.warnings { Terminal.error.say("tutti: warning: \(warning)") }
        return settings
    }

    /// The settings files that exist where they are looked for, the strongest first.
    static func usualFiles(_ environment: [String: String]) -> [String] {
        let home =
            environment["XDG_CONFIG_HOME"] ?? environment["HOME"].map { "\($0)/.config" }
        return [home.map { "\($0)/tutti/tutti.yaml" }, "/etc/tutti/tutti.yaml"]
            .compactMap { $0 }.filter { FileManager.default.fileExists(atPath: $0) }
    }

    static func usualCacheFolder(_ environment: [String: String]) -> String {
        if let folder = environment["XDG_CACHE_HOME"] { return "\(folder)/tutti" }
        if let home = environment["HOME"], !home.isEmpty { return "\(home)/.cache/tutti" }
        return "/var/cache/tutti"
    }

    /// Where systemd says (StateDirectory=), else the user's, else the system's.
    static func usualStateFolder(_ environment: [String: String]) -> String {
        if let folder = environment["STATE_DIRECTORY"]?.split(separator: ":").first {
            return String(folder)
        }
        if let folder = environment["XDG_STATE_HOME"] { return "\(folder)/tutti" }
        if let home = environment["HOME"], !home.isEmpty { return "\(home)/.local/state/tutti" }
        return "/var/lib/tutti"
    }

    static func hostName() -> String {
        var name = [CChar](repeating: 0, count: 256)
        guard gethostname(&name, name.count - 1) == 0 else { return "room" }
        let bytes = name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        return roomName(String(decoding: bytes, as: UTF8.self)) ?? "room"
    }

    /// - Returns: `nil` for what cannot be the name of a room.
    static func roomName(_ text: String) -> String? { try? RoomID(text).name }
}

/// Log lines go to stderr, so that stdout stays what a program can read.
func makeLogger(level: Logger.Level) -> Logger {
    var logger = Logger(
        label: "tutti",
        factory: { _ in NodeLog { Terminal.error.writeIfRead($0 + "\n") } })
    logger.logLevel = level
    return logger.plain
}
