import TuttiAvahiDiscovery

@testable import TuttiRoom

/// TXT records, as anybody on the LAN may announce them.
extension Harness {
    static let announcements = [announcedText, announcedRooms]

    private static let announcedText = Harness(
        name: "announced-text",
        seeds: {
            [
                "kitchen", String(repeating: "küche🎵", count: 60),
                String(repeating: "e\u{301}", count: 99),
            ]
            .map { Array($0.utf8) }
        },
        longest: 1_024,
        check: .plain { bytes in
            let value = String(decoding: bytes, as: UTF8.self)
            let attributes = AnnouncedText.attributes("name", value)
            for (key, part) in attributes {
                try expect(
                    key.utf8.count + part.utf8.count <= Advertisement.longestAttribute,
                    "a string of \(part.utf8.count) bytes under \(key)")
            }
            try expect(
                AnnouncedText.label(for: value).utf8.count <= Advertisement.longestName,
                "a label that is too long")
            let again = AnnouncedText.value("name", in: attributes) ?? ""
            // A name has 256 bytes at most, and no character of a hundred of them.
            guard value.utf8.count <= 512, value.allSatisfy({ $0.utf8.count < 100 }) else {
                return
            }
            try expect(
                again.utf8.elementsEqual(value.utf8), "in parts and together again: \(again)")
        })

    /// Strings with their lengths before them, as in the record (RFC 6763, 6).
    private static let announcedRooms = Harness(
        name: "announced-rooms",
        seeds: {
            let record = ["role=leader", "v=1", "name=kit", "name2=chen", "group=", "x"]
            return [record.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }]
        },
        longest: 2_048,
        check: .plain { bytes in
            var script = InputBytes(bytes)
            var attributes: [String: String] = [:]
            var endpoints: [ServiceEndpoint] = []
            while !script.isEmpty {
                let string = String(decoding: script.bytes(Int(script.byte())), as: UTF8.self)
                let sign = string.firstIndex(of: "=") ?? string.endIndex
                attributes[String(string[..<sign])] = String(string[sign...].dropFirst())
                endpoints.append(
                    ServiceEndpoint(address: string, port: string.count, interfaceIndex: 1))
            }
            let service = Service(
                name: attributes["name"] ?? "", hostName: "host", endpoints: endpoints,
                attributes: attributes)
            guard let room = DiscoveredRoom(service) else { return }
            try expect(room.addresses.count <= DiscoveredRoom.mostAddresses, "too many addresses")
            _ = room.isCalled("kitchen")
        })
}
