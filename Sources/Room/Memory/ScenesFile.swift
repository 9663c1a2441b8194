/// Where a machine keeps the scenes of its owner: the file `scenes` of the state folder.
package enum ScenesFile {
    private static let name = "scenes"

    /// - Returns: `nil` where there are none yet.
    /// - Throws: what went wrong, for a person.
    package static func read(folder: String) throws -> [UInt8]? {
        try StateFolder(path: folder).readBytes(name, most: StateFolder.longestFile)
    }

    /// Replaces it, as a whole and at once.
    ///
    /// - Throws: what went wrong, for a person.
    package static func write(_ bytes: [UInt8], folder: String) throws {
        guard bytes.count <= StateFolder.longestFile else {
            throw RoomError(
                .badState,
                "all scenes together have \(bytes.count) bytes, and there is room for \(StateFolder.longestFile): delete one first (tutti scene delete)"
            )
        }
        try StateFolder(path: folder).write(name, bytes)
    }
}
