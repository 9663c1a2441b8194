public import FoundationEssentials

extension Player {
    /// A player without an item.
    public convenience init(device: AudioDevice = .default) { self.init(output: device.output) }

    /// A player with an item at a path or an address, which it begins to load.
    ///
    /// What cannot be loaded is its ``Player/error``.
    public convenience init(url: String, device: AudioDevice = .default) {
        self.init(device: device)
        do throws(PlaybackError) { try replaceCurrentItem(with: PlayerItem(url: url)) } catch {
            fatalError("a new item has no other player: \(error)")
        }
    }

    /// The same for Foundation's addresses.
    public convenience init(url: URL, device: AudioDevice = .default) {
        self.init(url: url.absoluteString, device: device)
    }

    /// A player with an item, which it begins to load.
    ///
    /// - Throws: ``PlaybackError/Code/itemInUse``.
    public convenience init(
        playerItem: PlayerItem, device: AudioDevice = .default
    ) throws(PlaybackError) {
        try self.init(playerItem: playerItem, output: device.output)
    }

    /// Where it sounds; `nil` where it was given an output of somebody else's. Another one takes over
    /// while it plays, see ``Player/output``.
    public var device: AudioDevice? {
        get { output.owner as? AudioDevice }
        set { if let newValue { output = newValue.output } }
    }
}

extension QueuePlayer {
    /// Plays items one after the other.
    ///
    /// - Parameters:
    ///   - items: in the order in which they play; each of no other player.
    ///   - device: where.
    /// - Throws: ``PlaybackError/Code/itemInUse``; then none of them is taken.
    public convenience init(
        items: [PlayerItem], device: AudioDevice = .default
    ) throws(PlaybackError) {
        try self.init(items: items, output: device.output)
    }
}

extension PlayerItem {
    /// An item at a path or an http, https or file address; reads nothing yet.
    public convenience init(url: String, forwardPlaybackEndTime: MediaTime = .invalid) {
        self.init(asset: Asset(url: url), forwardPlaybackEndTime: forwardPlaybackEndTime)
    }

    /// The same for Foundation's addresses.
    public convenience init(url: URL, forwardPlaybackEndTime: MediaTime = .invalid) {
        self.init(url: url.absoluteString, forwardPlaybackEndTime: forwardPlaybackEndTime)
    }
}

extension Asset {
    /// A path or an http, https or file address, decoded by FFmpeg; reads nothing yet.
    public convenience init(url: String) { self.init(location: url, opener: .ffmpeg) }

    /// The same for Foundation's addresses.
    public convenience init(url: URL) { self.init(url: url.absoluteString) }
}

extension MediaOpener {
    /// FFmpeg's decoders.
    public static let ffmpeg = MediaOpener(
        cancellable: { location, choice, cancellation throws(MediaError) in
            try FFmpegSource(
                location, track: choice.track, channels: choice.channels, beginsEarly: true,
                cancellation: cancellation)
        },
        text: { location, track, cancellation throws(MediaError) in
            try FFmpegText.read(location, track: track, cancellation: cancellation)
        })
}

extension MediaClock {
    /// The machine's own, which never steps: nanoseconds since it was started.
    public static let host = host(now: { HostClock.now() })

    /// A clock shared with other machines, as its estimate is published in `cell`.
    public static func group(_ cell: ClockCell) -> MediaClock {
        group(cell, now: { HostClock.now() })
    }

    /// One that is set by hand; see `manual(at:rate:now:)`.
    public static func manual(at instant: GroupInstant, rate: Double = 1) -> MediaClock {
        manual(at: instant, rate: rate, now: { HostClock.now() })
    }
}
