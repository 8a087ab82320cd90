"""JAAS lines: a login module and its options, as Kafka's configuration writes them.

    org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";

A file of `java.security.auth.login.config` has such lines in named contexts: `KafkaServer { … };`.
No error repeats a value, because a value may be a password.

Source: Kafka JaasConfig, JaasContext; java.io.StreamTokenizer for quotes and comments.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKENS: Final = re.compile(
    r"""
    (?P<blank>\s+|//[^\n]*|\#[^\n]*|/\*.*?\*/)
    |"(?P<double>(?:[^"\\\n]|\\.)*)"
    |'(?P<single>(?:[^'\\\n]|\\.)*)'
    |(?P<word>[\w$.\-]+)
    |(?P<mark>[=;{}])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\([0-7]{1,3}|.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "b": "\b", "a": "\a", "v": "\v"}
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")


class LoginModule(NamedTuple):
    """One line."""

    name: str
    """The Java class, of which only the name counts here."""
    options: dict[str, str]

    def __repr__(self) -> str:
        """Return a text without values: it may come into a log."""
        return f"LoginModule({self.name}, {', '.join(self.options)})"


class _Token(NamedTuple):
    text: str
    is_mark: bool


def parse_line(text: str) -> LoginModule:
    """Return the only line of a `sasl.jaas.config`. Raises ConfigError."""
    tokens = list(_tokens(text))
    modules = []
    while tokens:
        modules.append(_module(tokens))
    if len(modules) != 1:
        raise ConfigError(f"a JAAS configuration has {len(modules)} login modules, expected 1")
    return modules[0]


def parse_file(text: str) -> dict[str, list[LoginModule]]:
    """Return context → its lines, for the text of a JAAS file. Raises ConfigError."""
    tokens = list(_tokens(text))
    contexts: dict[str, list[LoginModule]] = {}
    while tokens:
        name = _word(tokens, "the name of a context")
        _expect(tokens, "{")
        modules = []
        while tokens and tokens[0] != _Token("}", is_mark=True):
            modules.append(_module(tokens))
        _expect(tokens, "}")
        _expect(tokens, ";")
        if name in contexts or not modules:
            raise ConfigError(f"JAAS: context {name} comes twice, or has no login module")
        contexts[name] = modules
    return contexts


def _module(tokens: list[_Token]) -> LoginModule:
    name = _word(tokens, "a login module")
    if _word(tokens, "the control flag of a login module").lower() not in _FLAGS:
        raise ConfigError(f"JAAS: the control flag is none of {', '.join(_FLAGS)}")
    options: dict[str, str] = {}
    while tokens and not tokens[0].is_mark:
        # The word may be a part of a password, so it has a number in errors.
        number = f"option {len(options) + 1}"
        key = _word(tokens, number)
        if not tokens or tokens.pop(0) != _Token("=", is_mark=True):
            raise ConfigError(f"JAAS: {number} has no value; a value with blanks needs quotes")
        options[key] = _word(tokens, f"the value of {number}")
    _expect(tokens, ";")
    return LoginModule(name, options)


def _word(tokens: list[_Token], subject: str) -> str:
    if not tokens or tokens[0].is_mark:
        raise ConfigError(f"JAAS: {subject} is missing")
    return tokens.pop(0).text


def _expect(tokens: list[_Token], mark: str) -> None:
    if not tokens or tokens.pop(0) != _Token(mark, is_mark=True):
        raise ConfigError(f"JAAS: {mark!r} is missing")


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    while position < len(text):
        match = _TOKENS.match(text, position)
        if match is None:
            raise ConfigError(f"JAAS: character {position + 1} begins no word, option or mark")
        position = match.end()
        kind = match.lastgroup
        if kind == "blank":
            continue
        is_quoted = kind in {"double", "single"}
        value = match[str(kind)]
        yield _Token(_ESCAPE.sub(_unescape, value) if is_quoted else value, kind == "mark")


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "01234567":
        return chr(int(code, 8))
    return _ESCAPES.get(code, code)
