"""Types that Kafka Connect and Debezium give a schema by name: times, dates, decimals.

A source connector writes a time as a number or a text, and its meaning as the name of the schema
(`connect.name` in Avro, `title` in a JSON Schema, `name` in JSON with its schema):

| name                                  | values            | column                   |
|---------------------------------------|-------------------|--------------------------|
| io.debezium.time.Date                 | days              | date                     |
| io.debezium.time.Timestamp            | ms                | timestamp without a zone |
| io.debezium.time.MicroTimestamp       | µs                | timestamp without a zone |
| io.debezium.time.NanoTimestamp        | ns, cut to µs     | timestamp without a zone |
| io.debezium.time.ZonedTimestamp       | ISO 8601          | timestamp                |
| org.apache.kafka.connect.data.…       |                   |                          |
| Date                                  | days              | date                     |
| Timestamp                             | ms                | timestamp                |
| Decimal                               | unscaled, or text | decimal, or text         |
| io.debezium.data.VariableScaleDecimal | scale, unscaled   | the text of the number   |

Times of a day and durations stay numbers, in the unit of their name: Delta has no such column.
A decimal of more than 38 digits is text.
Source: Debezium's documentation, "Temporal types" and "Decimal types".
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple

import pyarrow as pa

DECIMAL_DIGITS_MAX: Final = 38
"""Digits of a decimal column, at most, in every format of tables."""
_SCALE_MAX: Final = 10_000
"""Digits behind or before the point that a text of a decimal may have."""

VARIABLE_SCALE_DECIMAL: Final = "io.debezium.data.VariableScaleDecimal"
DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"

LOCAL: Final = pa.timestamp("us")
"""A time without a zone."""
INSTANT: Final = pa.timestamp("us", "UTC")

WHOLE: Final = "whole number"
TEXT: Final = "text"


class Meaning(NamedTuple):
    """The column of a named type."""

    type: pa.DataType
    of: str
    """WHOLE or TEXT: the values."""
    convert: Callable[[Any], Any]
    """From a value to what Arrow takes for the type; a time may be a number of microseconds."""
    unit: pa.DataType | None = None
    """Arrow type to which an array of the values is cast first; None: value by value only."""


def _same(value: Any) -> Any:
    return value


MEANINGS: Final = {
    "io.debezium.time.Date": Meaning(pa.date32(), WHOLE, _same, pa.date32()),
    "io.debezium.time.Timestamp": Meaning(LOCAL, WHOLE, lambda ms: ms * 1000, pa.timestamp("ms")),
    "io.debezium.time.MicroTimestamp": Meaning(LOCAL, WHOLE, _same, LOCAL),
    "io.debezium.time.NanoTimestamp": Meaning(LOCAL, WHOLE, lambda ns: ns // 1000),
    "io.debezium.time.ZonedTimestamp": Meaning(INSTANT, TEXT, datetime.fromisoformat, INSTANT),
    "org.apache.kafka.connect.data.Date": Meaning(pa.date32(), WHOLE, _same, pa.date32()),
    "org.apache.kafka.connect.data.Timestamp": Meaning(
        INSTANT, WHOLE, lambda ms: ms * 1000, pa.timestamp("ms", "UTC")
    ),
}


def decimal_of(precision: int | None, scale: int) -> pa.DataType:
    """Return the type of decimals: text if a column of decimals cannot hold all of them.

    Args:
        precision: digits, at most; None: not known.
        scale: digits behind the point.
    """
    if precision is None or precision > DECIMAL_DIGITS_MAX or not 0 <= scale <= precision:
        return pa.string()
    return pa.decimal128(precision, scale)


def decimal_text(unscaled: bytes, scale: int) -> str:
    """Return the number of big-endian two's complement bytes as text, without an exponent.

    Raises ValueError: it would be too long.
    """
    if abs(scale) > _SCALE_MAX:
        raise ValueError(f"a decimal has scale {scale}")
    number = int.from_bytes(unscaled, signed=True)
    sign, digits = ("-" if number < 0 else ""), str(abs(number))
    if scale <= 0:
        return sign + (digits + "0" * -scale if number else "0")
    digits = digits.rjust(scale + 1, "0")
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}"


def number_text(number: Decimal) -> str:
    """Return a number without an exponent. Raises ValueError: it is none, or would be too long."""
    if not number.is_finite() or abs(number.adjusted()) > _SCALE_MAX:
        raise ValueError(f"is no decimal: {number}")
    return f"{number:f}"


def variable_scale_text(value: Any) -> str | None:
    """Return the number of a VariableScaleDecimal as text.

    Args:
        value: scale, and unscaled bytes or their base64.

    Raises ValueError: it is none.
    """
    if value is None:
        return None
    try:
        unscaled, scale = value["value"], value["scale"]
        content = (
            base64.b64decode(unscaled, validate=True) if isinstance(unscaled, str) else unscaled
        )
        return decimal_text(content, scale)
    except (KeyError, TypeError) as error:
        raise ValueError("is no VariableScaleDecimal") from error
