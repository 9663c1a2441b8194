import Tutti

/// Plays a file on the default device, from its beginning to its end.
func playOnce(_ file: String) async throws {
    let player = Player(url: file)
    let notices = player.notices()
    player.play()
    for await notice in notices {
        if case .didPlayToEnd = notice { return }
        if case .failedToPlayToEnd(let error) = notice { throw error }
    }
}
