"""Bounds of a schema, before memory or time is taken; pure functions.

Confluent's registry has no such bounds. A schema of a person is far below them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from minibroker.registry.formats.parsed_schema import InvalidSchemaError

if TYPE_CHECKING:
    from collections.abc import Sequence

TEXT_BYTES_MAX: Final = 1 << 20
"""The text of one schema: Kafka's default for a record, which keeps it."""
TOTAL_BYTES_MAX: Final = 4 << 20
"""A schema and all that it refers to."""
REFERENCES_MAX: Final = 1000
DEPTH_MAX: Final = 150
"""Brackets inside brackets: the libraries recurse, and Python's stack has 1,000 frames."""
VALUES_MAX: Final = 20_000
"""Values in one JSON text: one that is all values takes Python's lock for a tenth of a second."""
_TOKENS: Final = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{},]', re.DOTALL)
_STEPS_MAX: Final = 100_000


class WorkBudget:
    """Steps that one call may still take; belongs to the call."""

    __slots__ = ("_steps",)

    def __init__(self, steps: int = _STEPS_MAX) -> None:
        self._steps = steps

    def step(self, steps: int = 1) -> None:
        """Take steps. Raises InvalidSchemaError: all are used."""
        self._steps -= steps
        if self._steps < 0:
            raise InvalidSchemaError("the schema asks for too much work")


def check_sizes(text: str, references: Sequence[tuple[str, str]]) -> None:
    """Check the sizes of a schema and of its references. Raises InvalidSchemaError."""
    if len(references) > REFERENCES_MAX:
        raise InvalidSchemaError(f"{len(references)} references; {REFERENCES_MAX} are allowed")
    total = 0
    for name, content in (("", text), *references):
        size = _size(content, f"the reference {name!r}" if name else "the schema")
        if size > TEXT_BYTES_MAX:
            raise InvalidSchemaError(
                f"the text has {size} bytes; {TEXT_BYTES_MAX} bytes are allowed"
            )
        total += size
    if total > TOTAL_BYTES_MAX:
        raise InvalidSchemaError(
            f"the schema and its references have {total} bytes; {TOTAL_BYTES_MAX} are allowed"
        )


def check_json(text: str, depth_max: int = DEPTH_MAX) -> None:
    """Check how deep a JSON text goes and how many values it has. Raises InvalidSchemaError.

    It is no parser: a text that is no JSON may pass.
    """
    depth = 0
    values = 1
    for token in _TOKENS.finditer(text):
        character = token.group()[0]
        if character in "[{":
            depth += 1
            if depth > depth_max:
                raise InvalidSchemaError(f"nested deeper than {depth_max} brackets")
        elif character in "]}":
            depth -= 1
        values += character in "[{,"
        if values > VALUES_MAX:
            raise InvalidSchemaError(f"more than {VALUES_MAX} values; no more are allowed")


def _size(content: str, place: str) -> int:
    try:
        return len(content.encode())
    except UnicodeEncodeError:
        raise InvalidSchemaError(f"{place} has half a surrogate pair, which is no text") from None
