"""Rules of `ssl.principal.mapping.rules`: from a certificate's name to the name of a principal.

    RULE:pattern/replacement/[LU]    a name that the pattern matches as a whole is replaced by
                                     `replacement` ($1 is the first group), in lower or upper case
    DEFAULT                          the name as it is

The first rule that matches counts. A name that no rule matches is refused. Patterns run on RE2,
which takes linear time, so look-around and references back are errors at the start.

Source: Kafka SslPrincipalMapper (KIP-371), java.util.regex.Matcher.replaceAll.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.patterns import PatternError, PatternsMissingError, compile_pattern
from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY: Final = "ssl.principal.mapping.rules"
_RULE: Final = "RULE:"
_DEFAULT: Final = "DEFAULT"
_EXPECTED: Final = (
    "expected DEFAULT and RULE:pattern/replacement/ with L or U behind it, separated by commas,"
    " for instance RULE:^CN=([^,]*),.*$/$1/L,DEFAULT"
)


class PrincipalRule:
    """One RULE: a pattern and its replacement. Constant after construction."""

    __slots__ = ("_case", "_pattern", "_replacement")

    def __init__(self, pattern: str, replacement: str, case: str) -> None:
        """`case`: L, U, or nothing. Raises ConfigError for a wrong pattern or replacement."""
        self._pattern = compile_rule(KEY, pattern)
        self._replacement = list(parse_replacement(KEY, replacement, self._pattern.groups))
        self._case = case

    def apply(self, name: str) -> str | None:
        """Return the new name, None where the pattern does not match the whole name."""
        if self._pattern.fullmatch(name) is None:
            return None
        pieces: list[str] = []
        end = 0
        for match in self._pattern.finditer(name):
            pieces.append(name[end : match.start()])
            pieces += [
                part if isinstance(part, str) else match.group(part) or ""
                for part in self._replacement
            ]
            end = match.end()
        result = "".join(pieces) + name[end:]
        if self._case == "L":
            return result.lower()
        return result.upper() if self._case == "U" else result


class PrincipalMapping:
    """All rules of a listener, in order; None in the list is DEFAULT. Constant."""

    __slots__ = ("_rules",)

    def __init__(self, text: str) -> None:
        """Take the value of `ssl.principal.mapping.rules`. Raises ConfigError."""
        self._rules = list(_parse_rules(text))

    def apply(self, name: str) -> str | None:
        """Return the principal's name for a certificate's name, None where no rule matches."""
        for rule in self._rules:
            principal = name if rule is None else rule.apply(name)
            if principal is not None:
                return principal
        return None


def _parse_rules(text: str) -> Iterator[PrincipalRule | None]:
    """Yield the rules; empty ones are left out, as in Kafka. Raises ConfigError."""
    position = 0
    text = text.strip()
    while position < len(text):
        if text[position] == "," or text[position].isspace():
            position += 1
            continue
        if text.startswith(_RULE, position):
            pattern, position = _take_part(text, position + len(_RULE))
            replacement, position = _take_part(text, position)
            case = text[position : position + 1]
            case = case if case in ("L", "U") else ""
            position += len(case)
            yield PrincipalRule(pattern, replacement, case)
        elif text.startswith(_DEFAULT, position):
            position += len(_DEFAULT)
            yield None
        else:
            raise _wrong(text, position)
        rest_of_text = text[position:].lstrip()
        if rest_of_text and not rest_of_text.startswith(","):
            raise _wrong(text, position)


def _take_part(text: str, start: int) -> tuple[str, int]:
    """Return the text up to the next slash without a backslash before it, and the place behind."""
    end = start
    while end < len(text) and text[end] != "/":
        end += 2 if text[end] == "\\" else 1
    if end >= len(text):
        raise _wrong(text, start)
    return text[start:end], end + 1


def _wrong(text: str, position: int) -> ConfigError:
    return ConfigError(
        f"Invalid value {text} for configuration {KEY}: {text[position:]!r}: {_EXPECTED}"
    )


def compile_rule(key: str, pattern: str) -> Any:
    """Return the compiled pattern of a rule. `key`: the setting, for errors. Raises ConfigError."""
    try:
        return compile_pattern(pattern)
    except PatternsMissingError as error:
        raise ConfigError(f"{key} has the pattern {pattern}: {error}") from None
    except PatternError as error:
        raise ConfigError(
            f"{key} has the pattern {pattern}: {error} (RE2 knows no look-around and no reference"
            " back)"
        ) from None


def parse_replacement(key: str, text: str, groups: int) -> Iterator[str | int]:
    """Yield texts and numbers of groups. `key`: the setting, for errors. Raises ConfigError.

    A number is as long as there is such a group: with two groups `$12` is the first group and a 2.
    A number of no group stands for itself. A backslash takes the meaning of what follows.
    """
    position = 0
    while position < len(text):
        char = text[position]
        position += 1
        if char == "\\":
            if position == len(text):
                raise ConfigError(f"{key} has the replacement {text}: it ends in a backslash")
            yield text[position]
            position += 1
        elif char == "$":
            end = position
            while (
                end < len(text)
                and text[end].isdecimal()
                and int(text[position : end + 1]) <= groups
            ):
                end += 1
            if end > position:
                yield int(text[position:end])
                position = end
            elif groups and position < len(text) and text[position].isdecimal():
                yield char
            else:
                raise ConfigError(
                    f"{key} has the replacement {text}: $ is followed by the number of a group;"
                    " \\$ is a $"
                )
        else:
            yield char
