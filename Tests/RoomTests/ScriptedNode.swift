import NIOCore
import NIOPosix
import Synchronization

/// A media service that does what a test says. Questions come on connections of their own, or on one
/// that is kept, as the client likes.
struct ScriptedNode {
    /// Told the number of the question, from 1, the offset that it begins with, and where to answer.
    typealias Answer = @Sendable (Int, Int, any Channel) -> Void

    private final class Questions: Sendable {
        let begins = Mutex<[Int]>([])
    }

    private let channel: any Channel
    private let questions: Questions

    /// Where the questions began, in their order.
    var begins: [Int] { questions.begins.withLock { $0 } }
    var url: String {
        "http://127.0.0.1:\(channel.localAddress!.port!)/asset/" + IntegrationTests.Media.hash
    }

    /// - Parameter sendBuffer: what its system takes to send, bytes.
    static func open(sendBuffer: Int? = nil, _ answer: @escaping Answer) async throws -> Self {
        let questions = Questions()
        var bootstrap = ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Reader(questions, answer))
                }
            }
        if let sendBuffer {
            bootstrap = bootstrap.childChannelOption(
                .socketOption(.so_sndbuf), value: SocketOptionValue(sendBuffer))
        }
        let channel = try await bootstrap.bind(host: "127.0.0.1", port: 0).get()
        return ScriptedNode(channel: channel, questions: questions)
    }

    func close() async throws { try await channel.close() }

    /// Of an answer with the bytes from `begin` to the end of `size`.
    static func head(from begin: Int, of size: Int, length: Int? = nil) -> String {
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes \(begin)-\(size - 1)/\(size)\r\n"
            + "Content-Length: \(length ?? size - begin)\r\n\r\n"
    }

    private final class Reader: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let questions: Questions
        private let answer: Answer
        private var text = ""

        init(_ questions: Questions, _ answer: @escaping Answer) {
            self.questions = questions
            self.answer = answer
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            text += String(buffer: unwrapInboundIn(data))
            guard let end = text.firstRange(of: "\r\n\r\n") else { return }
            let place = text.firstRange(of: "Range: bytes=")?.upperBound ?? text.endIndex
            let begin = Int(text[place...].prefix { $0.isNumber }) ?? -1
            text = String(text[end.upperBound...])
            let number = questions.begins.withLock {
                $0.append(begin)
                return $0.count
            }
            answer(number, begin, context.channel)
        }
    }
}

extension Channel {
    /// Sends text and bytes as they are, and ends the connection where it `closes`.
    func say(_ text: String, _ bytes: some Sequence<UInt8> = [], closes: Bool = false) {
        var buffer = ByteBuffer(string: text)
        buffer.writeBytes(bytes)
        let isSent = writeAndFlush(buffer)
        if closes { isSent.whenComplete { _ in self.close(promise: nil) } }
    }
}
