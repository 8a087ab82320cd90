"""`minibroker completion`: the script of a shell, and the answers that the script asks for.

A script knows no verb and no option. With each Tab it asks `minibroker completion SHELL -- WORD...`
and shows the answer, so it stays right when the program changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TextIO

from minibroker.cli.declaration import Option, Verb
from minibroker.cli.errors import EXIT_OK
from minibroker.cli.kinds import Kind, choice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.cli.completion import CompletionAnswer

BASH: Final = "bash"
ZSH: Final = "zsh"
FISH: Final = "fish"
_MEANING_MAX: Final = 60
"""Letters of a meaning: a shell shows it beside the word, in one line."""

_BASH_SCRIPT: Final = """\
_minibroker() {
    local program="${1/#\\~/$HOME}" typed="$2" answer IFS=$'\\n'
    answer=($("$program" completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)) || return
    COMPREPLY=("${answer[@]:1}")
    [[ $typed == "=" ]] && typed=""
    case "${answer[0]}" in
        file) compopt -o filenames; COMPREPLY+=($(compgen -f -- "$typed")) ;;
        directory) compopt -o filenames; COMPREPLY+=($(compgen -d -- "$typed")) ;;
    esac
}
complete -F _minibroker minibroker
"""
_ZSH_SCRIPT: Final = """\
#compdef minibroker
_minibroker() {
    local -a answer described
    local program="${words[1]/#\\~/$HOME}"
    answer=("${(@f)$("$program" completion zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    [[ $PREFIX == --*=* ]] && compset -P 1 '*='
    described=("${(@)answer[2,-1]}")
    (( ${#described} )) && _describe -V word described
    case "$answer[1]" in
        file) _files ;;
        directory) _files -/ ;;
    esac
}
if [[ "$funcstack[1]" == _minibroker ]]; then
    _minibroker "$@"
else
    compdef _minibroker minibroker
fi
"""
_FISH_SCRIPT: Final = """\
function __minibroker_words
    set -l words (commandline --tokenize --current-process --cut-at-cursor)
    set -l typed (commandline --current-token --cut-at-cursor)
    set -l answer ($words[1] completion fish -- $words[2..-1] "$typed" 2>/dev/null)
    set -l prefix (string match --regex -- '^--[^=]+=' "$typed")
    set -l rest (string replace --regex -- '^--[^=]+=' '' "$typed")
    printf '%s\\n' $answer[2..-1]
    switch "$answer[1]"
        case file
            printf "$prefix%s\\n" (__fish_complete_path "$rest")
        case directory
            printf "$prefix%s\\n" (__fish_complete_directories "$rest")
    end
end
complete --command minibroker --no-files --keep-order --arguments '(__minibroker_words)'
"""
_SCRIPTS: Final = {BASH: _BASH_SCRIPT, ZSH: _ZSH_SCRIPT, FISH: _FISH_SCRIPT}


class TypedWords(Kind):
    """The words of a command line, which may be empty ones."""

    is_repeated = True

    def of_words(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the words as they are."""
        return tuple(words)


class CompletionPlan(NamedTuple):
    """The options of `completion`."""

    shell: Annotated[
        str, Option("SHELL", choice(*_SCRIPTS), "the shell that gets the script", example=BASH)
    ]
    words: Annotated[
        tuple[str, ...],
        Option(
            "WORD",
            TypedWords("WORD"),
            "the words behind minibroker that are typed: show what fits in the place of the last "
            "one, as the script asks it",
        ),
    ] = ()


def run(plan: CompletionPlan, out: TextIO, errors: TextIO) -> int:
    """Write the script, or the answer to it; return the exit code."""
    if not plan.words:
        out.write(_SCRIPTS[plan.shell])
        return EXIT_OK
    from minibroker.cli.completion import answer_for  # noqa: PLC0415  not for the script
    from minibroker.cli.verbs_table import PROGRAM  # noqa: PLC0415  as above

    words = _joined(plan.words) if plan.shell == BASH else plan.words
    answer = answer_for(PROGRAM, words)
    # The first line says which paths fit, too: bash drops an empty one.
    out.write("\n".join([answer.paths or "words", *_lines(answer, plan.shell)]) + "\n")
    return EXIT_OK


def _joined(words: Sequence[str]) -> list[str]:
    """Return the words with `--loop`, `=`, `uv` as one again: bash splits at `=`."""
    joined: list[str] = []
    for word in words:
        is_value = len(joined) > 0 and joined[-1].startswith("--") and joined[-1].endswith("=")
        if is_value or (word == "=" and joined and joined[-1].startswith("--")):
            joined[-1] += word
        else:
            joined.append(word)
    return joined


def _lines(answer: CompletionAnswer, shell: str) -> list[str]:
    """Return a line for each word, as the shell wants it."""
    lines = []
    for word, meaning in answer.words:
        short = meaning if len(meaning) <= _MEANING_MAX else f"{meaning[:_MEANING_MAX]}…"
        if shell == BASH:
            lines.append(word)
        elif shell == FISH:
            lines.append(f"{answer.prefix}{word}\t{short}".rstrip())
        else:
            escaped = word.replace("\\", "\\\\").replace(":", "\\:")
            lines.append(f"{escaped}:{short}" if short else escaped)
    return lines


VERB: Final = Verb(
    name="completion",
    does="write the script with which a shell completes this program's words",
    usage="bash|zsh|fish [-- WORD...]",
    plan=CompletionPlan,
    run=run,
    group="Words",
    notes="""
bash: put `source <(minibroker completion bash)` into ~/.bashrc.

zsh: put `source <(minibroker completion zsh)` into ~/.zshrc, behind compinit.

fish: minibroker completion fish > ~/.config/fish/completions/minibroker.fish
""",
    examples=("completion bash", "completion fish", "completion bash -- serve --lo"),
)
