import ArgumentParser
import TuttiGroupControl
import TuttiLinuxHost
import TuttiRoom

/// `tutti household`: who belongs together.
struct HouseholdCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "household",
        abstract: "Say who belongs to the household, and let machines in or out.",
        discussion: """
            Machines of one household steer each other's groups, feed them files and read what they \
            play; nobody else does. A machine founds one when it leads for the first time; another \
            one comes in with tutti follow or tutti join: both sides show six digits, and a person \
            who sees that they are the same accepts them here.

            Any member may let in, rename and remove. Who is removed is out at once.

            Examples:
              tutti household
              tutti household accept 482913
              tutti household invite --minutes 10
              tutti household remove "old phone"
            """,
        subcommands: [
            HouseholdList.self, HouseholdAccept.self, HouseholdDecline.self, HouseholdInviting.self,
            HouseholdRename.self, HouseholdRemove.self, HouseholdLeave.self,
        ],
        defaultSubcommand: HouseholdList.self)
}

/// What a command about the household works with.
struct HouseholdOptions: ParsableArguments {
    @OptionGroup var options: ControlOptions

    struct Ground {
        var access: HouseholdAccess
        /// `nil`: none can be reached, or it does not know this machine.
        var leader: HostPort?
        /// Why not.
        var problem: (any Error)?
        /// Its address was given: nobody knows whether Avahi would find it.
        var isNamed = false
    }

    func open() async throws -> Ground {
        let settings = try await options.settings()
        let credentials = try settings.credentials()
        let access = try HouseholdAccess(credentials)
        do {
            let client = try await LeaderSearch(settings, credentials).client()
            return Ground(
                access: access, leader: client.address, isNamed: settings.leader != nil)
        } catch {
            return Ground(access: access, problem: error)
        }
    }

    /// … where nothing can be done without a leader.
    func openWithLeader() async throws -> (HouseholdAccess, HostPort) {
        let (access, leader, _) = try await openWithAnyLeader()
        return (access, leader)
    }

    func openWithAnyLeader() async throws -> (HouseholdAccess, HostPort, isNamed: Bool) {
        let ground = try await open()
        guard let leader = ground.leader else {
            throw ground.problem ?? RoomError(.noLeader, "no leader answers")
        }
        return (ground.access, leader, ground.isNamed)
    }
}

/// `tutti household list`.
struct HouseholdList: AsyncParsableCommand, Wordless {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the members: name, fingerprint, since when, last seen."
    )

    @Flag(help: "Show fingerprints in full.") var full = false
    @OptionGroup var household: HouseholdOptions

    func run() async throws {
        try await untilInterrupted {
            let ground = try await household.open()
            guard ground.access.isMember else {
                throw RoomError(
                    .stranger,
                    "this machine belongs to no household: `tutti join` pairs it with one, `tutti node` founds one where there is none"
                )
            }
            let members = try await ground.access.members(asking: ground.leader)
            for line in MemberTable(members, isFull: full).lines { Terminal.output.say(line) }
            if ground.access.contradictionCount > 0 {
                Terminal.error.say(
                    "tutti: warning: members have removed each other, and who heard of it first is not the same everywhere: `tutti household remove` by a third one settles who is out"
                )
            }
            guard let leader = ground.leader else { return }
            for candidate in try await ground.access.candidates(at: leader) {
                Terminal.output.say(
                    "\"\(candidate.name.shown())\" wants to join and should show \(candidate.digits): `tutti household accept \(candidate.digits)`"
                )
            }
        }
    }
}

/// `tutti household accept`.
struct HouseholdAccept: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "accept",
        abstract: "Let in the machine that shows these digits.",
        discussion: """
            Look at the machine: the digits there must be the same as here. Somebody between the two \
            would make them differ.
            """)

    @Argument(help: ArgumentHelp("The six digits.", valueName: "digits")) var digits: [String]
    @OptionGroup var household: HouseholdOptions

    func run() async throws {
        try await untilInterrupted {
            let (access, leader) = try await household.openWithLeader()
            try await access.accept(digits.joined(), at: leader)
            Terminal.output.say("accepted")
        }
    }
}

/// `tutti household decline`.
struct HouseholdDecline: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "decline", abstract: "Send away the machine that shows these digits.")

    @Argument(help: ArgumentHelp("The six digits.", valueName: "digits")) var digits: [String]
    @OptionGroup var household: HouseholdOptions

    func run() async throws {
        try await untilInterrupted {
            let (access, leader) = try await household.openWithLeader()
            try await access.decline(digits.joined(), at: leader)
            Terminal.output.say("sent away")
        }
    }
}

/// `tutti household invite`.
struct HouseholdInviting: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "invite",
        abstract: "Print a code that lets one machine in, once: tutti join CODE.",
        discussion: """
            For scripts and cameras: nobody has to compare anything. Who has the code comes in, so \
            it is for the one who sets up the machine. It ends when it is used, when its time is \
            over, and when the leader ends.
            """)

    @Option(help: ArgumentHelp("How long it is good (default: 10).", valueName: "1…1440"))
    var minutes = 10
    @Flag(help: "Print the code alone.") var quiet = false
    @OptionGroup var household: HouseholdOptions

    func run() async throws {
        try await untilInterrupted {
            let (access, leader, isNamed) = try await household.openWithAnyLeader()
            let invite = try await access.invite(minutes: minutes, at: leader)
            if !quiet, Terminal.output.isInteractive {
                for line in invite.drawing { Terminal.output.say(line) }
            }
            Terminal.output.say(invite.text)
            if !quiet {
                let option = isNamed ? Self.option(for: leader, at: Self.ownAddress) : ""
                Terminal.error.say(
                    "Good once, for \(minutes == 1 ? "a minute" : "\(minutes) minutes"), at the leader of now: tutti join \(invite.text)\(option)"
                )
            }
        }
    }

    /// What another machine writes to find a leader whose address was given here.
    ///
    /// - Parameter ownAddress: of this machine on its network; `nil`: it has none.
    static func option(for leader: HostPort, at ownAddress: String?) -> String {
        var leader = leader
        if leader.isThisMachine, let ownAddress { leader.host = ownAddress }
        return " --leader \(leader)"
    }

    private static var ownAddress: String? {
        let interfaces = try? InterfaceFacts.all()
        return interfaces?.first { $0.isUp && !$0.isLoopback && !$0.addresses.isEmpty }?
            .addresses.first
    }
}

/// `tutti household rename`.
struct HouseholdRename: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rename", abstract: "Call a member something else; its key stays.")

    @Argument(
        help: ArgumentHelp("Its name, or its fingerprint.", valueName: "member"),
        completion: .custom(Completions.members))
    var member: String
    @Argument(help: ArgumentHelp("What it is called from now on.", valueName: "name"))
    var name: String
    @OptionGroup var household: HouseholdOptions

    func run() async throws {
        try await untilInterrupted {
            let ground = try await household.open()
            try await ground.access.rename(member, to: name, telling: ground.leader)
            Terminal.output.say("\(member.shown()) is called \(name.shown()) now")
        }
    }
}

/// `tutti household remove`.
struct HouseholdRemove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Put a member out: it has no links and no keys from now on.",
        discussion: """
            What it let in stays, unless --stolen says that somebody else may have done that with it. \
            Who came in by an invite was let in by the leader of then: the leader's log says who had \
            asked for the invite. Files that it has fetched it keeps.
            """)

    @Argument(
        help: ArgumentHelp("Its name, or its fingerprint.", valueName: "member"),
        completion: .custom(Completions.members))
    var member: String
    @Flag(help: "Its key is in wrong hands: whom it has let in goes too.") var stolen = false
    @OptionGroup var household: HouseholdOptions

    func run() async throws {
        try await untilInterrupted {
            let ground = try await household.open()
            let isTold = try await ground.access.remove(
                member, isStolen: stolen, telling: ground.leader)
            Terminal.output.say("\(member.shown()) does not belong to the household any more")
            if !isTold {
                Terminal.error.say(
                    "tutti: warning: no leader could be told; it is told when this machine next has a link to one"
                )
            }
        }
    }
}

/// `tutti household leave`.
struct HouseholdLeave: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "leave",
        abstract: "Leave the household; this machine belongs to nobody then.")

    @OptionGroup var household: HouseholdOptions

    func run() async throws {
        try await untilInterrupted {
            let ground = try await household.open()
            guard ground.access.isMember else {
                throw RoomError(.refused, "this machine belongs to no household")
            }
            let isTold = try await ground.access.leave(telling: ground.leader)
            Terminal.output.say("this machine belongs to no household any more")
            if !isTold {
                Terminal.error.say(
                    "tutti: warning: no leader could be told: the others list this machine until one of them removes it"
                )
            }
        }
    }
}

/// `tutti join`.
struct Join: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Pair this machine with a household, to steer its groups or to be a room.",
        discussion: """
            Without a code both sides show six digits; accept them where the music is, or with tutti \
            household accept on any member. With the code of tutti household invite nobody is asked.

            tutti follow does the same by itself where the machine belongs to nobody.

            Examples:
              tutti join
              tutti join 0400-20G3-0G2G-C1R8-1450-P30D-1R7V-H3E2
            """)

    @Argument(help: ArgumentHelp("The code of an invite.", valueName: "code")) var code: String?
    @Option(
        help: ArgumentHelp(
            "What this machine is called (default: the host's name).", valueName: "name"))
    var name: String?
    @OptionGroup var options: ControlOptions

    func run() async throws {
        var settings = try await options.settings()
        if let name { settings.name = name }
        let chosen = settings
        try await untilInterrupted {
            let credentials = try chosen.credentials()
            let access = try HouseholdAccess(credentials)
            guard access.isFree else {
                throw RoomError(
                    .refused,
                    "this machine belongs to a household already: `tutti household leave` first")
            }
            let address = try await LeaderSearch(chosen, credentials).anyHousehold()
            if let code {
                try await access.join(code: code, at: address)
            } else {
                try await access.pair(at: address) {
                    Terminal.output.say(
                        "Another machine is being paired there; this one is next.")
                } show: { digits, household in
                    Terminal.output.say(
                        "\(digits): \"\(household)\" should show the same. If it does, accept them there, or on any member with `tutti household accept \(digits.filter(\.isNumber))`"
                    )
                    Terminal.output.say(
                        "If it shows others, somebody is in between: stop here with Ctrl-C.")
                }
            }
            Terminal.output.say("This machine belongs to the household now.")
        }
    }
}
