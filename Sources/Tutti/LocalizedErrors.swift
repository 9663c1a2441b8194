public import FoundationEssentials

// `localizedDescription` is what people copy into a report: the code, then the sentence, then the cause.

extension PlaybackError: LocalizedError {
    public var errorDescription: String? { "\(code.rawValue): \(description)" }
}

extension MediaError: LocalizedError {
    public var errorDescription: String? { "\(code.rawValue): \(description)" }
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
