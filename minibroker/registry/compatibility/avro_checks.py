"""Compatibility of Avro schemas: Apache Avro's own checker, and reasons with their places.

The checker of the library says whether a pair fits. Its messages stand in no order, and lose their
place behind a union of the writer; so the same rules are walked here for the reasons. The walk also
refuses a field that aliases match twice, as Avro's Java does.

Source: Avro 1.12's specification, "Schema Resolution"; org.apache.avro.SchemaCompatibility.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from avro.compatibility import (
    CompatibleResult,
    ReaderWriterCompatibilityChecker,
    SchemaCompatibilityResult,
    SchemaCompatibilityType,
)

from minibroker.registry.compatibility.incompatibility import REASONS_MAX, Incompatibility
from minibroker.registry.formats.avro_types import RECORDS, AvroField, AvroType
from minibroker.registry.formats.limits import WorkBudget

if TYPE_CHECKING:
    from avro.schema import Schema

_PROMOTIONS: Final = {
    "long": {"int"},
    "float": {"int", "long"},
    "double": {"int", "long", "float"},
    "bytes": {"string"},
    "string": {"bytes"},
}
"""Type of the reader → types of the writer that it reads besides its own."""
_FIELDS_OF_A_STEP: Final = 1000
_CONTAINERS: Final = {"array": "items", "map": "values"}


def incompatibilities(reader: AvroType, writer: AvroType) -> list[Incompatibility]:
    """Return why data of the writer cannot be read. Raises InvalidSchemaError, RecursionError."""
    reasons = list(PairWalk(WorkBudget()).reasons(reader, writer, ""))
    if not reasons:
        verdict = BoundedChecker(WorkBudget()).get_compatibility(
            cast("Schema", reader), cast("Schema", writer)
        )
        if verdict.compatibility is not SchemaCompatibilityType.compatible:
            text = ", ".join(sorted(verdict.messages))
            return [Incompatibility("TYPE_MISMATCH", "/", "Apache Avro refuses the pair", text)]
    return reasons


class BoundedChecker(ReaderWriterCompatibilityChecker):
    """Apache Avro's checker on our types, with a bound of work.

    It remembers pairs here: the library's own hash of a pair is 0 for a schema and itself. It says
    no place: the walk does.
    """

    def __init__(self, budget: WorkBudget) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # the library has no types there
        self._budget = budget
        self._verdicts: dict[tuple[Schema, Schema], SchemaCompatibilityResult] = {}

    def get_compatibility(
        self,
        reader: Schema,
        writer: Schema,
        reference_token: str = ReaderWriterCompatibilityChecker.ROOT_REFERENCE_TOKEN,
        location: list[str] | None = None,
    ) -> SchemaCompatibilityResult:
        """Return the verdict on a pair of types. Raises InvalidSchemaError: too much work."""
        self._budget.step()
        result = self._verdicts.get((reader, writer))
        if result is None:
            # The library copies all messages with each new one.
            self._budget.step(len(cast("AvroType", reader).fields) ** 2 // _FIELDS_OF_A_STEP)
            self._verdicts[reader, writer] = CompatibleResult
            result = self.calculate_compatibility(reader, writer, [])
            self._verdicts[reader, writer] = result
        return result


class PairWalk:
    """The reasons of one comparison. Each pair of types is looked at once."""

    def __init__(self, budget: WorkBudget) -> None:
        self._budget = budget
        self._pairs: dict[tuple[AvroType, AvroType], dict[Incompatibility, None]] = {}
        """Pair → its reasons, in order; none while the pair is looked at: a schema that contains
        itself fits if nothing else speaks against it."""

    def reasons(self, reader: AvroType, writer: AvroType, path: str) -> dict[Incompatibility, None]:
        """Return why a type of the writer cannot be read as a type of the reader."""
        self._budget.step()
        reasons = self._pairs.get((reader, writer))
        if reasons is None:
            self._pairs[reader, writer] = {}
            reasons = {}
            self._look(reader, writer, path, reasons)
            self._pairs[reader, writer] = reasons
        return reasons

    def _look(
        self, reader: AvroType, writer: AvroType, path: str, reasons: dict[Incompatibility, None]
    ) -> None:
        if writer.kind == "union":
            self._look_at_branches(reader, writer, path, reasons)
        elif reader.kind == "union":
            if all(self.reasons(branch, writer, path) for branch in reader.schemas):
                reasons[_missing_branch(writer, path)] = None
        elif reader.kind in RECORDS and writer.kind in RECORDS:
            reasons.update(_name_reasons(reader, writer, path))
            self._look_at_fields(reader, writer, path, reasons)
        elif reader.kind != writer.kind:
            if writer.kind not in _PROMOTIONS.get(reader.kind, ()):
                reasons[_type_mismatch(reader, writer, path)] = None
        elif reader.kind in _CONTAINERS:
            place = f"{path}/{_CONTAINERS[reader.kind]}"
            self._add(reasons, self.reasons(reader.schemas[0], writer.schemas[0], place))
        elif reader.fullname:
            reasons.update(_name_reasons(reader, writer, path))
            reasons.update(_named_reasons(reader, writer, path))

    def _look_at_branches(
        self, reader: AvroType, writer: AvroType, path: str, reasons: dict[Incompatibility, None]
    ) -> None:
        for index, branch in enumerate(writer.schemas):
            place = f"{path}/{index}"
            branch_reasons = self.reasons(reader, branch, place)
            if branch_reasons and reader.kind == "union":
                reasons[_missing_branch(branch, place)] = None
            else:
                self._add(reasons, branch_reasons)

    def _look_at_fields(
        self, reader: AvroType, writer: AvroType, path: str, reasons: dict[Incompatibility, None]
    ) -> None:
        for index, field in enumerate(reader.fields):
            self._budget.step(1 + len(field.aliases))
            place = f"{path}/fields/{index}"
            names = [name for name in (field.name, *field.aliases) if name in writer.fields_dict]
            if len(names) > 1:
                reasons[_ambiguous(field, names, place)] = None
            elif names:
                other = writer.fields_dict[names[0]].type
                self._add(reasons, self.reasons(field.type, other, f"{place}/type"))
            elif not field.has_default:
                reasons[_missing_default(field, place)] = None

    @staticmethod
    def _add(reasons: dict[Incompatibility, None], others: dict[Incompatibility, None]) -> None:
        """Add the reasons of a part, as long as there are not enough."""
        if len(reasons) < REASONS_MAX:
            reasons.update(others)


def _name_reasons(reader: AvroType, writer: AvroType, path: str) -> dict[Incompatibility, None]:
    """Return why a named type is another one: neither its simple name nor an alias fits."""
    if reader.name == writer.name or writer.fullname in reader.aliases:
        return {}
    description = f"the reader calls it {reader.fullname}, the writer {writer.fullname}"
    reason = Incompatibility(
        "NAME_MISMATCH", f"{path}/name", description, f"expected: {writer.fullname}"
    )
    return {reason: None}


def _named_reasons(reader: AvroType, writer: AvroType, path: str) -> dict[Incompatibility, None]:
    """Return why an enum or a fixed does not fit."""
    if reader.kind == "fixed":
        if reader.size == writer.size:
            return {}
        description = f"the reader has {reader.size} bytes, the writer {writer.size}"
        detail = f"expected: {writer.size}, found: {reader.size}"
        return {Incompatibility("FIXED_SIZE_MISMATCH", f"{path}/size", description, detail): None}
    symbols = sorted(set(writer.symbols).difference(reader.symbols))
    if not symbols or reader.enum_default is not None:
        return {}
    description = "the reader knows not all symbols of the writer and has no default"
    detail = f"[{', '.join(symbols[:REASONS_MAX])}]"
    return {Incompatibility("MISSING_ENUM_SYMBOLS", f"{path}/symbols", description, detail): None}


def _type_mismatch(reader: AvroType, writer: AvroType, path: str) -> Incompatibility:
    return Incompatibility(
        "TYPE_MISMATCH",
        path or "/",
        f"the reader has the type {reader.kind} and does not read {writer.kind}",
        f"reader type: {reader.kind.upper()} not compatible with writer type: "
        f"{writer.kind.upper()}",
    )


def _missing_branch(writer: AvroType, path: str) -> Incompatibility:
    return Incompatibility(
        "MISSING_UNION_BRANCH",
        path or "/",
        f"no type of the reader's union reads {writer.branch_name}",
        f"reader union lacking writer type: {writer.kind.upper()}",
    )


def _missing_default(field: AvroField, path: str) -> Incompatibility:
    return Incompatibility(
        "READER_FIELD_MISSING_DEFAULT_VALUE",
        path,
        f"the reader has the field {field.name}, which has no default and which the writer lacks",
        field.name,
    )


def _ambiguous(field: AvroField, names: list[str], path: str) -> Incompatibility:
    return Incompatibility(
        "NAME_MISMATCH",
        path,
        f"the field {field.name} of the reader is more than one field of the writer",
        ", ".join(names[:REASONS_MAX]),
    )
