import ArgumentParser

/// `tutti manual`: what `deploy/install` puts where `man tutti` finds it. Like the scripts for
/// shells it is for packages, and the help does not list it.
struct Manual: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Write the manual page (tutti.1) to stdout.", shouldDisplay: false)

    func run() throws {
        print(
            ManualPage(try CommandTree(of: Tutti.self), version: Tutti.version).text, terminator: ""
        )
    }
}
