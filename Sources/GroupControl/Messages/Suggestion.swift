/// Which of the words that there are somebody meant by one that there is not.
public enum Suggestion {
    /// The nearest of `words`, or none where nothing is near: up to a third of the letters may be
    /// missing, added, exchanged or swapped, and capitals do not count. A beginning of exactly one
    /// of the words is near, too.
    ///
    /// - Complexity: the product of both lengths for each word; longer than 64 letters is not
    ///   compared.
    public static func nearest(to word: String, among words: [String]) -> String? {
        let letters = Array(word.lowercased())
        guard !letters.isEmpty, letters.count <= 64 else { return nil }
        let distances = words.filter { $0.count <= 64 }
            .map { (word: $0, distance: distance(letters, Array($0.lowercased()))) }
            .sorted { ($0.distance, $0.word) < ($1.distance, $1.word) }
        if let first = distances.first, first.distance <= max(1, letters.count / 3),
            first.distance < first.word.count
        {
            return first.word
        }
        let begun = Set(words).filter { $0.lowercased().hasPrefix(word.lowercased()) }
        return begun.count == 1 ? begun.first : nil
    }

    /// "; did you mean X?", or nothing: stands behind a sentence.
    public static func question(for word: String, among words: [String]) -> String {
        nearest(to: word, among: words).map { "; did you mean \"\($0)\"?" } ?? ""
    }

    /// Edits from one to the other: letters added, removed or exchanged, and neighbours swapped
    /// (the restricted form of Damerau and Levenshtein).
    static func distance(_ a: [Character], _ b: [Character]) -> Int {
        if a.isEmpty || b.isEmpty { return max(a.count, b.count) }
        var before: [Int] = []
        var last = Array(0...b.count)
        for i in 1...a.count {
            var row = [i]
            for j in 1...b.count {
                let exchanged = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)
                var best = min(last[j] + 1, row[j - 1] + 1, exchanged)
                if i > 1, j > 1, a[i - 1] == b[j - 2], a[i - 2] == b[j - 1] {
                    best = min(best, before[j - 2] + 1)
                }
                row.append(best)
            }
            (before, last) = (last, row)
        }
        return last[b.count]
    }
}
