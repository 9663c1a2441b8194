/// Which records count, worked out over places in a list instead of records.
///
/// A record *needs* the admission of the seat it is signed from, and that no removal of that seat
/// counts which does not spare it. Most follows from the founding, in any order. What is left open
/// needs, in the end, itself: removals that void each other, directly or by way of admissions. Such
/// a knot, a strongly connected part of what needs what (Tarjan, 1972), is cut where nothing it
/// needs outside is open: its removal that came first counts, with the admissions it rests upon.
/// So no record counts whose seat does not, and what only hangs on a knot has no say in it.
///
/// - Complexity: each knot that hangs on others costs a walk over what is still open; a walk is
///   O(records × removals of one seat), at most 640² / 4 steps.
struct Contradictions {
    enum Verdict { case open, counts, void }

    private(set) var verdicts: [Verdict]
    /// Knots that were cut.
    private(set) var count = 0

    private let isRemoval: [Bool]
    /// The place of the admission of the seat it is signed from; of the founding, its own.
    private let admission: [Int]
    /// The removals that void a record if they count.
    private let voiders: [[Int]]
    /// By place: the records that need it as an admission, and those that it would void.
    private var seated: [[Int]]
    private var voided: [[Int]]
    /// How much of what it needs is open.
    private var openNeeds: [Int]
    private var settled: [Int] = []

    /// - Parameters:
    ///   - isRemoval: by place, in the order in which they came; the founding is at 0.
    ///   - admission: what each rests upon.
    ///   - voiders: the removals that void it if they count.
    init(isRemoval: [Bool], admission: [Int], voiders: [[Int]]) {
        self.isRemoval = isRemoval
        self.admission = admission
        self.voiders = voiders
        verdicts = [Verdict](repeating: .open, count: admission.count)
        seated = [[Int]](repeating: [], count: admission.count)
        voided = seated
        openNeeds = voiders.map { 1 + $0.count }
        for place in admission.indices.dropFirst() {
            seated[admission[place]].append(place)
            for removal in voiders[place] { voided[removal].append(place) }
        }
        settle(0, .counts)
        spread()
        while verdicts.contains(.open) { cut() }
    }

    private mutating func settle(_ place: Int, _ verdict: Verdict) {
        guard verdicts[place] == .open else { return }
        verdicts[place] = verdict
        settled.append(place)
    }

    /// Settles what follows from what is settled.
    private mutating func spread() {
        while let place = settled.popLast() {
            let counts = verdicts[place] == .counts
            for other in seated[place] { counts ? release(other) : settle(other, .void) }
            for other in voided[place] { counts ? settle(other, .void) : release(other) }
        }
    }

    private mutating func release(_ place: Int) {
        openNeeds[place] -= 1
        if openNeeds[place] == 0 { settle(place, .counts) }
    }

    /// Cuts the knots that need nothing open but themselves; there is one where anything is open.
    private mutating func cut() {
        let before = count
        for knot in knots() {
            guard let first = knot.filter({ isRemoval[$0] }).min() else {
                preconditionFailure("admissions that rest upon each other")
            }
            var place = first
            while verdicts[place] == .open {
                settle(place, .counts)
                place = admission[place]
            }
            count += 1
        }
        precondition(count > before, "records stay open without a contradiction")
        spread()
    }

    /// The strongly connected parts of what is open that need nothing open outside.
    private func knots() -> [[Int]] {
        var knots: [[Int]] = []
        /// When a place was first come to, from 1; 0: not yet.
        var order = [Int](repeating: 0, count: verdicts.count)
        var lowest = order
        var isOnPath = [Bool](repeating: false, count: verdicts.count)
        var isOutside = isOnPath
        var path: [Int] = []
        var walk: [(place: Int, next: Int)] = []
        var last = 0
        func come(to place: Int) {
            last += 1
            order[place] = last
            lowest[place] = last
            path.append(place)
            isOnPath[place] = true
            walk.append((place, 0))
        }
        for start in verdicts.indices where verdicts[start] == .open && order[start] == 0 {
            come(to: start)
            while let (place, next) = walk.last {
                guard next <= voiders[place].count else {
                    walk.removeLast()
                    if let above = walk.last?.place {
                        lowest[above] = min(lowest[above], lowest[place])
                    }
                    guard lowest[place] == order[place] else { continue }
                    let part = path[(path.lastIndex(of: place) ?? 0)...]
                    path.removeLast(part.count)
                    for member in part { isOnPath[member] = false }
                    let needsOthers = part.contains { isOutside[$0] }
                    if !needsOthers { knots.append(Array(part)) }
                    if let above = walk.last?.place { isOutside[above] = true }
                    continue
                }
                walk[walk.count - 1].next += 1
                let need = next == 0 ? admission[place] : voiders[place][next - 1]
                guard verdicts[need] == .open else { continue }
                if order[need] == 0 {
                    come(to: need)
                } else if isOnPath[need] {
                    lowest[place] = min(lowest[place], order[need])
                } else {
                    isOutside[place] = true
                }
            }
        }
        return knots
    }
}
