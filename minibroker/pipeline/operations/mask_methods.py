"""The methods of `--mask`: functions from a value to what is written instead. Pure.

| method | a text | a number |
|---|---|---|
| `hash` | 64 hex digits: HMAC-SHA256 of its UTF-8 bytes | a whole number below 2^53 |
| `email` | hashed name, hashed domain: `6c…@1f….example` | 0 |
| `mask` | capital X, small x, digit n, other -, as MASK of ksqlDB | 0 |
| `last4`, `first1` | as many characters, `*` for the others; a short text is all `*` | see below |
| `fixed:T` | T | T as a number if it is one, else the text T |
| `empty` | the empty text | 0 |

Whole numbers of `last4` are those of the last four digits, and of `first1` the first digit and
zeros. Of other numbers it is 0. So a number stays a number, in a column of a table too. true and
false are null for the methods up to `first`: both values are known. `empty` makes false, an empty
array, an empty object. null stays null. A rule for an object or an array is a rule for each value
in it, except `null`, `drop`, `fixed` and `empty`, which replace all of it.

The same text has the same hash in each field, key and header, so that joins survive. An address of
`email` ends in `.example`, so that no mail reaches a person (RFC 2606).
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.operations.mask_rules import FIXED

if TYPE_CHECKING:
    from minibroker.pipeline.operations.mask_rules import MaskRule

DROPPED: Final = object()
"""The result for a field that is left out."""
ADDRESS_DIGITS: Final = 16
"""Hex digits of the hashed name and of the hashed domain of an address."""
_MARK: Final = secrets.token_hex(16)
"""Stands before the text of an `ExactNumber`; nobody who writes values can have guessed it."""
_MARKED: Final = re.compile(f'"{_MARK}([^"]*)"'.encode())
_NUMBER_BITS: Final = 53
"""Bits of a hashed number: JavaScript and DOUBLE hold such numbers exactly."""
_WHOLE: Final = re.compile(r"-?[0-9]+")


class ExactNumber(str):
    """A JSON number that no number of Python writes the same way: a mark, then its text.

    It is a text so that `json.dumps` takes it; `unmarked` makes a number of it again.
    """

    __slots__ = ()

    @classmethod
    def of(cls, text: str) -> ExactNumber:
        """Return the number with this text."""
        return cls(f"{_MARK}{text}")

    @property
    def digits(self) -> str:
        """Return the text of the number."""
        return self[len(_MARK) :]


def number_of(text: str) -> int | float | ExactNumber:
    """Return a JSON number that is written again with the same digits."""
    plain: int | float = float(text) if any(sign in text for sign in ".eE") else int(text)
    return plain if repr(plain) == text else ExactNumber.of(text)


def unmarked(text: bytes) -> bytes:
    """Return JSON with the texts of `ExactNumber` as numbers."""
    return _MARKED.sub(rb"\1", text) if _MARK.encode() in text else text


class Method:
    """One rule's method, with its secret; the tasks get it by pickle."""

    def __init__(self, rule: MaskRule, secret: bytes) -> None:
        self.name = rule.method
        self.argument = rule.argument
        self._count = int(rule.argument) if rule.method in ("first", "last") else 0
        self._secret = secret

    def of(self, value: Any) -> Any:
        """Return the result for a value as `json.loads` makes it, or DROPPED."""
        if self.name == "drop":
            return DROPPED
        if value is None or self.name == "null":
            return None
        if self.name == FIXED:
            return self._fixed(value)
        if self.name == "empty":
            return _empty(value)
        if isinstance(value, dict):
            return {name: self.of(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.of(inner) for inner in value]
        if isinstance(value, bool):
            return None
        if isinstance(value, (int, float, ExactNumber)):
            return self._number(value.digits if isinstance(value, ExactNumber) else str(value))
        return self._text(value)

    def of_bytes(self, value: bytes | None) -> bytes | None:
        """Return the result for a whole key, value or header; `drop` makes null of it.

        Raises PipelineError for bytes that are no text, where the method needs text.
        """
        if value is None or self.name in ("drop", "null"):
            return None
        if self.name == "hash":
            return self._digest(value).encode()
        if self.name == FIXED:
            return self.argument.encode()
        if self.name == "empty":
            return b""
        try:
            return self._text(value.decode()).encode()
        except UnicodeDecodeError:
            raise PipelineError(f"it is not UTF-8, which {self.name} needs") from None

    def _digest(self, value: bytes) -> str:
        hashed = _keyed_hash(self._secret).copy()
        hashed.update(value)
        return hashed.hexdigest()

    def _text(self, text: str) -> str:
        if self.name == "hash":
            return self._digest(text.encode("utf-8", "surrogatepass"))
        if self.name == "email":
            return self._address(text)
        if self.name == "mask":
            return "".join(map(_shape, text))
        hidden = len(text) - self._count
        if hidden <= 0:
            return "*" * len(text)
        if self.name == "last":
            return "*" * hidden + text[hidden:]
        return text[: self._count] + "*" * hidden

    def _address(self, text: str) -> str:
        name, _, domain = text.rpartition("@")
        parts = (name or domain, domain.lower() if name else "")
        name, domain = (
            self._digest(part.encode("utf-8", "surrogatepass"))[:ADDRESS_DIGITS] for part in parts
        )
        return f"{name}@{domain}.example"

    def _number(self, text: str) -> int:
        if self.name == "hash":
            digest = hmac.digest(self._secret, text.encode(), "sha256")
            return int.from_bytes(digest[:8]) >> (64 - _NUMBER_BITS)
        digits = text.lstrip("-")
        if self.name not in ("first", "last") or not _WHOLE.fullmatch(text):
            return 0
        if len(digits) <= self._count:
            return 0
        if self.name == "last":
            return int(digits[-self._count :])
        return int(digits[: self._count].ljust(len(digits), "0"))

    def _fixed(self, value: Any) -> Any:
        if isinstance(value, (int, float, ExactNumber)) and not isinstance(value, bool):
            try:
                number = json.loads(self.argument, parse_float=number_of, parse_int=number_of)
            except ValueError:
                return self.argument
            if isinstance(number, (int, float, ExactNumber)) and not isinstance(number, bool):
                return number
        return self.argument


@lru_cache(maxsize=16)
def _keyed_hash(secret: bytes) -> hmac.HMAC:
    """Return a hash that has taken the secret: a copy of it costs half of a new one."""
    return hmac.new(secret, digestmod="sha256")


def _empty(value: Any) -> Any:
    if isinstance(value, (dict, list)):
        return type(value)()
    if isinstance(value, bool):
        return False
    is_number = isinstance(value, (int, float, ExactNumber))
    return 0 if is_number else ""


def _shape(character: str) -> str:
    if character.isupper():
        return "X"
    if character.isalpha():
        return "x"
    return "n" if character.isdigit() else "-"
