import Tutti
import TuttiDeviceOutput
import TuttiPlayback
import TuttiPlayout
import TuttiRoom
import TuttiTiming

/// What is found out about files before an output is opened for them: an output that writes a file
/// would have made one of silence by the time that nothing can be played.
struct FirstLook {
    let files: PlayableFiles

    init(_ files: PlayableFiles) { self.files = files }

    /// Whether an output leaves something behind, whatever was played on it.
    static func isDue(for output: OutputSpecification) -> Bool {
        switch output {
        case .file: true
        case .virtual(let options): options.record != nil
        case .alsa, .none: false
        }
    }

    /// Opens one after the other until one can be.
    ///
    /// - Parameter say: takes a line for each that cannot, where none can and there are several.
    /// - Throws: `CommandError` where none can.
    func findSomethingPlayable(say: (String) -> Void) async throws {
        var reasons: [String] = []
        for file in files.items {
            do throws(PlaybackError) {
                _ = try await file.asset.load(.duration)
                return
            } catch {
                if error.code == .cancelled { throw CancellationError() }
                reasons.append("cannot play \(error.cause)")
            }
        }
        for passed in files.passedOver { say("tutti: skipped \(passed.sentence)") }
        guard !reasons.isEmpty else { throw PlayFiles.nothingThere }
        let missed = files.passedOver.count { $0.isMissed }
        if reasons.count == 1, missed == 0 { throw CommandError(reasons[0]) }
        for reason in reasons { say("tutti: \(reason)") }
        throw PlayFiles.missed(reasons.count + missed, of: reasons.count + missed)
    }

    /// The place where `--start` says to begin.
    ///
    /// - Returns: seconds from the beginning of the first item; may lie in a later part of its file.
    /// - Throws: `CommandError` where there is no such place. A first item that cannot be opened is
    ///   for the player to name.
    func seconds(of start: PositionArgument) async throws -> Double {
        let place: Double
        switch start {
        case .time(let seconds), .by(let seconds): place = seconds
        case .share(let share):
            guard let first = files.items.first else { return 0 }
            let length = try await length(of: first)
            guard let length else {
                throw CommandError(
                    "a share of \(try await title(of: first)) is no place: how long it is, it does not say; give a time"
                )
            }
            place = share * length
        }
        guard place > 0, let first = files.items.first else { return 0 }
        var whole = 0.0
        for number in files.items.indices {
            guard number == 0 || files.isFollowedByPart(number - 1) else { break }
            guard let length = try? await length(of: files.items[number]) else { return place }
            whole += length
            if place < whole { return place }
        }
        throw CommandError(
            "\(try await title(of: first)) is \(PositionArgument.text(whole)) long, and cannot begin at \(PositionArgument.text(place))"
        )
    }

    /// Seconds; `nil` where it has no end, or does not say.
    private func length(of file: PlayableFiles.Item) async throws -> Double? {
        if let part = file.part, let end = part.end { return (end - part.start).seconds }
        do throws(PlaybackError) {
            let duration = try await file.asset.load(.duration)
            return duration.isNumeric ? duration.seconds : nil
        } catch {
            if error.code == .cancelled { throw CancellationError() }
            throw CommandError("cannot play \(error.cause)")
        }
    }

    private func title(of file: PlayableFiles.Item) async throws -> String {
        let title = try? await file.asset.load(.metadata).title
        return "\"\(title ?? file.title ?? AssetName.shown(file.location))\""
    }
}

extension PlaybackError {
    /// In a sentence that begins with the name.
    var cause: String { underlying.map { "\($0)" } ?? description }
}

extension PlayableFiles.Item {
    /// To be looked at.
    fileprivate var asset: Asset { asset { _ in } }

    /// - Parameter opened: called with the format of the whole file, where it is a part of one.
    func asset(opened: @escaping @Sendable (MediaFormat) -> Void) -> Asset {
        Asset(
            location: location,
            opener: part.map { MediaOpener.ffmpeg.part($0, opened: opened) } ?? .ffmpeg)
    }
}

extension PlayableFiles {
    /// Whether the next item is the part of the same file that begins where this one ends.
    func isFollowedByPart(_ place: Int) -> Bool {
        guard place + 1 < items.count, let part = items[place].part,
            let next = items[place + 1].part
        else { return false }
        return items[place].location == items[place + 1].location && part.end == next.start
    }
}
