"""Rules of `sasl.kerberos.principal.to.local.rules`: from a Kerberos name to the principal's name.

    RULE:[n:format](regexp)s/pattern/replacement/g/L
        A name with n components before the realm becomes `format`, where $0 is the realm and $1 the
        first component. If all of it matches the regexp, the rule counts; then the pattern is
        replaced, once or everywhere (g), and the case changes (L, U).
    DEFAULT
        The first component of a name of the default realm.

The first rule that counts decides. A name that none takes is refused, and so is a result with `/`
or `@`. Patterns run on RE2, as those of `principal_mapping`.

Source: Kafka KerberosShortNamer, KerberosRule, KerberosName.
Differs from Kafka: a format that names no component is an error at the start; there every login
fails to which the rule applies.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.broker.security.principal_mapping import compile_rule, parse_replacement
from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

KEY: Final = "sasl.kerberos.principal.to.local.rules"
_DEFAULT: Final = "DEFAULT"
_RULE: Final = re.compile(
    r"""
    RULE:\[(?P<components>\d+):(?P<format>[^\]]*)\]
    (?:\((?P<regexp>[^)]*)\))?
    (?:s/(?P<pattern>[^/]*)/(?P<replacement>[^/]*)/(?P<everywhere>g)?)?
    /?(?P<case>[LU])?
    """,
    re.VERBOSE,
)
_COMPONENT: Final = re.compile(r"\$(\d*)")
_NAME: Final = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")


class KerberosName(NamedTuple):
    """`service/host@REALM`."""

    service: str
    """The user, or the service."""
    host: str | None
    realm: str | None

    def __str__(self) -> str:
        host = "" if self.host is None else f"/{self.host}"
        return f"{self.service}{host}" + ("" if self.realm is None else f"@{self.realm}")


def parse_name(text: str) -> KerberosName:
    """Return the parts of a name. Raises ValueError."""
    match = _NAME.fullmatch(text)
    if match is not None:
        return KerberosName(match[1], match[2], match[3])
    if "@" in text:
        raise ValueError(f"Kerberos name {text!r}: expected NAME@REALM or NAME/HOST@REALM")
    return KerberosName(text, None, None)


class _Replacement(NamedTuple):
    """`s/pattern/replacement/g`."""

    pattern: Any
    parts: tuple[str | int, ...]
    """Texts, and numbers of groups."""
    is_everywhere: bool

    def apply(self, text: str) -> str:
        pieces: list[str] = []
        end = 0
        for match in self.pattern.finditer(text):
            pieces.append(text[end : match.start()])
            pieces += [
                part if isinstance(part, str) else match.group(part) or "" for part in self.parts
            ]
            end = match.end()
            if not self.is_everywhere:
                break
        return "".join(pieces) + text[end:]


class _Rule(NamedTuple):
    """One RULE."""

    components: int
    format: tuple[str | int, ...]
    """Texts, and numbers of components, 0 for the realm."""
    regexp: Any
    """None: every name."""
    replacement: _Replacement | None
    case: str | None

    def apply(self, parts: Sequence[str]) -> str | None:
        """Return the new name of realm and components, None if the rule does not count. Raises
        ValueError.
        """
        if len(parts) - 1 != self.components:
            return None
        name = "".join(part if isinstance(part, str) else parts[part] for part in self.format)
        if self.regexp is not None and self.regexp.fullmatch(name) is None:
            return None
        if self.replacement is not None:
            name = self.replacement.apply(name)
        _check_simple(name)
        if self.case == "L":
            return name.lower()
        return name.upper() if self.case == "U" else name


class KerberosNames:
    """All rules, in order; None in the list is DEFAULT. Constant."""

    __slots__ = ("_rules",)

    def __init__(self, rules: Sequence[str]) -> None:
        """Raises ConfigError."""
        self._rules = [None if text == _DEFAULT else _parse_rule(text) for text in rules]

    def short_name(self, name: KerberosName, default_realm: str) -> str:
        """Return the name of the principal. Raises ValueError where no rule gives one."""
        if name.realm is None:
            return name.service
        parts = [name.realm, name.service, *([] if name.host is None else [name.host])]
        for rule in self._rules:
            if rule is None:
                if name.realm == default_realm:
                    _check_simple(name.service)
                    return name.service
                continue
            short_name = rule.apply(parts)
            if short_name is not None:
                return short_name
        raise ValueError(f"no rule of {KEY} takes {name}")


def _check_simple(name: str) -> None:
    if "/" in name or "@" in name:
        raise ValueError(f"a rule of {KEY} makes {name}, expected a name without / and @")


def _parse_rule(text: str) -> _Rule:
    match = _RULE.fullmatch(text)
    if match is None:
        raise ConfigError(
            f"Invalid value {text} for configuration {KEY}: expected DEFAULT and"
            " RULE:[n:format](regexp)s/pattern/replacement/g/L, separated by commas, for instance"
            " RULE:[2:$1](app-.*)s/app-//,DEFAULT"
        )
    components = int(match["components"])
    pattern = match["pattern"]
    replacement = None
    if pattern is not None:
        expression = compile_rule(KEY, pattern)
        parts = tuple(parse_replacement(KEY, match["replacement"], expression.groups))
        replacement = _Replacement(expression, parts, match["everywhere"] is not None)
    return _Rule(
        components,
        tuple(_parse_format(text, match["format"], components)),
        None if match["regexp"] is None else compile_rule(KEY, match["regexp"]),
        replacement,
        match["case"],
    )


def _parse_format(rule: str, text: str, components: int) -> Iterator[str | int]:
    """Yield texts and numbers of components. Raises ConfigError."""
    end = 0
    for match in _COMPONENT.finditer(text):
        if not match[1] or len(match[1]) > 3 or int(match[1]) > components:
            raise ConfigError(
                f"{KEY} has the rule {rule}: {match[0]} is no component, expected $0 to"
                f" ${components}"
            )
        yield text[end : match.start()]
        yield int(match[1])
        end = match.end()
    yield text[end:]
