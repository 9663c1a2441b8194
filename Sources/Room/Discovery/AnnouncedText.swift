import TuttiAvahiDiscovery

/// Names of any length in what Avahi announces, which holds short ones only: a label of DNS has 63
/// bytes, a string of a TXT record 255.
enum AnnouncedText {
    /// A label for a name: the name itself where it fits, else its beginning and a few digits of
    /// all of it, so that two long names that begin alike are two labels.
    static func label(for name: String) -> String {
        guard name.utf8.count > Advertisement.longestName else { return name }
        let mark = "~" + hexText(fingerprint(name)).suffix(markDigits)
        return name.cut(toBytes: Advertisement.longestName - mark.utf8.count) + mark
    }

    /// One name in a hundred that begin alike has the mark of another once in 170 000 LANs.
    private static let markDigits = 6

    /// A value under a key, continued under `key2`, `key3`… where it is long.
    static func attributes(_ key: String, _ value: String) -> [String: String] {
        var attributes: [String: String] = [:]
        var rest = Substring(value)
        var number = 1
        repeat {
            let part = number == 1 ? key : "\(key)\(number)"
            let piece = String(rest).cut(toBytes: Advertisement.longestAttribute - part.utf8.count)
            attributes[part] = piece
            rest = rest.dropFirst(piece.count)
            number += 1
        } while !rest.isEmpty && number <= mostParts
        return attributes
    }

    /// - Returns: `nil` where there is none.
    static func value(_ key: String, in attributes: [String: String]) -> String? {
        guard var value = attributes[key] else { return nil }
        for number in 2...mostParts {
            guard let part = attributes["\(key)\(number)"] else { break }
            value += part
        }
        return value
    }

    /// Longer than any name of ours, or of a program of another time.
    private static let mostParts = 4
}

extension String {
    /// As many whole characters from its beginning as fit.
    func cut(toBytes limit: Int) -> String {
        guard utf8.count > limit else { return self }
        var result = ""
        var bytes = 0
        for character in self {
            bytes += character.utf8.count
            guard bytes <= limit else { break }
            result.append(character)
        }
        // A single character may be longer than that.
        guard result.isEmpty, limit > 0 else { return result }
        var scalars = String.UnicodeScalarView()
        bytes = 0
        for scalar in unicodeScalars {
            bytes += String(scalar).utf8.count
            guard bytes <= limit else { break }
            scalars.append(scalar)
        }
        return String(scalars)
    }
}
