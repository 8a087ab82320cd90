"""The words that can follow in a command line that is being typed: `minibroker completion` asks.

words of the shell ─► the groups and the verb they name ─► flags, values, or paths
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.cli.declaration import VerbGroup, option_of
from minibroker.cli.parser import END_OF_FLAGS, HELP, flags_of
from minibroker.cli.program import member

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from minibroker.cli.declaration import Option, Verb
    from minibroker.cli.kinds import Completion

_HELP_TEXT: Final = "show the options"


class CompletionAnswer(NamedTuple):
    """The words that fit, and the paths that fit beside them."""

    words: Sequence[tuple[str, str]] = ()
    """Word and its meaning, in lower case."""
    paths: Completion = ""
    """Files or directories, which the shell finds itself."""
    prefix: str = ""
    """The beginning of the typed word that stays before what fits: `--config=`."""


def answer_for(group: VerbGroup, words: Sequence[str]) -> CompletionAnswer:
    """Return what can stand in the place of the last one of the words behind a group's name."""
    if len(words) < 2:
        return _names(group, words[-1] if words else "")
    name = group.aliases.get(words[0], words[0])
    if name == "help":
        return answer_for(group, words[1:])
    if name not in group.modules:
        return CompletionAnswer()
    verb = member(group, name)
    if isinstance(verb, VerbGroup):
        return answer_for(verb, words[1:])
    return _of_verb(verb, words[1:-1], words[-1])


def _names(group: VerbGroup, typed: str) -> CompletionAnswer:
    """Return the verbs of a group; its aliases are those that are flags."""
    meanings = {name: member(group, name).does for name in group.modules if name.startswith(typed)}
    if typed.startswith("-"):
        flags = [flag for flag in group.aliases if flag.startswith("--")]
        meanings |= {flag: member(group, group.aliases[flag]).does for flag in flags}
        meanings[HELP[0]] = "show the verbs"
    return CompletionAnswer(_fitting(meanings.items(), typed))


def _of_verb(verb: Verb, earlier_words: Sequence[str], typed: str) -> CompletionAnswer:
    """Return what can follow the words before, and begins as the typed one."""
    options = [option_of(field) for field in verb.fields()]
    by_flag = flags_of(options)
    places = [option for option in options if not option.is_flag]
    used_flags: set[str] = set()
    awaited: Option | None = None
    has_ended = False
    for word in earlier_words:
        if awaited is not None:
            awaited = None
        elif not has_ended and word == END_OF_FLAGS:
            has_ended = True
        elif not has_ended and word.startswith("-") and word != "-":
            option = by_flag.get(word.partition("=")[0])
            if option is not None:
                used_flags.add(option.flag)
                awaited = None if option.kind.is_switch or "=" in word else option
        elif places and not places[0].kind.is_repeated:
            places.pop(0)
    flag, equals, value = typed.partition("=")
    if awaited is None and not has_ended and equals and flag in by_flag:
        return _values(by_flag[flag], value)._replace(prefix=f"{flag}=")
    if awaited is not None:
        return _values(awaited, typed)
    if places and not typed.startswith("-"):
        answer = _values(places[0], typed)
        if answer.words or answer.paths:
            return answer
    return (
        CompletionAnswer()
        if has_ended
        else CompletionAnswer(_fitting(_flags(options, used_flags), typed))
    )


def _flags(options: Iterable[Option], used_flags: set[str]) -> list[tuple[str, str]]:
    """Return the flags that can still be given, with their effects."""
    flags = [
        (option.flag, option.help)
        for option in options
        if option.is_flag and (option.kind.is_repeated or option.flag not in used_flags)
    ]
    return [*flags, (HELP[0], _HELP_TEXT)]


def _values(option: Option, typed: str) -> CompletionAnswer:
    words = _fitting(((choice, "") for choice in option.kind.choices), typed)
    return CompletionAnswer(words, option.kind.completes)


def _fitting(words: Iterable[tuple[str, str]], typed: str) -> list[tuple[str, str]]:
    return [(word, meaning) for word, meaning in words if word.startswith(typed)]
