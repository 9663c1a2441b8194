import Foundation
import Testing
import Tutti

// The samples of Apple's public documents about playback, line by line. Each line of theirs stands
// above ours; `no counterpart` marks what there is none for, and says why. Views, buttons and layers
// are not ours. What was a callback is a loop that is read.

/// AVFoundation Programming Guide, "Playback".
@Suite(.serialized, .timeLimit(.minutes(1))) struct PortedSamples {
    private let sounds = Sounds()

    // MARK: Putting it all together

    /// `PlayerViewController`, without its view.
    private final class Controller: Sendable {
        // @property (nonatomic) AVPlayer *player;
        let player: Player
        // @property (nonatomic) AVPlayerItem *playerItem;
        let playerItem: PlayerItem
        // @property (nonatomic, weak) IBOutlet PlayerView *playerView; – no counterpart: no pictures

        // - (IBAction)loadAssetFromFile:sender
        init(fileURL: URL, device: AudioDevice) async throws {
            // AVURLAsset *asset = [AVURLAsset URLAssetWithURL:fileURL options:nil];
            let asset = Asset(url: fileURL)
            // NSString *tracksKey = @"tracks";
            // [asset loadValuesAsynchronouslyForKeys:@[tracksKey] completionHandler:^{ … }];
            // AVKeyValueStatus status = [asset statusOfValueForKey:tracksKey error:&error];
            // – the error of one call is thrown by it; the status can be asked for as well.
            _ = try await asset.load(.tracks)
            // if (status == AVKeyValueStatusLoaded)
            guard asset.status(of: .tracks) == .loaded else { throw CancellationError() }
            // self.playerItem = [AVPlayerItem playerItemWithAsset:asset];
            playerItem = PlayerItem(asset: asset)
            // self.player = [AVPlayer playerWithPlayerItem:self.playerItem];
            player = Player(device: device)
            try player.replaceCurrentItem(with: playerItem)
            // [self.playerView setPlayer:self.player]; – no counterpart: no pictures
        }

        // - (void)syncUI – whether the button can be pressed.
        var isPlayButtonEnabled: Bool {
            // (self.player.currentItem != nil) &&
            // ([self.player.currentItem status] == AVPlayerItemStatusReadyToPlay)
            player.currentItem != nil && player.currentItem?.status == .readyToPlay
        }

        // - (IBAction)play:sender { [player play]; }
        func play() { player.play() }
    }

    @Test func `load a file, enable a button, play, and go back to the beginning`() async throws {
        let path = try sounds.tone(440, seconds: 0.3, as: "a.wav")
        let controller = try await Controller(
            fileURL: URL(fileURLWithPath: path), device: .virtual())
        let notices = controller.player.notices()
        // [self.playerItem addObserver:self forKeyPath:@"status"
        //     options:NSKeyValueObservingOptionInitial context:&ItemStatusContext];
        // dispatch_async(dispatch_get_main_queue(), ^{ [self syncUI]; });
        let item = controller.playerItem
        for await status in Observations({ item.status }) where status != .unknown { break }
        #expect(controller.isPlayButtonEnabled)
        controller.play()
        // [[NSNotificationCenter defaultCenter] addObserver:self
        //     selector:@selector(playerItemDidReachEnd:)
        //     name:AVPlayerItemDidPlayToEndTimeNotification object:self.playerItem];
        for await notice in notices {
            guard case .didPlayToEnd(let ended) = notice else { continue }
            #expect(ended === item)
            break
        }
        // "After playback, the player's head is set to the end of the item and further invocations of
        // play have no effect."
        #expect(controller.player.currentTime() == item.duration)
        controller.play()
        #expect(controller.player.rate == 0)
        // [player seekToTime:kCMTimeZero];
        #expect(await controller.player.seek(to: .zero))
        #expect(controller.player.currentTime() == .zero)
        controller.play()
        #expect(controller.player.rate == 1)
    }

    // MARK: Handling different types of asset

    @Test func `a player of an address is observed until it can play`() async throws {
        let path = try sounds.tone(440, seconds: 0.3, as: "a.wav")
        // NSURL *url = [NSURL URLWithString:@"<#Live stream URL#>];
        let url = URL(fileURLWithPath: path)
        // self.player = [AVPlayer playerWithURL:url];
        let player = Player(url: url, device: .virtual())
        // [player addObserver:self forKeyPath:@"status" options:0 context:&PlayerStatusContext];
        for await status in Observations({ player.status }) where status != .unknown { break }
        #expect(player.status == .readyToPlay)
        // "You can also observe the currentItem property"
        for await current in Observations({ player.currentItem }) {
            #expect(current != nil)
            break
        }
    }

    @Test func `an address that is none of media fails, and its error says why`() async throws {
        // "Try to initialize an AVURLAsset using the URL, then load its tracks key."
        let asset = Asset(url: sounds.folder + "/none.mp4")
        let failure = await #expect(throws: PlaybackError.self) { try await asset.load(.tracks) }
        #expect(failure?.code == .mediaFailed)
        // "If 1 fails, create an AVPlayerItem directly from the URL. Observe the player's status."
        let player = try Player(
            playerItem: PlayerItem(url: sounds.folder + "/none.mp4"), device: .virtual())
        for await status in Observations({ player.status }) where status != .unknown { break }
        // if ([thePlayer status] == AVPlayerStatusFailed) { NSError *error = [thePlayer error]; … }
        #expect(player.status == .failed)
        let error = try #require(player.error)
        #expect((error as any Error).localizedDescription.contains("none.mp4"))
        #expect(player.currentItem?.error?.code == error.code)
    }

    // MARK: Rates and seeks

    @Test func `rates and seeks as the guide writes them`() async throws {
        let path = try sounds.tone(440, seconds: 8, as: "a.wav")
        let player = Player(url: path, device: .virtual())
        try await player.currentItem?.ready()
        // aPlayer.rate = 0.5; – a function, because a rate that cannot be played is refused.
        try player.setRate(0.5)
        // aPlayer.rate = 2.0;
        try player.setRate(2.0)
        #expect(player.rate == 2)
        // canPlayReverse, canPlaySlowReverse, canPlayFastReverse
        let item = try #require(player.currentItem)
        #expect(item.canPlayReverse && item.canPlaySlowReverse && item.canPlayFastReverse)
        player.pause()
        // CMTime fiveSecondsIn = CMTimeMake(5, 1);
        let fiveSecondsIn = MediaTime(value: 5, timescale: 1)
        // [player seekToTime:fiveSecondsIn];
        await player.seek(to: fiveSecondsIn)
        #expect(player.currentTime() == fiveSecondsIn)
        // [player seekToTime:fiveSecondsIn toleranceBefore:kCMTimeZero toleranceAfter:kCMTimeZero];
        await player.seek(to: fiveSecondsIn, toleranceBefore: .zero, toleranceAfter: .zero)
        #expect(player.currentTime() == fiveSecondsIn)
    }

    // MARK: Playing multiple items

    @Test func `a queue as the guide writes it`() async throws {
        // NSArray *items = <#An array of player items#>;
        let items = try (0..<3).map { n in
            PlayerItem(url: try sounds.tone(300 + 100 * Double(n), seconds: 0.2, as: "\(n).wav"))
        }
        // AVQueuePlayer *queuePlayer = [[AVQueuePlayer alloc] initWithItems:items];
        let queuePlayer = try QueuePlayer(
            items: Array(items.dropLast()), output: AudioDevice.virtual().output)
        let notices = queuePlayer.notices()
        // AVPlayerItem *anItem = <#Get a player item#>;
        let anItem = items[2]
        // if ([queuePlayer canInsertItem:anItem afterItem:nil]) {
        if queuePlayer.canInsert(anItem, after: nil) {
            // [queuePlayer insertItem:anItem afterItem:nil];
            try queuePlayer.insert(anItem, after: nil)
        }
        #expect(queuePlayer.items().elementsEqual(items, by: ===))
        queuePlayer.play()
        var ends = 0
        for await notice in notices {
            if case .didPlayToEnd = notice { ends += 1 }
            if case .currentItemDidChange(nil) = notice { break }
        }
        #expect(ends == 3 && queuePlayer.items().isEmpty)
        // advanceToNextItem, removeItem:, removeAllItems
        queuePlayer.advanceToNextItem()
        queuePlayer.remove(anItem)
        queuePlayer.removeAllItems()
    }

    // MARK: Tracking time

    @Test func `thirds and quarters of an item are told, the end among them`() async throws {
        let path = try sounds.tone(440, seconds: 0.6, as: "a.wav")
        let asset = Asset(url: path)
        // Float64 durationSeconds = CMTimeGetSeconds([<#An asset#> duration]);
        let durationSeconds = try await asset.load(.duration).seconds
        // CMTime firstThird = CMTimeMakeWithSeconds(durationSeconds/3.0, 1); – to whole seconds, which
        // would be zero here: a finer scale.
        let firstThird = MediaTime(seconds: durationSeconds / 3, preferredTimescale: 600)
        // CMTime secondThird = CMTimeMakeWithSeconds(durationSeconds*2.0/3.0, 1);
        let secondThird = MediaTime(seconds: durationSeconds * 2 / 3, preferredTimescale: 600)
        // NSMutableArray *times; CMTime currentTime = kCMTimeZero;
        var times = [firstThird, secondThird]
        var currentTime = MediaTime.zero
        // CMTime assetDuration = self.asset.duration;
        let assetDuration = try await asset.load(.duration)
        // CMTime interval = CMTimeMultiplyByFloat64(assetDuration, 0.25);
        let interval = assetDuration.multiplied(by: 0.25)
        // while (CMTIME_COMPARE_INLINE(currentTime, <, assetDuration)) {
        while currentTime < assetDuration {
            // currentTime = CMTimeAdd(currentTime, interval);
            currentTime = currentTime + interval
            // [times addObject:[NSValue valueWithCMTime:currentTime]];
            times.append(currentTime)
        }
        #expect(times.count == 6)
        let player = try Player(playerItem: PlayerItem(asset: asset), device: .virtual())
        // self.playerObserver = [player addBoundaryTimeObserverForTimes:times queue:NULL usingBlock:^{ … }];
        let passed = player.boundaryTimes(times)
        let notices = player.notices()
        player.play()
        var told: [String] = []
        let reading = Task {
            var all: [MediaTime] = []
            for await time in passed {
                // CMTimeCopyDescription(NULL, [self.player currentTime])
                #expect(!"\(player.currentTime())".isEmpty)
                all.append(time)
                if all.count == 6 { break }
            }
            return all
        }
        for await notice in notices { if case .didPlayToEnd = notice { break } }
        told = await reading.value.map { "\($0)" }
        #expect(told == times.sorted().map { "\($0)" })
        // [self.player removeTimeObserver:self.timeObserverToken]; – the loop has ended.
    }

    @Test func `times are told every half second`() async throws {
        let path = try sounds.tone(440, seconds: 1.2, as: "a.wav")
        let player = Player(url: path, device: .virtual())
        // CMTime interval = CMTimeMakeWithSeconds(0.5, NSEC_PER_SEC);
        let interval = MediaTime(seconds: 0.5, preferredTimescale: 1_000_000_000)
        // self.timeObserverToken = [self.player addPeriodicTimeObserverForInterval:interval …];
        let times = player.periodicTimes(every: interval)
        player.play()
        var seen: [Double] = []
        for await time in times {
            seen.append(time.seconds)
            if time.seconds >= 1 { break }
        }
        #expect(seen.contains { $0 >= 0.45 && $0 < 0.7 } && seen == seen.sorted(), "\(seen)")
    }

    // MARK: "Controlling the transport behavior of a player"

    @Test func `an item with its keys, observed before it is given to a player`() async throws {
        let player = Player(device: .virtual())
        // let asset = AVAsset(url: url)
        let asset = Asset(url: try sounds.tone(440, seconds: 0.3, as: "a.wav"))
        // let playerItem = AVPlayerItem(asset: asset,
        //     automaticallyLoadedAssetKeys: [.tracks, .duration, .commonMetadata])
        // – no counterpart: what is ready has them all.
        let playerItem = PlayerItem(asset: asset)
        // statusObservation = playerItem.observe(\.status, options: [.new, .initial]) { … }
        let observation = Task {
            var seen: [PlayerItem.Status] = []
            for await status in Observations({ playerItem.status }) {
                seen.append(status)
                if status != .unknown { break }
            }
            return seen
        }
        // player.replaceCurrentItem(with: playerItem)
        try player.replaceCurrentItem(with: playerItem)
        #expect(await observation.value.last == .readyToPlay)
        #expect(playerItem.duration.seconds == 0.3 && playerItem.tracks.count == 1)
        #expect(playerItem.metadata != nil)
    }

    @Test func `playing is observed, and why the rate has changed`() async throws {
        let player = Player(
            url: try sounds.tone(440, seconds: 0.3, as: "a.wav"), device: .virtual())
        // timeControlObservation = player.observe(\.timeControlStatus, options: [.new, .initial])
        let playing = Task {
            for await status in Observations({ player.timeControlStatus }) where status == .playing
            {
                return true
            }
            return false
        }
        // for await notification in NotificationCenter.default.notifications(named: name) {
        let notices = player.notices()
        player.play()
        #expect(await playing.value)
        var reasons: [String] = []
        for await notice in notices {
            // guard let reason = notification.userInfo?[AVPlayer.rateDidChangeReasonKey] …
            guard case .rateDidChange(let rate, let reason) = notice else { continue }
            switch reason {
            // case .appBackgrounded: – no counterpart: programs here have no background.
            case .audioSessionInterrupted: reasons.append("interrupted")
            case .setRateCalled: reasons.append("called")
            case .setRateFailed: reasons.append("failed")
            default: reasons.append("\(reason)")
            }
            if rate == 0 { break }
        }
        #expect(reasons == ["called", "itemEnded"])
    }

    @Test func `seeks as a slider asks for them`() async throws {
        let avPlayer = Player(
            url: try sounds.tone(440, seconds: 4, as: "a.wav"), device: .virtual())
        // func seek(to timeInterval: TimeInterval) async {
        func seek(to timeInterval: TimeInterval) async -> Bool {
            // let time = CMTime(seconds: timeInterval, preferredTimescale: 600)
            let time = MediaTime(seconds: timeInterval, preferredTimescale: 600)
            // await avPlayer.seek(to: time)
            return await avPlayer.seek(to: time)
        }
        for place in stride(from: 0, to: 3, by: 0.25) { #expect(await seek(to: place)) }
        let time = MediaTime(seconds: 1.5, preferredTimescale: 600)
        // await avPlayer.seek(to: time, toleranceBefore: .zero, toleranceAfter: .zero)
        await avPlayer.seek(to: time, toleranceBefore: .zero, toleranceAfter: .zero)
        #expect(avPlayer.currentTime() == time)
    }

    // MARK: "Mastering Modern Media Playback"

    @Test func `what is playable is asked for first, and sound alone looks like that`()
        async throws
    {
        let asset = Asset(url: try sounds.tone(440, seconds: 0.3, as: "a.wav"))
        // [asset loadValuesAsynchronouslyForKeys:@[@"playable"] completionHandler:^( … )];
        #expect(try await asset.load(.isPlayable))
        // switch ([asset statusOfValueForKey:@"playable" error:&error]) {
        switch asset.status(of: .isPlayable) {
        case .loaded: break
        default: Issue.record("it is loaded")
        }
        // NSArray *videoTracks = [asset tracksWithMediaType:AVMediaTypeVideo];
        // – no counterpart: pictures are not listed; whether there is sound is.
        let audible = try await asset.load(.tracks).filter { $0.characteristics.contains(.audible) }
        #expect(audible.count == 1)
        // [playerItem addObserver:self forKeyPath:@"presentationSize" …] – no counterpart: no pictures
        let item = PlayerItem(asset: asset)
        // [playerItem addOutput:output]; – a tap is what hands on samples.
        item.audioTap = nil
        // [playerItem selectMediaOption:option inMediaSelectionGroup:group];
        if let group = try await asset.loadMediaSelectionGroup(for: .audible) {
            try item.select(group.options.first, in: group)
        }
        // playerItem.forwardPlaybackEndTime = endTime;
        item.forwardPlaybackEndTime = MediaTime(value: 1, timescale: 10)
        // AVPlayer *player = [AVPlayer playerWithPlayerItem:playerItem];
        let player = try Player(playerItem: item, device: .virtual())
        // for (AVPlayerItemTrack *playerItemTrack in playerItem.tracks) {
        //     [playerItemTrack.assetTrack hasMediaCharacteristic:AVMediaCharacteristicAudible]
        try await item.ready()
        #expect(item.tracks.allSatisfy { $0.assetTrack.characteristics.contains(.audible) })
        let notices = player.notices()
        player.play()
        for await notice in notices { if case .didPlayToEnd = notice { break } }
        #expect(player.currentTime() == item.forwardPlaybackEndTime)
    }
}
