import Configuration
import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One place that settings come from, so that an error can say where a value stands.
struct SettingSource: Sendable {
    private let reader: ConfigReader
    /// Keys that this place holds.
    private let present: Set<String>
    private let place: @Sendable (SettingKey) -> String

    /// Values given as flags.
    static func flags(_ values: [SettingKey: String]) -> SettingSource {
        let provider = InMemoryProvider(
            name: "flags",
            values: Dictionary(
                uniqueKeysWithValues: values.map { key, value in
                    (
                        AbsoluteConfigKey(key.components),
                        ConfigValue(.string(value), isSecret: false)
                    )
                }))
        return SettingSource(
            reader: ConfigReader(provider: provider), present: Set(values.keys.map(\.rawValue)),
            place: { $0.flag })
    }

    /// The variables `TUTTI_*`.
    ///
    /// - Throws: ``SettingsError`` for a variable that begins so and means nothing.
    static func environment(_ variables: [String: String]) throws(SettingsError) -> SettingSource {
        let known = SettingKey.allCases.map(\.variable)
        let variables = variables.filter { !isContainerLink($0.key, $0.value) }
        for name in variables.keys.sorted() where name.hasPrefix("TUTTI_") && !known.contains(name)
        {
            throw .unknown(name, in: "environment", known: known)
        }
        let provider = EnvironmentVariablesProvider(environmentVariables: variables)
        return SettingSource(
            reader: ConfigReader(provider: provider.prefixKeys(with: "tutti")),
            present: Set(
                SettingKey.allCases.filter { variables[$0.variable] != nil }.map(\.rawValue)),
            place: { "environment variable \($0.variable)" })
    }

    /// What Docker and Kubernetes tell of a container or service that is called "tutti": where it
    /// listens, in variables whose names look like our settings. None of it is meant as one.
    static func isContainerLink(_ name: String, _ value: String) -> Bool {
        guard name.hasPrefix("TUTTI_") else { return false }
        let rest = name.dropFirst("TUTTI_".count)
        if rest == "PORT" {
            return ["tcp://", "udp://", "sctp://"].contains { value.hasPrefix($0) }
        }
        // A linked container is named by its path: /player/tutti.
        if rest == "NAME" { return value.hasPrefix("/") && value.dropFirst().contains("/") }
        if rest.hasPrefix("ENV_") || rest == "SERVICE_HOST" { return true }
        if rest == "SERVICE_PORT" || rest.hasPrefix("SERVICE_PORT_") { return true }
        let parts = rest.split(separator: "_")
        return parts.count >= 3 && parts[0] == "PORT" && Int(parts[1]) != nil
            && ["TCP", "UDP", "SCTP"].contains(parts[2])
    }

    /// A YAML file.
    ///
    /// - Throws: ``SettingsError`` when it cannot be read, is no YAML or holds an unknown key.
    static func file(_ path: String) async throws(SettingsError) -> SettingSource {
        // The snapshot does not list its keys, but asks of each one whether it is a secret.
        let seen = KeyList()
        let provider: FileProvider<YAMLSnapshot>
        do {
            guard FileManager.default.isReadableFile(atPath: path) else {
                throw SettingsError(
                    "\(path): the settings file cannot be read; check the path and its permissions")
            }
            // Given as a setting of its own, the path needs no type of yet another package.
            let whichFile = InMemoryProvider(values: [
                "filePath": .init(.string(path), isSecret: false)
            ])
            provider = try await FileProvider<YAMLSnapshot>(
                parsingOptions: .init(
                    secretsSpecifier: .dynamic { key, _ in
                        seen.add(key)
                        return false
                    }),
                config: ConfigReader(provider: whichFile))
        } catch let error as SettingsError {
            throw error
        } catch {
            guard FileManager.default.contents(atPath: path) != nil else {
                throw SettingsError("\(path): is no file that can be read as settings")
            }
            if Self.holdsNothing(path) { return .empty }
            let reason = "\(error)".split(whereSeparator: \.isNewline).joined(separator: " ")
            throw SettingsError("\(path): not a YAML file of \"key: value\" lines (\(reason))")
        }
        let known = SettingKey.allCases.map(\.rawValue)
        let keys = seen.keys
        for name in keys.sorted() where !known.contains(name) {
            throw .unknown(name, in: path, known: known)
        }
        return SettingSource(
            reader: ConfigReader(provider: provider), present: keys,
            place: { "\(path): key \($0.rawValue)" })
    }

    private static let empty = SettingSource(
        reader: ConfigReader(provider: InMemoryProvider(values: [:])), present: [],
        place: { $0.rawValue })

    /// A file of comments only is no mapping to YAML, but a fine settings file.
    private static func holdsNothing(_ path: String) -> Bool {
        guard let data = FileManager.default.contents(atPath: path) else { return false }
        return String(decoding: data, as: UTF8.self).split(whereSeparator: \.isNewline).allSatisfy {
            let line = $0.drop(while: \.isWhitespace)
            return line.isEmpty || line.hasPrefix("#") || line.hasPrefix("---")
        }
    }

    /// The text under `key` and where it stands; `nil` when this place does not have it.
    func text(_ key: SettingKey) throws(SettingsError) -> (text: String, place: String)? {
        guard present.contains(key.rawValue) else { return nil }
        guard let text = reader.string(forKey: ConfigKey(key.components)) else {
            throw SettingsError(
                "\(place(key)): must be one value, not a list or a group; allowed: \(key.allowed)")
        }
        return (text, place(key))
    }
}

extension SettingKey {
    var components: [String] { rawValue.split(separator: ".").map(String.init) }
}

/// Collects keys from a callback that may come from any thread.
private final class KeyList: Sendable {
    private let names = Mutex<Set<String>>([])
    func add(_ name: String) { names.withLock { _ = $0.insert(name) } }
    var keys: Set<String> { names.withLock { $0 } }
}
