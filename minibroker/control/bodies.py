"""Queries and bodies of the control API: JSON and texts into `shapes`, and answers into JSON.

Every field is checked; an error names the field, its value, and what is expected.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
import msgspec.inspect

from minibroker.control.messages import HttpError, Response
from minibroker.control.shapes import CENTURY_DAYS, FaultRule, FaultView
from minibroker.rig.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from minibroker.control.shapes import Advance

T = TypeVar("T", bound=msgspec.Struct)
_FACTORS_MS: Final = {
    "days": 86_400_000,
    "hours": 3_600_000,
    "minutes": 60_000,
    "seconds": 1000,
    "milliseconds": 1,
}
_WORDS: Final = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}
"""msgspec's name of a type → ours."""
_PLACE: Final = re.compile(r" - at `\$\.?(.*)`$")


def parse_body(body: bytes | bytearray, shape: type[T]) -> T:
    """Return a body; a null field of it counts as missing. Raises HttpError(400)."""
    value = _decoded(body or b"{}")
    if not isinstance(value, dict):
        raise HttpError(HTTPStatus.BAD_REQUEST, "the body has to be a JSON object")
    parts = {name: part for name, part in value.items() if part is not None}
    return _convert(parts, shape, "field")


def parse_raw_body(body: bytes | bytearray, shape: type[T]) -> T:
    """Return a body whose parts are `msgspec.Raw`: they are not decoded. Raises HttpError(400)."""
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        sentence = _explain(str(error), _decoded(body), shape, "field")
        raise HttpError(HTTPStatus.BAD_REQUEST, sentence) from None


def _decoded(body: bytes | bytearray) -> Any:
    """Return the value of JSON. Raises HttpError(400)."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise HttpError(HTTPStatus.BAD_REQUEST, f"the body is not JSON: {error}") from None


def parse_query(query: Mapping[str, str], shape: type[T]) -> T:
    """Return a query. Raises HttpError(400)."""
    return _convert(dict(query), shape, "query")


def _convert(value: dict[str, Any], shape: type[T], kind: str) -> T:
    """`kind`: what a part of the value is called. Raises HttpError(400)."""
    try:
        return msgspec.convert(value, shape, strict=kind == "field")
    except msgspec.ValidationError as error:
        sentence = _explain(str(error), value, shape, kind)
        raise HttpError(HTTPStatus.BAD_REQUEST, sentence) from None


def _explain(message: str, value: Any, shape: type[msgspec.Struct], kind: str) -> str:
    """Return a message of msgspec with the field, its value, and what is expected."""
    place = _PLACE.search(message)
    path = place.group(1) if place is not None else ""
    text = message[: place.start()] if place is not None else message
    names = shape.__struct_fields__
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", text):
        expected = f"some of {', '.join(names)}" if names and not path else "none"
        return f"{kind} {unknown.group(1)!r:.100} is not known; expected {expected}"
    if missing := re.fullmatch(r"Object missing required field `(.*)`", text):
        return f"{kind} {missing.group(1)!r} is missing"
    for name in re.findall(r"\w+", path):
        try:
            value = value[int(name) if isinstance(value, list) else name]
        except (LookupError, TypeError, ValueError):
            break
    if text.startswith("Invalid enum value"):
        expected = f"one of {', '.join(_choices(shape, path))}"
    else:
        expected = text.partition(", got ")[0].removeprefix("Expected ")
        expected = re.sub(r"`([^`]*)`", lambda match: _worded(match.group(1)), expected)
        expected = expected.replace(">=", "from").replace("<=", "up to").removesuffix(".0")
    subject = f"{kind} {path!r}" if path else "the body"
    return f"{subject} is {value!r:.100}, expected {expected}"


def _worded(types: str) -> str:
    return " or ".join(_WORDS.get(name, name) for name in types.split(" | ") if name != "null")


def _choices(shape: type[msgspec.Struct], name: str) -> list[str]:
    """Return the texts that a field may be."""
    info = msgspec.inspect.type_info(shape)
    assert isinstance(info, msgspec.inspect.StructType)
    kinds: list[Any] = [field.type for field in info.fields if field.name == name]
    for kind in kinds:  # it grows
        kinds += getattr(kind, "types", ())
        if isinstance(kind, msgspec.inspect.Metadata):
            kinds.append(kind.type)
    return [
        str(text)
        for kind in kinds
        if isinstance(kind, msgspec.inspect.LiteralType)
        for text in kind.values
    ]


def answer(value: Any, status: int = HTTPStatus.OK) -> Response:
    """Return a shape, or a list of shapes, as a line of JSON."""
    return Response(status, msgspec.json.encode(value) + b"\n")


def line_of(value: msgspec.Struct) -> str:
    """Return a shape as JSON."""
    return msgspec.json.encode(value).decode()


def opening_of(value: msgspec.Struct) -> str:
    """Return the JSON of a shape up to its last field, an empty list: its items follow."""
    text = line_of(value)
    assert text.endswith("[]}")
    return text[:-2]


def pieces_of(value: Any) -> Iterator[str]:
    """Yield the JSON of a shape, or of a list of shapes, each item of a list for itself; the shape
    has no fields that may be left out. `slices` joins them.
    """
    if isinstance(value, list):
        yield "["
        for number, item in enumerate(value):
            yield ("," if number else "") + msgspec.json.encode(item).decode()
        yield "]"
        return
    for number, name in enumerate(value.__struct_fields__):
        yield f'{"," if number else "{"}"{name}":'
        part = getattr(value, name)
        if isinstance(part, list):
            yield from pieces_of(part)
        else:
            yield msgspec.json.encode(part).decode()
    yield "}\n"


# Faults, and the clock.


def fault_of(rule: msgspec.Struct) -> Fault:
    """Return the fault of a body. Raises HttpError(400) for fields that do not go together."""
    try:
        return Fault(**{name: getattr(rule, name) for name in rule.__struct_fields__})
    except ValueError as error:
        raise HttpError(HTTPStatus.BAD_REQUEST, str(error)) from None


def fault_view(number: int, fault: Fault, broker_id: int | None = None) -> msgspec.Struct:
    """Return a fault as JSON has it: its id, its hits, and the fields that say something.

    `broker_id`: of the broker that it happens to, None for a proxy.
    """
    fields = {}
    for name in FaultRule.__struct_fields__:
        value = getattr(fault, name, None)
        if value is not None and value is not False:
            fields[name] = value.name if name == "error" else value
    view: msgspec.Struct = FaultView(id=number, hits=fault.hits, broker_id=broker_id, **fields)
    return view


def advance_ms(advance: Advance) -> int:
    """Return how far to move the clock, in ms. Raises HttpError(400)."""
    moved_ms = sum(getattr(advance, name) * factor for name, factor in _FACTORS_MS.items())
    if not moved_ms:
        raise HttpError(
            HTTPStatus.BAD_REQUEST, f"say how far: {', '.join(_FACTORS_MS)} (some of them)"
        )
    if moved_ms > CENTURY_DAYS * _FACTORS_MS["days"]:
        raise HttpError(
            HTTPStatus.BAD_REQUEST, f"{', '.join(_FACTORS_MS)}: more than a hundred years"
        )
    return int(moved_ms)
