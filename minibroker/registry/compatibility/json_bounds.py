"""Bounds of a JSON Schema's values: lengths, counts, numbers, patterns; rules as tables.

Each rule says what a reader has that the writer does not promise.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from minibroker.registry.compatibility.json_views import JsonView

_DIGITS_MAX: Final = 400
"""Digits of a number as a fraction: a float has no more."""


class CountRule(NamedTuple):
    """A keyword with a largest or smallest number."""

    keyword: str
    name: str
    """The first part of Confluent's names, such as MAX_LENGTH."""
    is_upper: bool
    measure: Callable[[Any], int]
    """Returns the count of a value, for enums."""


COUNTS: Final = {
    "string": (CountRule("maxLength", "MAX_LENGTH", True, len),
               CountRule("minLength", "MIN_LENGTH", False, len)),
    "array": (CountRule("maxItems", "MAX_ITEMS", True, len),
              CountRule("minItems", "MIN_ITEMS", False, len)),
    "object": (CountRule("maxProperties", "MAX_PROPERTIES", True, len),
               CountRule("minProperties", "MIN_PROPERTIES", False, len)),
}  # fmt: skip
"""Type → its bounds of a count."""


class Failure(NamedTuple):
    """A keyword of the reader that the writer does not promise."""

    kind: str
    keyword: str
    description: str


def count_failures(kind: str, reader: JsonView, writer: JsonView) -> Iterator[Failure]:
    """Yield the counts that a reader bounds more tightly, for one of the types in COUNTS."""
    for bound in COUNTS[kind]:
        for limit in reader.values(bound.keyword):
            values = _values_of(kind, writer)
            if values is not None and all(
                _within(bound.measure(value), limit, is_upper=bound.is_upper) for value in values
            ):
                continue
            limits = writer.values(bound.keyword)
            if bound.is_upper:
                yield from _upper_failures(bound.name, bound.keyword, limit, limits)
            elif limit > 0:
                yield from _lower_failures(bound.name, bound.keyword, limit, limits)


def number_failures(reader: JsonView, writer: JsonView) -> Iterator[Failure]:
    """Yield the bounds of numbers that a reader has more tightly."""
    values = _values_of("number", writer)
    for is_upper, name in ((True, "MAXIMUM"), (False, "MINIMUM")):
        keyword = name.lower()
        limits = _number_limits(writer, keyword, is_upper=is_upper)
        for limit, is_exclusive in _number_limits(reader, keyword, is_upper=is_upper):
            if values is not None and all(
                _within(value, limit, is_upper=is_upper) and not (is_exclusive and value == limit)
                for value in values
            ):
                continue
            full = f"EXCLUSIVE_{name}" if is_exclusive else name
            place = f"exclusive{name.capitalize()}" if is_exclusive else keyword
            # An exclusive bound is a little tighter than the same number without.
            own, others = (
                _rank(limit, is_exclusive, is_upper),
                [_rank(other, exclusive, is_upper) for other, exclusive in limits],
            )
            if is_upper:
                yield from _upper_failures(full, place, own, others)
            else:
                yield from _lower_failures(full, place, own, others)
    for factor in reader.values("multipleOf"):
        yield from _multiple_failures(factor, writer, values)


def pattern_failures(reader: JsonView, writer: JsonView) -> Iterator[Failure]:
    """Yield the patterns of strings that the writer does not have word for word."""
    patterns = writer.values("pattern")
    for pattern in reader.values("pattern"):
        if pattern not in patterns:
            kind = "PATTERN_CHANGED" if patterns else "PATTERN_ADDED"
            yield Failure(kind, "pattern", "the writer does not promise the reader's pattern")


def number(value: Any) -> Fraction:
    """Return a number of JSON exactly; one beyond all floats is the largest float."""
    if isinstance(value, int) and value.bit_length() <= 4 * _DIGITS_MAX:
        return Fraction(value)
    try:
        return Fraction(repr(float(value)))
    except (OverflowError, ValueError):
        return Fraction(10) ** _DIGITS_MAX * (1 if value > 0 else -1)


def _multiple_failures(
    factor: Any, writer: JsonView, values: list[Any] | None
) -> Iterator[Failure]:
    size = number(factor)
    factors = [number(other) for other in writer.values("multipleOf")]
    if "number" not in writer.types:
        factors.append(Fraction(1))
    if size == 0 or any(other % size == 0 for other in factors):
        return
    if values is not None and all(number(value) % size == 0 for value in values):
        return
    kind = "MULTIPLE_OF_CHANGED" if writer.values("multipleOf") else "MULTIPLE_OF_ADDED"
    yield Failure(kind, "multipleOf", f"the writer's numbers are not all multiples of {factor}")


def _upper_failures(name: str, keyword: str, limit: Any, limits: list[Any]) -> Iterator[Failure]:
    if not limits:
        yield Failure(f"{name}_ADDED", keyword, "only the reader has this bound")
    elif min(limits) > limit:
        yield Failure(f"{name}_DECREASED", keyword, "the reader's bound is below the writer's")


def _lower_failures(name: str, keyword: str, limit: Any, limits: list[Any]) -> Iterator[Failure]:
    if not limits:
        yield Failure(f"{name}_ADDED", keyword, "only the reader has this bound")
    elif max(limits) < limit:
        yield Failure(f"{name}_INCREASED", keyword, "the reader's bound is above the writer's")


def _number_limits(view: JsonView, keyword: str, *, is_upper: bool) -> list[tuple[Fraction, bool]]:
    """Return (limit, whether the limit itself is outside) of each bound of a view."""
    exclusive_keyword = "exclusiveMaximum" if is_upper else "exclusiveMinimum"
    limits = []
    for node in view.conditions:
        plain, exclusive = node.schema.get(keyword), node.schema.get(exclusive_keyword)
        if plain is not None:
            limits.append((number(plain), exclusive is True))
        if exclusive is not None and not isinstance(exclusive, bool):
            limits.append((number(exclusive), True))
    return limits


def _rank(limit: Fraction, is_exclusive: bool, is_upper: bool) -> tuple[Fraction, int]:
    return (limit, -is_exclusive if is_upper else is_exclusive)


def _values_of(kind: str, view: JsonView) -> list[Any] | None:
    """Return the values of a type that an enum allows; None: there is no enum."""
    if view.constants is None:
        return None
    classes = {"string": str, "array": list, "object": dict, "number": (int, float)}
    return [
        value
        for value in view.constants.values()
        if isinstance(value, classes[kind]) and not isinstance(value, bool)  # type: ignore[arg-type]
    ]


def _within(value: Any, limit: Any, *, is_upper: bool) -> bool:
    return bool(value <= limit if is_upper else value >= limit)
