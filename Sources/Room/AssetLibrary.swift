import FFmpegMedia
import GroupControl
import Logging
import Playout

/// The assets of a session on the leader: opened once to learn what they are, hashed, in order.
struct AssetLibrary: Sendable {
    let assets: [(descriptor: AssetDescriptor, file: Member.AssetFile)]
    private let files: [ContentHash: Member.AssetFile]

    private init(_ assets: [(descriptor: AssetDescriptor, file: Member.AssetFile)]) {
        self.assets = assets
        files = Dictionary(assets.map { ($0.descriptor.hash, $0.file) }) { first, _ in first }
    }

    /// Opens files and downloads URLs.
    ///
    /// - Throws: `RoomError` with code `badAsset` for the first that cannot be played.
    static func open(
        _ locations: [String], cache: MediaCache, pieces: PieceLists, logger: Logger
    ) async throws -> AssetLibrary {
        guard locations.count <= SessionState.longestQueue else {
            throw RoomError(
                .badAsset,
                "\(locations.count) assets are more than a session holds (\(SessionState.longestQueue))"
            )
        }
        var assets: [(descriptor: AssetDescriptor, file: Member.AssetFile)] = []
        for location in locations {
            logger.info("reading", metadata: ["asset": "\(location)"])
            do {
                assets.append(
                    try await describe(
                        location, cache: cache, pieces: pieces, logger: logger))
            } catch is CancellationError {
                throw CancellationError()
            } catch {
                throw RoomError(.badAsset, "\(error)")
            }
        }
        return AssetLibrary(assets)
    }

    func file(of asset: AssetDescriptor) throws(RoomError) -> Member.AssetFile {
        guard let file = files[asset.hash] else {
            throw RoomError(.badAsset, "\(asset.title): not in this session")
        }
        return file
    }

    private static func describe(
        _ location: String, cache: MediaCache, pieces: PieceLists, logger: Logger
    ) async throws -> (AssetDescriptor, Member.AssetFile) {
        var file = Member.AssetFile(path: location)
        if isURL(location) {
            let held = try await blocking { cancellation throws(MediaError) in
                try cache.download(url: location, cancellation: cancellation)
            }
            file = Member.AssetFile(path: held.path, hold: held)
        }
        let path = file.path
        let (info, print) = try await blocking { cancellation throws(MediaError) in
            let source: FFmpegSource
            do throws(MediaError) {
                source = try FFmpegSource(path, cancellation: cancellation)
            } catch {
                // The file of the cache means nothing to whoever gave the address.
                var named = error
                named.subject = location
                throw named
            }
            guard source.info.frameCount ?? 0 > 0 else {
                throw MediaError(
                    .unsupported, operation: "open", subject: location,
                    reason: "has no end or no sound; give a file or URL of a finished recording")
            }
            let (print, list) = try MediaFingerprint.measure(path, cancellation: cancellation)
            pieces.keep(list, of: print.text)
            return (source.info, print)
        }
        if let promised = info.promisedFrameCount, let count = info.frameCount {
            let (has, should) = (count / Int64(info.sampleRate), promised / Int64(info.sampleRate))
            logger.warning(
                "the file was cut off; what is there is played",
                metadata: ["asset": "\(location)", "seconds": "\(has) of \(should)"])
        }
        let descriptor = try AssetDescriptor(
            hash: ContentHash(bytes: print.hash), byteCount: print.byteCount,
            sampleRate: info.sampleRate, frameCount: info.frameCount ?? 0,
            title: isURL(location) && path.contains(info.title) ? name(of: location) : info.title,
            fileExtension: fileExtension(of: location),
            piecesRoot: print.piecesRoot.map { try ContentHash(bytes: $0) })
        return (descriptor, file)
    }

    /// The last part of an address, for want of a title.
    static func name(of location: String) -> String {
        let path = location.prefix { $0 != "?" && $0 != "#" }
        return path.split(separator: "/").last.map(String.init) ?? location
    }

    static func isURL(_ location: String) -> Bool {
        location.hasPrefix("http://") || location.hasPrefix("https://")
    }

    /// The extension of a path or URL when it looks like one, else empty: FFmpeg looks inside.
    static func fileExtension(of location: String) -> String {
        let path = location.prefix { $0 != "?" && $0 != "#" }
        guard let dot = path.lastIndex(of: "."), !path[dot...].contains("/") else { return "" }
        let text = path[path.index(after: dot)...]
        let isPlain =
            text.utf8.count <= AssetDescriptor.longestExtension
            && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
        return isPlain ? text.lowercased() : ""
    }
}
