import Foundation
import NIOCore
import NIOPosix
import Testing

/// A TCP connection to this machine that sends and receives bytes as they are.
struct RawConnection {
    let channel: any Channel
    private var inbound: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
    private let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
    private var received = ByteBuffer()

    /// Connects, runs `body` and closes.
    ///
    /// - Parameter reads: without, nothing is taken from the connection unless asked for.
    static func open(
        to port: Int, reads: Bool = true,
        _ body: @Sendable (inout RawConnection) async throws -> Void
    ) async throws {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.autoRead, value: reads)
            .connect(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(
                        wrappingChannelSynchronously: channel,
                        configuration: .init(isOutboundHalfClosureEnabled: false))
                }
            }
        try await channel.executeThenClose { inbound, outbound in
            var connection = RawConnection(
                channel: channel.channel, inbound: inbound.makeAsyncIterator(), outbound: outbound)
            try await body(&connection)
        }
    }

    /// A connection on which nobody listens.
    ///
    /// - Parameters:
    ///   - counting: goes up by the bytes that come.
    ///   - receiveBuffer: what the system takes for it, bytes.
    static func connect(
        to port: Int, reads: Bool = true, counting: Counter? = nil, receiveBuffer: Int? = nil
    ) async throws -> any Channel {
        var bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.autoRead, value: reads)
        if let receiveBuffer {
            bootstrap = bootstrap.channelOption(
                .socketOption(.so_rcvbuf), value: SocketOptionValue(receiveBuffer))
        }
        if let counting {
            bootstrap = bootstrap.channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(ByteCounter(counting))
                }
            }
        }
        return try await bootstrap.connect(host: "127.0.0.1", port: port).get()
    }

    private final class ByteCounter: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let counter: Counter
        init(_ counter: Counter) { self.counter = counter }
        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            counter.add(unwrapInboundIn(data).readableBytes)
        }
    }

    static func crowd(
        of count: Int, at port: Int, saying word: String
    ) async throws -> [any Channel] {
        var crowd: [any Channel] = []
        for _ in 0..<count {
            let channel = try await connect(to: port)
            crowd.append(channel)
            // It may be closed by now.
            try? await channel.writeAndFlush(ByteBuffer(string: word))
        }
        return crowd
    }

    /// Says `answer` whenever it is told anything.
    ///
    /// - Parameters:
    ///   - closes: ends the connection after an answer.
    ///   - used: called for each connection that is told something, once.
    static func answeringServer(
        _ answer: String, closes: Bool = false, used: @escaping @Sendable () -> Void = {}
    ) async throws -> any Channel {
        final class Answers: ChannelInboundHandler {
            typealias InboundIn = ByteBuffer
            private let answer: String
            private let closes: Bool
            private var used: (() -> Void)?

            init(_ answer: String, _ closes: Bool, _ used: @escaping () -> Void) {
                self.answer = answer
                self.closes = closes
                self.used = used
            }

            func channelRead(context: ChannelHandlerContext, data: NIOAny) {
                used.take()?()
                let channel = context.channel
                let isSent = channel.writeAndFlush(ByteBuffer(string: answer))
                if closes { isSent.whenComplete { _ in channel.close(promise: nil) } }
            }
        }
        return try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Answers(answer, closes, used))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
    }

    /// Takes connections and says nothing.
    static func silentServer(
        taken: @escaping @Sendable (any Channel) -> Void = { _ in }
    ) async throws -> any Channel {
        try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                taken(channel)
                return channel.eventLoop.makeSucceededVoidFuture()
            }
            .bind(host: "127.0.0.1", port: 0).get()
    }

    func send(_ bytes: some Collection<UInt8>) async throws {
        try await outbound.write(ByteBuffer(bytes: bytes))
    }

    /// The next bytes, so many.
    mutating func read(_ count: Int) async throws -> Data {
        while received.readableBytes < count { try await readMore() }
        return Data(received.readBytes(length: count) ?? [])
    }

    /// Reads, whatever comes, until the other end has closed.
    mutating func readToEnd() async throws -> ByteBuffer {
        do {
            while var more = try await inbound.next(isolation: #isolation) {
                received.writeBuffer(&more)
            }
        } catch is IOError {
            // A reset is an end, too.
        }
        return received
    }

    // MARK: HTTP

    struct Response {
        var status: Int
        /// Names in lower case.
        var headers: [String: String]
        var body: Data
    }

    /// Sends a request and reads its response.
    mutating func request(
        _ method: String, _ path: String, headers: [String: String] = [:]
    ) async throws -> Response {
        var text = "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\n"
        for (name, value) in headers { text += "\(name): \(value)\r\n" }
        try await send((text + "\r\n").utf8)
        return try await response(hasBody: method != "HEAD")
    }

    private mutating func response(hasBody: Bool) async throws -> Response {
        let head = try await readHead()
        let lines = head.split(separator: "\r\n")
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            headers[line[..<colon].lowercased()] =
                String(line[line.index(after: colon)...].drop { $0 == " " })
        }
        let first = try #require(lines.first)
        let status = try #require(Int(first.split(separator: " ")[1]))
        let count = hasBody ? try #require(headers["content-length"].flatMap { Int($0) }) : 0
        while received.readableBytes < count { try await readMore() }
        let body = Data(received.readBytes(length: count) ?? [])
        return Response(status: status, headers: headers, body: body)
    }

    private mutating func readHead() async throws -> String {
        let end = Array("\r\n\r\n".utf8)
        while true {
            let view = Array(received.readableBytesView.prefix(8_192))
            let place = view.indices.first { view[$0...].starts(with: end) }
            if let place {
                return received.readString(length: place + end.count) ?? ""
            }
            try await readMore()
        }
    }

    private mutating func readMore() async throws {
        guard var more = try await inbound.next(isolation: #isolation) else { throw EarlyEnd() }
        received.writeBuffer(&more)
    }

    struct EarlyEnd: Error {}
}
