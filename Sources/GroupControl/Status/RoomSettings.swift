/// Which channels of a stereo item a room plays: two rooms are a stereo pair.
public enum RoomRole: String, CaseIterable, Codable, Sendable {
    /// Both, each at its side.
    case stereo
    /// One of them, at all loudspeakers.
    case left, right
    /// Both together, at all loudspeakers.
    case mono
}

/// How loud one room is, and what it plays of an item. The leader holds it by the room's name, so that it survives a reconnect.
///
/// A room has a volume of its own, and its group has one; the room is as loud as both together say
/// (``level``). So the rooms keep their balance while the group gets louder and quieter, however often.
public struct RoomSettings: Hashable, Sendable {
    /// Volumes that there are, percent.
    public static let volumes = 0...100
    /// As loud as recorded, and not muted.
    public static let standard = RoomSettings(checkedVolume: 100, muted: false, groupVolume: 100)

    /// Of the room, percent, 0 to 100.
    public let volume: Int
    /// Whether the room is silent whatever its volume is.
    public let muted: Bool
    /// Of the group that it is in, percent, 0 to 100.
    public let groupVolume: Int
    /// `nil`: as the room's own settings have it.
    public private(set) var role: RoomRole?

    /// - Throws: ``InvalidValue`` when a volume is not 0 to 100.
    public init(
        volume: Int, muted: Bool, groupVolume: Int = 100, role: RoomRole? = nil
    ) throws(InvalidValue) {
        for (subject, volume) in [("volume", volume), ("volume of the group", groupVolume)]
        where !Self.volumes.contains(volume) {
            throw InvalidValue(subject, "is \(volume); give 0 to 100")
        }
        self.init(checkedVolume: volume, muted: muted, groupVolume: groupVolume, role: role)
    }

    private init(checkedVolume: Int, muted: Bool, groupVolume: Int, role: RoomRole? = nil) {
        self.role = role
        volume = checkedVolume
        self.muted = muted
        self.groupVolume = groupVolume
    }

    /// The same room at another volume.
    ///
    /// - Throws: ``InvalidValue`` when it is not 0 to 100.
    public func with(volume: Int) throws(InvalidValue) -> RoomSettings {
        try RoomSettings(volume: volume, muted: muted, groupVolume: groupVolume, role: role)
    }

    /// The same room in a group at another volume.
    ///
    /// - Throws: ``InvalidValue`` when it is not 0 to 100.
    public func with(groupVolume: Int) throws(InvalidValue) -> RoomSettings {
        try RoomSettings(volume: volume, muted: muted, groupVolume: groupVolume, role: role)
    }

    /// The same room, muted or not.
    public func with(muted: Bool) -> RoomSettings {
        RoomSettings(
            checkedVolume: volume, muted: muted, groupVolume: groupVolume, role: role)
    }

    /// The same room with another role; `nil`: with that of its own settings.
    public func with(role: RoomRole?) -> RoomSettings {
        var settings = self
        settings.role = role
        return settings
    }

    /// The same room in the group that `other` is in.
    func inGroup(of other: RoomSettings) -> RoomSettings {
        RoomSettings(
            checkedVolume: volume, muted: muted, groupVolume: other.groupVolume, role: role)
    }

    /// Where the slider of a room alone would be for what is heard, 0 to 1; 0 while it is muted.
    public var level: Double {
        muted ? 0 : Double(volume * groupVolume) / 10_000
    }

    /// What a slider means: amplitude is the cube of its place, 60·log₁₀ of it in dB. That follows
    /// loudness well: 50 % is −18 dB, 10 % is −60 dB, and 0 is silence.
    public static func gain(ofLevel level: Double) -> Float { Float(level * level * level) }
}
