import Dispatch
import Synchronization
import TuttiFFmpegMedia
import TuttiPlayout

/// The cover of what is played, made ready for the terminal while nobody waits for it.
///
/// A picture is decoded once for each item and size of window, on a queue of its own: the next frame
/// that is drawn after that has it. One that cannot be decoded is none.
final class Cover: Sendable {
    private struct Wish: Equatable {
        var item: ObjectIdentifier
        var graphics: Graphics
        var space: CoverSpace
    }

    private struct State {
        /// What was asked for last, and what came of it.
        var wish: Wish?
        var picture: ScreenPicture?
        /// By which another item with the same picture is known.
        var bytes: [UInt8] = []
        var isBusy = false
        var count = 0
    }

    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "tutti.cover", qos: .utility)
    /// Of the picture in the terminal.
    private let number: UInt32
    private let tell: @Sendable (MediaError) -> Void

    /// - Parameters:
    ///   - number: at least 1, unlike that of other programs in the same terminal.
    ///   - tell: is told why a picture is not shown.
    init(number: UInt32, tell: @escaping @Sendable (MediaError) -> Void) {
        (self.number, self.tell) = (number, tell)
    }

    /// - Parameter bytes: of the item's picture, as stored; `nil` where it has none.
    /// - Returns: `nil` for none, and while it is made.
    func picture(
        of item: ObjectIdentifier, _ bytes: [UInt8]?, as answer: GraphicsQuestion.Answer,
        in space: CoverSpace
    ) -> ScreenPicture? {
        guard let bytes else { return nil }
        let wish = Wish(item: item, graphics: answer.graphics, space: space)
        return state.withLock { state in
            if state.wish == wish { return state.picture }
            // The next frame asks again.
            guard !state.isBusy else { return nil }
            let old = state.wish
            state.wish = wish
            if old?.space == space, old?.graphics == wish.graphics, state.bytes == bytes {
                return state.picture
            }
            state.isBusy = true
            state.picture = nil
            state.bytes = bytes
            queue.async { [self] in
                make(wish, bytes, isExact: answer.cell != nil)
            }
            return nil
        }
    }

    private func make(_ wish: Wish, _ bytes: [UInt8], isExact: Bool) {
        let size = wish.space.pixels
        var made: Picture?
        do throws(MediaError) {
            made = try Picture.decode(bytes, fitting: size.width, size.height)
        } catch {
            tell(error)
        }
        let identity = state.withLock { state in
            state.count += 1
            return state.count
        }
        let picture = made.map {
            screenPicture($0, wish, identity: identity, isExact: isExact)
        }
        state.withLock { state in
            state.isBusy = false
            state.picture = picture
        }
    }

    private func screenPicture(
        _ picture: Picture, _ wish: Wish, identity: Int, isExact: Bool
    ) -> ScreenPicture {
        let cell = wish.space.cell
        let columns = (picture.width + cell.width - 1) / cell.width
        let rows = wish.space.rows
        let filled = (picture.height + cell.height - 1) / cell.height
        switch wish.graphics {
        case .kitty:
            let cells = isExact ? nil : (columns: columns, rows: filled)
            return ScreenPicture(
                identity: identity, columns: columns, rows: rows,
                drawing: KittyImage.showing(picture, number: number, cells: cells),
                erasing: KittyImage.deleting(number: number))
        case .sixel:
            return ScreenPicture(
                identity: identity, columns: columns, rows: rows,
                drawing: SixelImage.showing(picture), erasing: "")
        }
    }
}
