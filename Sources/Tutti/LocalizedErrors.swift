public import FoundationEssentials

// `localizedDescription` says what the description does, code and cause included.

extension PlaybackError: LocalizedError {
    public var errorDescription: String? { description }
}

extension MediaError: LocalizedError {
    public var errorDescription: String? { description }
}

extension OutputError: LocalizedError {
    public var errorDescription: String? { "\(self)" }
}

extension OutputSpecificationError: LocalizedError {
    public var errorDescription: String? { description }
}

extension HostError: LocalizedError {
    public var errorDescription: String? { "\(self)" }
}
