/// Why a room cannot do what it was asked: what, where, and what to do about it.
public struct RoomError: Error, Equatable, CustomStringConvertible, CustomDebugStringConvertible {
    /// Kinds of failure, for programs.
    public enum Code: String, Sendable {
        case noLeader, unreachable, refused, portTaken, badAsset, badAddress, badName
        case noDiscovery, noOutput, protocolViolation, timedOut, noFiles
        /// What the state folder holds cannot be used.
        case badState
        /// The other side belongs to another household, or to none.
        case stranger
        /// Others are served first: worth another try soon.
        case busy
    }
    /// What kind of failure it is.
    public var code: Code
    public var description: String
    /// What a library was asked and what it answered (`snd_pcm_open: -2`), for those who look into
    /// it; empty where no library is behind it.
    public var call: String

    /// A failure in a sentence for people; `call` is for those who look into it.
    public init(_ code: Code, _ description: String, call: String = "") {
        self.code = code
        self.description = description
        self.call = call
    }

    public var debugDescription: String { call.isEmpty ? description : "\(description) (\(call))" }

    /// Nothing came from there in time.
    ///
    /// - Parameter isTaken: whether somebody took the connection.
    static func silence(of address: HostPort, isTaken: Bool, _ code: Code) -> RoomError {
        RoomError(
            code,
            isTaken
                ? "what listens at \(address) took the connection but did not answer: is it a Tutti leader, and is that machine overloaded?"
                : "nobody answers at \(address): is that machine on, and its name or address right?"
        )
    }

    static func badAddress(_ text: String) -> RoomError {
        RoomError(
            .badAddress,
            "\"\(text)\" is \(HostPort.isWebAddress(text) ? "a web address, and no" : "no") address of a leader: write HOST, HOST:PORT or [IPV6]:PORT with a port of 1 to 65535"
        )
    }
}
