import Testing

@testable import TuttiRoom

struct HostPortTests {
    @Test(arguments: [
        ("kitchen.local", "kitchen.local", 7430), ("10.0.0.5:81", "10.0.0.5", 81),
        ("[::1]", "::1", 7430), ("[fe80::1%3]:9", "fe80::1%3", 9), ("fe80::1", "fe80::1", 7430),
    ])
    func `an address is a host with or without a port`(
        text: String, host: String, port: Int
    ) throws {
        #expect(try HostPort(parsing: text) == HostPort(host: host, port: port))
    }

    @Test(arguments: [
        "", ":80", "host:", "host:0", "host:65536", "host:http", "[::1]x", "a b", "[::1", "::1]",
        "[host:80", "[[::1]]:80", "http://nas.local", "http://nas.local:7430", "host/x",
        "host:99999",
    ])
    func `text that is no address is refused and quoted`(text: String) {
        let error = #expect(throws: RoomError.self) { try HostPort(parsing: text) }
        #expect(error?.code == .badAddress)
        #expect(error?.description.contains("\"\(text)\"") == true)
    }

    @Test func `a web address is called one, and a port that there is not has a range`() {
        for (text, words) in [
            ("http://nas.local:7430/x", "is a web address"), ("nas.local:99999", "1 to 65535"),
        ] {
            let error = #expect(throws: RoomError.self) { try HostPort(parsing: text) }
            #expect(error?.description.contains(words) == true)
        }
    }

    @Test func `what is printed can be read`() throws {
        for address in [HostPort(host: "a", port: 1), HostPort(host: "fe80::1", port: 2)] {
            #expect(try HostPort(parsing: address.description) == address)
        }
    }
}
