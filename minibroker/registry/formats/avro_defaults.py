"""Defaults of an Avro schema's fields: a default is a value of its field's type.

Source: Avro 1.12's specification, "Complex Types", the table of defaults; Schema.isValidDefault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from minibroker.registry.formats.avro_types import RECORDS, AvroField, AvroType
from minibroker.registry.formats.parsed_schema import InvalidSchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from minibroker.registry.formats.limits import WorkBudget

_BITS: Final = {"int": 32, "long": 64}


class DefaultCheck:
    """The defaults of one schema. Belongs to one call of `parse`."""

    def __init__(self, budget: WorkBudget) -> None:
        self._budget = budget
        self._verdicts: dict[AvroField, bool] = {}
        """False also while a default is looked at: it must not hold itself."""

    def check(self, types: Iterable[AvroType]) -> None:
        """Check every default. Raises InvalidSchemaError: one is no value of its type."""
        for node in types:
            for field in node.fields:
                if field.has_default and not self._default_fits(field):
                    raise InvalidSchemaError(
                        f"the default of the field {field.name} in {node.fullname} is no value of "
                        f"its type {field.type.branch_name}"
                    )

    def _default_fits(self, field: AvroField) -> bool:
        if field not in self._verdicts:
            self._verdicts[field] = False
            self._verdicts[field] = field.has_default and self._fits(field.type, field.default)
        return self._verdicts[field]

    def _fits(self, node: AvroType, value: Any) -> bool:
        self._budget.step()
        kind = node.kind
        if kind == "union":
            return any(self._fits(branch, value) for branch in node.schemas)
        if kind == "array":
            return isinstance(value, list) and all(
                self._fits(node.schemas[0], item) for item in value
            )
        if kind == "map":
            return isinstance(value, dict) and all(
                self._fits(node.schemas[0], item) for item in value.values()
            )
        if kind in RECORDS:
            return isinstance(value, dict) and all(
                self._fits(field.type, value[field.name])
                if field.name in value
                else self._default_fits(field)
                for field in node.fields
            )
        return _fits_scalar(kind, value)


def _fits_scalar(kind: str, value: Any) -> bool:
    if kind == "null":
        return value is None
    if kind == "boolean":
        return isinstance(value, bool)
    if kind in _BITS:
        limit = 1 << (_BITS[kind] - 1)
        return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
    if kind in {"float", "double"}:
        return isinstance(value, int | float) and not isinstance(value, bool)
    # Avro does not compare the default of an enum with its symbols, nor of a fixed with its size.
    return isinstance(value, str)
