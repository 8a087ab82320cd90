"""Words of the command line → `InWords`, by the declaration of the verb.

A value stands behind its flag or behind `=`. Words without dashes take their places in the order of
the declaration. `--` ends the flags. A word that begins with two dashes is never a value behind a
flag, so that a forgotten value is noticed; `--flag=--value` gives one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.cli.declaration import InWords, option_of
from minibroker.cli.errors import UsageError
from minibroker.cli.kinds import near

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from minibroker.cli.declaration import Option, Verb

HELP: Final = ("--help", "-h")
END_OF_FLAGS: Final = "--"


def asks_for_help(words: Sequence[str]) -> bool:
    """Return whether one of the words asks for the help page."""
    flags = words[: words.index(END_OF_FLAGS)] if END_OF_FLAGS in words else words
    return any(word in HELP for word in flags)


def parse(verb: Verb, words: Sequence[str]) -> InWords:
    """Return the words behind the name of the verb, sorted by option. Raises UsageError."""
    options = [option_of(field) for field in verb.fields()]
    by_flag = flags_of(options)
    places = [option for option in options if not option.is_flag]
    in_order: list[tuple[str, str]] = []
    remaining = iter(words)
    for word in remaining:
        if word == END_OF_FLAGS:
            in_order += [_place_of(places, rest, by_flag) for rest in remaining]
        elif word.startswith("-") and word != "-":
            in_order.append(_flag(word, remaining, by_flag))
        else:
            in_order.append(_place_of(places, word, by_flag))
    words_by_flag: dict[str, list[str]] = {}
    for name, value in in_order:
        words_by_flag.setdefault(name, []).append(value)
    return InWords(words_by_flag, in_order, later_wins=verb.later_wins)


def flags_of(options: Sequence[Option]) -> dict[str, Option]:
    """Return the flag and the short flag of each option → the option."""
    by_flag = {option.flag: option for option in options if option.is_flag}
    return by_flag | {option.short: option for option in options if option.short}


def _flag(word: str, remaining: Iterator[str], by_flag: dict[str, Option]) -> tuple[str, str]:
    """Return the long flag of a word and its value, which may be the next word."""
    flag, equals, value = word.partition("=")
    if not word.startswith("--") and len(word) > 2:
        flag, equals, value = word[:2], "=", word[2:].removeprefix("=")  # -n5
    option = by_flag.get(flag)
    if option is None:
        raise _unknown(word, by_flag)
    if option.kind.is_switch:
        if equals:
            raise UsageError(f"{flag} takes no value")
        return option.flag, ""
    if equals:
        return option.flag, value
    following = next(remaining, None)
    if following is None or following.startswith("--"):
        raise UsageError(f"{flag} needs a value")
    return option.flag, following


def _place_of(places: list[Option], word: str, by_flag: dict[str, Option]) -> tuple[str, str]:
    """Return the option whose place a word takes; an option that is no list leaves `places`."""
    if not places:
        raise _unknown(word, by_flag)
    option = places[0] if places[0].kind.is_repeated else places.pop(0)
    return option.flag, word


def _unknown(word: str, by_flag: dict[str, Option]) -> UsageError:
    """Return the error for a word that is no option of the verb."""
    return UsageError(f"unknown argument {word!r}{near(word.partition('=')[0], by_flag)}")
