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
    /// What looks like a setting and is none: sentences for the owner.
    private(set) var warnings: [String] = []

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
        let ignored = SettingKey.allCases.compactMap { key in
            variables[key.variable].flatMap {
                isContainerLink(key.variable, $0) ? warning(of: key, $0) : nil
            }
        }
        let variables = variables.filter { !isContainerLink($0.key, $0.value) }
        for name in variables.keys.sorted() where name.hasPrefix("TUTTI_") && !known.contains(name)
        {
            throw .unknown(name, in: "environment", known: known)
        }
        let provider = EnvironmentVariablesProvider(environmentVariables: variables)
        var source = SettingSource(
            reader: ConfigReader(provider: provider.prefixKeys(with: "tutti")),
            present: Set(
                SettingKey.allCases.filter { variables[$0.variable] != nil }.map(\.rawValue)),
            place: { "environment variable \($0.variable)" })
        source.warnings = ignored
        return source
    }

    private static func warning(of key: SettingKey, _ value: String) -> String {
        "environment variable \(key.variable): \"\(value)\" is ignored: containers are told so of a "
            + "service or container named \"tutti\", and it is no setting of this program; "
            + "set \(key.flag), or \(key.rawValue) in tutti.yaml, if you want another than the usual, "
            + "and name that service otherwise (Kubernetes: or enableServiceLinks: false)"
    }

    /// What Docker and Kubernetes tell of a container or service whose name begins with "tutti":
    /// where it listens, in variables whose names look like our settings. None is meant as one.
    static func isContainerLink(_ name: String, _ value: String) -> Bool {
        guard name.hasPrefix("TUTTI_") else { return false }
        var parts = name.dropFirst("TUTTI_".count).split(separator: "_")[...]
        // For a service "tutti-leader" the variable is TUTTI_LEADER_PORT.
        while !parts.isEmpty {
            if isLink(parts, value) { return true }
            parts = parts.dropFirst()
        }
        return false
    }

    private static let linkedSchemes = ["tcp://", "udp://", "sctp://"]

    private static func isLink(_ parts: ArraySlice<Substring>, _ value: String) -> Bool {
        let words = Array(parts)
        switch words.first {
        case "PORT" where words.count == 1:
            return linkedSchemes.contains { value.lowercased().hasPrefix($0) }
        case "PORT":
            return words.count >= 3 && Int(words[1]) != nil
                && ["TCP", "UDP", "SCTP"].contains(words[2])
        // A linked container is named by its path: /player/tutti.
        case "NAME":
            return words.count == 1 && value.hasPrefix("/") && value.dropFirst().contains("/")
        case "SERVICE": return words.count >= 2 && ["HOST", "PORT"].contains(words[1])
        case "ENV": return words.count >= 2
        default: return false
        }
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
