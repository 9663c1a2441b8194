import ArgumentParser
import TuttiSimulation

/// `tutti simulate cards`: how far from its line is what leaves a card?
struct SimulateCards: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cards",
        abstract: "Measure the error at the DAC on simulated sound cards.",
        discussion: """
            The output thread's own code on cards whose every frame's instant is known, against a \
            perfect clock. Their crystals lie between -120 and +120 ppm, wander by 0.01 ppm/√s and \
            change by 2 ppm, at once, after 100 s. Errors in µs from 10 s on (positive: late), \
            ratios in ppm; "bound" is the promise that half of all are narrower than, "kept" the \
            share of them that held on the worst crystal.

            Cards: fine (counts frames), hda (bursts of 8 frames), batch (moves at the period's \
            interrupt only), usb (counts milliseconds). The pointers are late, never early.

            Example:
              tutti simulate cards --seeds 2 --seconds 60
            """)

    @Option(parsing: .unconditional, help: "Crystals of each kind of card.")
    var seeds = 6

    @Option(parsing: .unconditional, help: "Length of each run, seconds.")
    var seconds = 300

    func validate() throws {
        guard (1...1000).contains(seeds) else {
            throw ValidationError("--seeds \(seeds): 1 to 1000")
        }
        guard (15...86_400).contains(seconds) else {
            throw ValidationError("--seconds \(seconds): 15 to 86400")
        }
    }

    func run() {
        let comparison = CardComparison(seconds: Double(seconds), seeds: seeds)
        Terminal.output.write("\(comparison)\n")
    }
}
