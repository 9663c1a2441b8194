/// How loud one room is. The leader holds it by the room's name, so that it survives a reconnect.
public struct RoomSettings: Hashable, Sendable {
    public static let volumes = 0...100
    public static let standard = RoomSettings(checkedVolume: 100, muted: false)

    /// Percent of full scale, 0 to 100; the room decides the curve.
    public let volume: Int
    public let muted: Bool

    /// - Throws: ``InvalidValue`` when the volume is not 0 to 100.
    public init(volume: Int, muted: Bool) throws(InvalidValue) {
        guard Self.volumes.contains(volume) else {
            throw InvalidValue("volume", "is \(volume); give 0 to 100")
        }
        self.init(checkedVolume: volume, muted: muted)
    }

    private init(checkedVolume: Int, muted: Bool) {
        volume = checkedVolume
        self.muted = muted
    }

    public func with(volume: Int) throws(InvalidValue) -> RoomSettings {
        try RoomSettings(volume: volume, muted: muted)
    }

    public func with(muted: Bool) -> RoomSettings {
        RoomSettings(checkedVolume: volume, muted: muted)
    }
}
