import ArgumentParser
import TuttiDeviceOutput
import TuttiGroupControl
import TuttiLinuxHost
import TuttiPlayout
import TuttiRoom

/// Why a command failed, in one sentence: what, where, and what to do.
struct CommandError: Error, Equatable, CustomStringConvertible {
    var description: String

    init(_ description: String) { self.description = description }
}

/// ``sentence(for:)`` with what a library was asked and what it answered, for `--verbose`.
func detailed(_ error: any Error) -> String {
    switch error {
    case let error as RoomError: error.debugDescription
    case let error as MediaError: error.debugDescription
    case let error as OutputError: error.debugDescription
    case let error as HostError: error.debugDescription
    default: sentence(for: error)
    }
}

/// What stderr says about an error.
///
/// Our own errors are written as sentences; of any other, only the fact and its text are passed on.
func sentence(for error: any Error) -> String {
    switch error {
    case let error as CommandError: error.description
    case let error as SettingsError: error.description
    case let error as RoomError: error.description
    case let error as OutputSpecificationError: error.description
    case let error as MediaError: error.description
    case let error as OutputError: error.description
    case let error as InvalidValue: error.description
    case is CancellationError: "interrupted"
    default: "something unexpected failed: \(error)"
    }
}

extension Error {
    /// A bare `tutti` throws an error of ArgumentParser's own that only it can print.
    var isRequestForHelp: Bool { Tutti.exitCode(for: self) == .success }
}
