/// A language as containers write it (ISO 639-1 or 639-2, BCP 47), for comparing.
///
/// Matroska and MP4 write three letters, people write two: `de`, `deu`, `ger` and `de-AT` are one
/// language.
struct LanguageTag: Equatable {
    /// Three letters where there are such; in lower case.
    let language: String
    /// What follows, region or script; in lower case.
    let subtags: [Substring]

    init?(_ text: String) {
        let parts = text.lowercased().split { $0 == "-" || $0 == "_" }
        guard let first = parts.first, first != "und" else { return nil }
        language = Self.threeLetters[String(first)] ?? String(first)
        subtags = Array(parts.dropFirst())
    }

    /// How well something in `other` serves who asks for this; `nil`: not at all.
    func match(_ other: LanguageTag) -> Int? {
        guard language == other.language else { return nil }
        return subtags.count { other.subtags.contains($0) }
    }

    /// By two letters, and by the three of a library's catalogue (ISO 639-2/B), to the ones of ISO 639-2/T.
    private static let threeLetters: [String: String] = {
        var codes: [String: String] = [:]
        for word in table.split(separator: " ") {
            let term = String(word.dropFirst(2).prefix(3))
            codes[String(word.prefix(2))] = term
            if word.count > 5 { codes[String(word.dropFirst(5))] = term }
        }
        return codes
    }()

    /// Two letters, three, and three others where there are such.
    private static let table = """
        aaaar ababk afafr akaka amamh arara anarg asasm avava aeave ayaym azaze babak bmbam \
        bebel bnben bhbih bibis bobodtib bsbos brbre bgbul cacat cscescze chcha ceche cuchu \
        cvchv kwcor cocos crcre cycymwel dadan dedeuger dvdiv dzdzo elellgre eneng eoepo etest \
        eueusbaq eeewe fofao fafasper fjfij fifin frfrafre fyfry ffful gdgla gagle glglg gvglv \
        gngrn guguj hthat hahau heheb hzher hihin hohmo hrhrv huhun hyhyearm igibo ioido iiiii \
        iuiku ieile iaina idind ikipk isislice itita jvjav jajpn klkal knkan kskas kakatgeo \
        krkau kkkaz kmkhm kikik rwkin kykir kvkom kgkon kokor kjkua kukur lolao lalat lvlav \
        lilim lnlin ltlit lbltz lulub lglug mhmah mlmal mrmar mkmkdmac mgmlg mtmlt mnmon \
        mimrimao msmsamay mymyabur nanau nvnav nrnbl ndnde ngndo nenep nlnlddut nnnno nbnob \
        nonor nynya ococi ojoji orori omorm ososs papan pipli plpol ptpor pspus quque rmroh \
        roronrum rnrun rurus sgsag sasan sisin skslkslo slslv sesme smsmo snsna sdsnd sosom \
        stsot esspa sqsqialb scsrd srsrp ssssw susun swswa svswe tytah tatam tttat tetel tgtgk \
        tltgl ththa titir toton tntsn tstso tktuk trtur twtwi uguig ukukr ururd uzuzb veven \
        vivie vovol wawln wowol xhxho yiyid yoyor zazha zhzhochi zuzul
        """
}
