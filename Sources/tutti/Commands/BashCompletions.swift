import ArgumentParser

/// The script for bash: ArgumentParser's, and what bash needs besides.
///
/// bash ends a word at each colon (COMP_WORDBREAKS) and completes what is behind the last one
/// alone: `alsa:hw:1` is five words to it. What asks ArgumentParser's function has put them
/// together, and takes off the answers what stands there already. `help` is a command that the
/// parser knows, and does not complete.
enum BashCompletions {
    /// Behind the script that the parser wrote.
    static func completing(_ script: String) -> String {
        var script = script
        let lists = (try? CommandTree(of: Tutti.self)).map { cases($0.command, behind: "") } ?? ""
        script += wholeWords.replacing("CASES", with: lists)
        return script
    }

    /// Whether that is what the parser was asked for.
    static func isScript(_ text: String) -> Bool { text.hasPrefix("#!/bin/bash\n") }

    /// One line for each command that has others below it.
    private static func cases(_ command: CommandTree.Command, behind words: String) -> String {
        let below = command.shownCommands
        guard !below.isEmpty else { return "" }
        let names = below.map(\.commandName).joined(separator: " ")
        return "    \"\(words)\") printf %s '\(names)' ;;\n"
            + below.map {
                cases($0, behind: words.isEmpty ? $0.commandName : "\(words) \($0.commandName)")
            }.joined()
    }

    private static let wholeWords = #"""

        # The commands below those that were typed.
        _tutti_commands() {
            case "${*}" in
        CASES    esac
        }

        # Puts words together that bash has split at colons, and an option and its value at "=".
        _tutti_whole_words() {
            local line="${COMP_LINE}" before word part cur=''
            local -a words=()
            local -i index cword=0
            for ((index = 0; index < ${#COMP_WORDS[@]}; index++)); do
                word="${COMP_WORDS[index]}"
                part="${word}"
                # Up to the cursor; of a colon bash says nothing.
                ((index == COMP_CWORD)) && [[ "${word}" != [:=]* ]] && part="${2}"
                before="${line}"
                line="${line#"${line%%[![:space:]]*}"}"
                # No blank between them.
                if ((index > 0)) && [[ -n "${word}" && "${line}" == "${before}" ]]; then
                    line="${line#"${word}"}"
                    if [[ "${word}" == '=' && "${words[-1]}" == --* ]]; then
                        ((index == COMP_CWORD)) || continue
                        part='' word=''
                    elif [[ "${word}" == :* || "${words[-1]}" == *: ]]; then
                        part="${words[-1]}${part}"
                        word="${words[-1]}${word}"
                        unset 'words[-1]'
                    fi
                else
                    line="${line#"${word}"}"
                fi
                words+=("${word}")
                if ((index == COMP_CWORD)); then
                    cur="${part}"
                    cword=$((${#words[@]} - 1))
                fi
            done
            local -a COMP_WORDS=("${words[@]}")
            local -i COMP_CWORD="${cword}"
            local -r prev="${words[cword - 1]}"
            if ((cword > 1)) && [[ "${words[1]}" == help ]]; then
                COMPREPLY=($(compgen -W "$(_tutti_commands "${words[@]:2:cword-2}")" -- "${cur}"))
                return
            fi
            _tutti "${1}" "${cur}" "${prev}"
            # These colons stand there as they are.
            [[ "${prev}" == --* && "${COMPREPLY[*]}" == *:* ]] && compopt +o filenames 2>/dev/null
            if [[ "${cur}" == *:* && "${COMP_WORDBREAKS}" == *:* ]]; then
                COMPREPLY=("${COMPREPLY[@]#"${cur%"${cur##*:}"}"}")
            fi
            # More is to follow.
            [[ "${#COMPREPLY[@]}" -eq 1 && "${COMPREPLY[0]}" == *: ]] && compopt -o nospace 2>/dev/null
            return 0
        }
        complete -o filenames -F _tutti_whole_words tutti

        """#
}
