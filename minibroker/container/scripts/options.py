"""The words of Kafka's scripts, as joptsimple reads them.

    --topic orders    --topic=orders    -topic orders    --top orders

An option may have one dash or two, and be cut as long as its beginning is enough to know it. Words
that belong to no option are ignored, as Kafka ignores them.

Source: joptsimple 5.0 OptionParser, which Kafka's tools use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

HELP: Final = ("help", "version")


class ScriptError(Exception):
    """The script cannot do what its words say: one line for stderr, exit code 1."""


class WordsError(ScriptError):
    """The words are wrong; the help follows."""


class ScriptOption(NamedTuple):
    """One option of a script."""

    metavar: str
    """The name of its value in the help; empty: it has none."""
    help: str
    is_optional: bool = False
    """The value may be left out."""


class Words(NamedTuple):
    """The options that a command line has."""

    values: Mapping[str, Sequence[str]]
    """Option → its values in their order; a switch has empty texts."""

    def has(self, *names: str) -> bool:
        """Return whether one of the options is there."""
        return any(name in self.values for name in names)

    def value(self, *names: str, default: str = "") -> str:
        """Return the value of the first of these options that is there."""
        return next((self.values[name][-1] for name in names if name in self.values), default)

    def all(self, *names: str) -> list[str]:
        """Return the values of all these options."""
        return [value for name in names for value in self.values.get(name, ())]

    def number(self, name: str, default: int | None = None) -> int | None:
        """Return the value as a number. Raises WordsError."""
        text = self.value(name)
        if not text:
            return default
        try:
            return int(text)
        except ValueError:
            raise WordsError(f"Cannot parse argument '{text}' of option {name}") from None

    def require(self, *names: str) -> None:
        """Raise WordsError for a missing option."""
        for name in names:
            if name not in self.values:
                raise WordsError(f'Missing required argument "[{name}]"')


def parse(words: Sequence[str], options: Mapping[str, ScriptOption]) -> Words:
    """Return the options of a command line. Raises WordsError."""
    values: dict[str, list[str]] = {}
    remaining = iter(words)
    word = next(remaining, None)
    while word is not None:
        following: str | None = None
        if word == "--":
            break
        if word.startswith("-") and word != "-":
            text, equals, value = word.lstrip("-").partition("=")
            name = _name(text, options)
            option = options[name] if name not in HELP else ScriptOption("", "")
            if option.metavar and not equals:
                value, following = _value(name, option, remaining)
            values.setdefault(name, []).append(value)
        word = following if following is not None else next(remaining, None)
    return Words(values)


def _name(text: str, options: Mapping[str, ScriptOption]) -> str:
    names = (*options, *HELP)
    if text in names:
        return text
    near = [name for name in names if text and name.startswith(text)]
    if len(near) == 1:
        return near[0]
    raise WordsError(f"{text} is not a recognized option")


def _value(name: str, option: ScriptOption, remaining: Iterator[str]) -> tuple[str, str | None]:
    """Return the value of an option, and the next word if that is no value."""
    word = next(remaining, None)
    if word is not None and (not option.is_optional or not word.startswith("-")):
        return word, None
    if option.is_optional:
        return "", word
    raise WordsError(f"Option {name} requires an argument")


def help_of(script: str, does: str, options: Mapping[str, ScriptOption]) -> str:
    """Return the help of a script."""
    lines = [f"{script}: {does}", ""]
    for name, option in sorted(options.items()):
        metavar = f"[{option.metavar}]" if option.is_optional else option.metavar
        lines.append(f"  {f'--{name} {metavar}'.rstrip():<44} {option.help}".rstrip())
    return "\n".join(lines) + "\n"
