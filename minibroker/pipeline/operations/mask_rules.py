"""The rules of `--mask` and the fields of `--select`, from the words of a person.

    'customer.email=hash, card=last4, items[].sku=fixed:"a, b", key=hash, headers.user=drop'

A rule is a place and a method. A place is a field of the JSON value (`card`, `customer.email`,
`value.key`), a field of a JSON key (`key.id`), the whole key or value (`key`, `value`), one header
(`headers.user`) or all of them (`headers`). A name with a dot or a comma stands in backticks.
Arrays need no sign: a rule goes into each of their items. `[]` may be written, and behind the last
name it means each item of the array instead of the array. A place that no record of the first batch
has ends the job, since it is mostly a wrong name; `?` behind it says that it may be missing:
`customer.phone?=hash`.

The methods and their results are in `mask_methods`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.pipeline.errors import JobUsageError
from minibroker.pipeline.values.column_names import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

VALUE: Final = "value"
KEY: Final = "key"
HEADERS: Final = "headers"
TARGETS: Final = (VALUE, KEY, HEADERS)

FIXED: Final = "fixed"
METHODS: Final = ("hash", "email", "mask", "null", "empty", "drop")
"""Methods without an argument; `first` and `last` have a number, `fixed` has a text."""
KEYED: Final = ("hash", "email")
"""Methods that need a secret."""
METHODS_TEXT: Final = "hash, email, mask, last4, first1, fixed:TEXT, empty, null or drop"

PLACES_MAX: Final = 60
"""Rules and selected fields together: each has a bit of a number that counts as found."""

_KEEPING: Final = re.compile(r"(first|last)([1-9][0-9]{0,2})")
_QUOTES: Final = "'\""
_BARE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class FieldPath(NamedTuple):
    """A place in a record."""

    target: str
    """One of TARGETS."""
    names: tuple[str, ...]
    """Names of fields from the outside to the inside; of a header one name; empty: all of it."""
    is_each: bool = False
    """True if the items of the array are meant, and not the array."""
    is_optional: bool = False
    """True if no record needs to have it."""

    def __str__(self) -> str:
        return self.place + ("[]" if self.is_each else "") + ("?" if self.is_optional else "")

    def required(self) -> FieldPath:
        """Return the path without `?`, which changes no record."""
        return self._replace(is_optional=False)

    @property
    def place(self) -> str:
        """Return the names alone, as a person writes them."""
        names = [name if _BARE.fullmatch(name) else quoted(name) for name in self.names]
        if self.target != VALUE or not names or names[0] in TARGETS:
            names.insert(0, self.target)
        return ".".join(names)


class MaskRule(NamedTuple):
    """A place and the method for it."""

    path: FieldPath
    method: str
    """`first` and `last` without their number, or one of METHODS, or FIXED."""
    argument: str = ""

    def __str__(self) -> str:
        if self.method == FIXED:
            return f"{self.path}={FIXED}:{_quoted(self.argument)}"
        return f"{self.path}={self.method}{self.argument}"


def rules_of(texts: Iterable[str]) -> tuple[MaskRule, ...]:
    """Return the rules in texts, each with one or more of them.

    Raises:
        JobUsageError: a rule is none, or one place has two rules.
    """
    rules = [_rule(piece) for text in texts for piece in _pieces(text)]
    for index, rule in enumerate(rules):
        for other in rules[:index]:
            _check_apart(rule.path, other.path)
    if len(rules) > PLACES_MAX:
        raise JobUsageError(f"has {len(rules)} rules: expected {PLACES_MAX} at most")
    return tuple(rules)


def fields_of(texts: Iterable[str]) -> tuple[FieldPath, ...]:
    """Return the fields of `--select`, which are fields of JSON values.

    Raises JobUsageError.
    """
    paths = [_path(piece) for text in texts for piece in _pieces(text)]
    for index, path in enumerate(paths):
        if path.target != VALUE or not path.names:
            raise JobUsageError(
                f"{str(path)!r}: expected fields of the JSON value, such as id, customer.country "
                "or value.key; keys and headers are kept, or masked with key=drop, headers=drop"
            )
        for other in paths[:index]:
            _check_apart(path, other)
    if len(paths) > PLACES_MAX:
        raise JobUsageError(f"has {len(paths)} fields: expected {PLACES_MAX} at most")
    return tuple(path._replace(is_each=False) for path in paths)


def _check_apart(path: FieldPath, other: FieldPath) -> None:
    """Raise JobUsageError if one place is within the other."""
    if path.target == other.target:
        shorter, longer = sorted((path.names, other.names), key=len)
        if longer[: len(shorter)] == shorter:
            raise JobUsageError(
                f"has {other} and {path}, which are about the same place: leave out one of them"
            )


def _rule(text: str) -> MaskRule:
    place, equals, method = _split(text, "=")
    if not equals:
        raise JobUsageError(f"{text!r}: expected FIELD=METHOD, such as email=hash")
    path, method = _path(place), method.strip()
    if match := _KEEPING.fullmatch(method):
        return MaskRule(path, match[1], match[2])
    if method in METHODS:
        return MaskRule(path, method)
    name, colon, argument = method.partition(":")
    if name != FIXED or not colon:
        raise JobUsageError(f"{path}: {method!r} is no method, expected {METHODS_TEXT}")
    return MaskRule(path, FIXED, _unquoted(argument.strip()))


def _path(text: str) -> FieldPath:
    bare = text.strip()
    required = bare.removesuffix("?")
    return _required_path(required)._replace(is_optional=required != bare)


def _required_path(text: str) -> FieldPath:
    bare = text.strip()
    is_each = bare.endswith("[]")
    names: list[tuple[str, bool]] = []
    rest = bare
    while rest:
        name, dot, rest = _split(rest, ".")
        is_quoted = name.startswith("`")
        name = name if is_quoted else name.strip()
        while name.endswith("[]"):
            name = name[:-2]
        name = name[1:-1].replace("``", "`") if is_quoted and name.endswith("`") else name
        if (not name and (names or rest or not is_each)) or (dot and not rest):
            raise JobUsageError(f"{bare!r}: expected a field, such as customer.email")
        names.append((name, is_quoted))
    if not names:
        raise JobUsageError(f"{text!r} has no field: expected for instance email")
    target, is_quoted = names[0]
    if target not in TARGETS or is_quoted:
        return FieldPath(VALUE, tuple(name for name, _ in names if name), is_each)
    inside = tuple(name for name, _ in names[1:])
    if target == HEADERS:
        return FieldPath(HEADERS, (".".join(inside),) if inside else ())
    return FieldPath(target, inside, is_each)


def _pieces(text: str) -> list[str]:
    """Return the parts between commas that are not quoted."""
    pieces, rest = [], text
    while rest.strip():
        piece, _, rest = _split(rest, ",")
        if piece.strip():
            pieces.append(piece.strip())
    return pieces


def _split(text: str, sign: str) -> tuple[str, str, str]:
    """Return the text before a sign, the sign, and the text behind it.

    A sign in quotes or backticks is text. Without the sign all of the text is before it.

    Raises JobUsageError for a quote that is not closed.
    """
    quote = ""
    for index, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character == "`" or (character in _QUOTES and sign == ","):
            quote = character
        elif character == sign:
            return text[:index], sign, text[index + 1 :]
    if quote:
        raise JobUsageError(
            f"{text.strip()!r}: a quote {quote} is not closed; put a text with quotes or commas "
            "in quotes of the other kind"
        )
    return text, "", ""


def _unquoted(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in _QUOTES
    return text[1:-1] if is_quoted else text


def _quoted(text: str) -> str:
    return f"'{text}'" if "'" not in text else f'"{text}"'
