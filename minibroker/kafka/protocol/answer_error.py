"""The first error of an answer, as the log of requests and the trace show it."""

from __future__ import annotations

import sys
from typing import Any, Final, NamedTuple

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.message import Message

_CODES: Final = ("error_code", "partition_error_code", "acknowledge_error_code")


class _Places(NamedTuple):
    """The fields of a class that have an error, or have structs with one."""

    codes: tuple[str, ...]
    structs: tuple[str, ...]


_PLACES: Final[dict[type[Message], _Places]] = {}


def first_error(response: Any) -> str | None:
    """Return the name of the first error code that is not 0, anywhere in an answer."""
    code = _first_code(response)
    return error_name(code) if code else None


def error_name(code: int) -> str:
    """Return Kafka's name of an error; a number that Kafka does not have stays a number."""
    error = ErrorCode(code)
    return error.name if error == code else f"error {code}"


def _first_code(message: Any) -> int:
    if not isinstance(message, Message):  # parts that a broker has as bytes
        plain_code: int = getattr(message, "error_code", 0)
        return plain_code
    message_class = type(message)
    places = _PLACES.get(message_class) or _note_places(message_class)
    for name in places.codes:
        code: int = getattr(message, name)
        if code:
            return code
    for name in places.structs:
        value = getattr(message, name)
        for struct in value if isinstance(value, list) else (value,):
            code = 0 if struct is None else _first_code(struct)
            if code:
                return code
    return 0


def _note_places(message_class: type[Message]) -> _Places:
    """Return the fields that are looked at: an answer may have thousands of structs without any."""
    definer = next(base for base in message_class.__mro__ if "JSON_FIELDS" in vars(base))
    module = sys.modules[definer.__module__]
    names = []
    for name, kind, *_ in message_class.JSON_FIELDS:
        if kind[0].isupper():
            struct_class = getattr(module, kind)
            if any(_PLACES.get(struct_class) or _note_places(struct_class)):
                names.append(name)
    codes = tuple(name for name in _CODES if hasattr(message_class, name))
    places = _PLACES[message_class] = _Places(codes, tuple(names))
    return places
