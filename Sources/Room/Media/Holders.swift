import NIOCore
import TuttiFFmpegMedia
import TuttiGroupControl
import TuttiPlayout

/// Who may have the bytes of what another node has put into the queue: the leader before, and rooms,
/// which hold what plays and is next.
struct Holders: Sendable {
    /// Who led before.
    var predecessor: HostPort
    /// It went without a word. It may be back and is asked like the others, and not waited for.
    var isLost = false
    /// Where the rooms of now hand out what they have fetched.
    var rooms: @Sendable () async -> [HostPort] = { [] }

    /// For one of them to answer.
    private static let patience = TimeAmount.seconds(1)
    /// Asked at once; in a large house one lot after the other.
    private static let mostAsked = 16

    /// One that has all of an asset: the first to say so.
    ///
    /// - Throws: `MediaError`, code `network`, where nobody has it just now.
    func holder(of asset: AssetDescriptor, _ client: MediaClient) async throws -> HostPort {
        let places = [predecessor] + (await rooms())
        for start in stride(from: 0, to: places.count, by: Self.mostAsked) {
            let part = places[start...].prefix(Self.mostAsked)
            if let found = await holder(of: asset, client, among: part) { return found }
            try Task.checkCancellation()
        }
        // It may have to fetch it itself first.
        if !isLost { return predecessor }
        throw MediaError(
            .network, operation: "fetch", subject: asset.title,
            reason: "who put it into the queue is gone, and no room has all of it")
    }
}

extension Holders {
    private func holder(
        of asset: AssetDescriptor, _ client: MediaClient, among places: ArraySlice<HostPort>
    ) async -> HostPort? {
        await withTaskGroup(of: HostPort?.self) { group in
            for place in places {
                group.addTask {
                    let has = try? await blocking { cancellation throws(MediaError) in
                        client.has(
                            place.address(of: asset), within: Self.patience, cancellation)
                    }
                    return has ?? false ? place : nil
                }
            }
            defer { group.cancelAll() }
            for await place in group where place != nil { return place }
            return nil
        }
    }
}

extension HostPort {
    /// Where a media service hands out an asset.
    func address(of asset: AssetDescriptor) -> String {
        "http://\(self)/asset/\(asset.hash.hex)"
    }
}
