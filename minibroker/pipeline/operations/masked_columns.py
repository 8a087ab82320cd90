"""Masks and selected fields of decoded records: columns of a batch in, the same types out. Pure.

    struct of a value ─► column by column, down to the places of the rules ─► struct of that type

The rules and the methods are those of JSON values (`masking`, `mask_methods`). A column keeps its
type, so where JSON loses a field, a column has null: for `drop`, and for fields that `--select`
does not name. A hash fits into its column: it has 31 bits in one of 32. Dates and times have no
masked value of their type and become null, as true and false do.

Text can be the JSON of a value without one type (a union of Avro). A rule goes into such a text,
and a text that is no JSON cannot be masked. A rule that no value of a column's type can follow ends
the job: a text for a number, or a field of a number.
"""

from __future__ import annotations

from decimal import Decimal
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from minibroker.pipeline.errors import BadRecordError, PipelineError
from minibroker.pipeline.operations import met_places
from minibroker.pipeline.operations.mask_methods import ExactNumber
from minibroker.pipeline.operations.mask_rules import FIXED, VALUE, FieldPath
from minibroker.pipeline.operations.masked_rows import masked_rows
from minibroker.pipeline.operations.masking import NO_JSON, NOT_WRITTEN, WAY_OUT, changed_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from minibroker.pipeline.operations.mask_methods import Method
    from minibroker.pipeline.operations.masking import Masker, PlaceNode
    from minibroker.pipeline.operations.rows import RowOperations

_HASH_BITS: Final = 53
NOT_DECODED: Final = "it cannot be decoded, and so it cannot be masked"


class MaskedRecords(NamedTuple):
    """The outcome of a batch."""

    rows: pa.RecordBatch
    """The rows that may be written."""
    unmaskable: int
    """Rows that were left out."""
    place_bits: int
    """Bits of the rules and selected fields whose places were there, see `masking`."""


class ColumnMasks:
    """The masks of an archive whose columns are decoded; the tasks get it by pickle."""

    def __init__(self, masker: Masker, decoded: Sequence[str], *, skips: bool) -> None:
        """Args:
        masker: with all rules of the job.
        decoded: columns that are no bytes: `value`, perhaps `key`.
        skips: whether a record that cannot be masked is left out; else it ends the job.
        """
        self._masker = masker
        self._decoded = decoded
        self._skips = skips

    def check(self, types: Mapping[str, pa.DataType], operations: RowOperations) -> None:
        """Raise PipelineError if a rule cannot be followed in columns of these types.

        JobUsageError: a column has not got a place; `operations` are those of the job, for its
        name. Any place may be in a map or in the JSON of a text.
        """
        place_bits, names = 0, set()
        for column in self._decoded:
            if column in types:
                self._column(column, pa.nulls(0, types[column]))
                names |= {FieldPath(column, inside).place for inside in _names(types[column], ())}
                place_bits |= self._places(column, types[column])
        places = [*(rule.path for rule in operations.rules), *operations.fields]
        for index, path in enumerate(places):
            if path.target not in self._decoded or path.target not in types:
                place_bits |= 1 << index  # of bytes, or of a column whose values have no schema yet
        met_places.check(operations, place_bits, names)

    def _places(self, column: str, kind: pa.DataType) -> int:
        """Return the bits of the places that a column of this type may have."""
        tree = self._masker.trees.get(column)
        place_bits = 0 if tree is None else _may_have(kind, tree)
        selection = self._masker.selection if column == VALUE else None
        return place_bits if selection is None else place_bits | _may_have(kind, selection)

    def of(self, rows: pa.RecordBatch) -> MaskedRecords:
        """Return the masked rows of a batch. Raises PipelineError: one is not written."""
        if not rows.num_rows:
            return MaskedRecords(rows, 0, 0)
        reasons: dict[int, str] = {}
        rows, place_bits = self._bytes(rows, reasons)
        for column in self._decoded:
            at = rows.schema.names.index(column)
            parts = list(self._parts(column, rows.column(at), 0, reasons))
            for _, bits in parts:
                place_bits |= bits
            whole = pa.concat_arrays([array for array, _ in parts])
            rows = rows.set_column(at, column, whole)
        if reasons:
            first = min(reasons)
            self._check_skipped(rows.slice(first, 1), reasons[first])
            rows = rows.filter(pa.array([row not in reasons for row in range(rows.num_rows)]))
        return MaskedRecords(rows, len(reasons), place_bits)

    def left_out(self, records: pa.RecordBatch) -> int:
        """Return the number of records that could not be decoded, and so are left out.

        Raises PipelineError if they end the job.
        """
        self._check_skipped(records, NOT_DECODED)
        return int(records.num_rows)

    def _check_skipped(self, records: pa.RecordBatch, reason: str) -> None:
        """Raise PipelineError about the first of these records if such records end the job."""
        if not self._skips:
            row = records.slice(0, 1).select(["topic", "partition", "offset"]).to_pylist()[0]
            raise BadRecordError(
                f"record {row['topic']}-{row['partition']} offset {row['offset']}"
                f"{NOT_WRITTEN}{reason}{WAY_OUT}"
            )

    def _bytes(self, rows: pa.RecordBatch, reasons: dict[int, str]) -> tuple[pa.RecordBatch, int]:
        """Return the rows with masked headers, and a masked key that is not decoded."""
        names = [name for name in self._masker.columns if name not in self._decoded]
        if not names:
            return rows, 0
        result = masked_rows(self._masker, names, [rows.column(name) for name in names])
        place_bits = 0
        for bits in pc.unique(pc.struct_field(result, "found")).to_pylist():
            place_bits |= bits
        why = pc.struct_field(result, "reason")
        reasons |= {row: why[row].as_py() for row in pc.indices_nonzero(why.is_valid()).to_pylist()}
        for name in names:
            at = rows.schema.names.index(name)
            masked = pc.struct_field(result, name).cast(rows.schema.field(at).type)
            rows = rows.set_column(at, name, masked)
        return rows, place_bits

    def _parts(
        self, column: str, values: pa.Array, start: int, reasons: dict[int, str]
    ) -> list[tuple[pa.Array, int]]:
        """Return masked arrays that together are as long as `values`, each with its bits.

        An array with a value that cannot be masked is halved until that value stands alone.
        """
        try:
            return [self._column(column, values)]
        except UnmaskableError as error:
            if len(values) == 1:
                reasons.setdefault(start, f"its {column} cannot be masked: {error}")
                return [(pa.nulls(1, values.type), 0)]
        half = len(values) // 2
        first = self._parts(column, values.slice(0, half), start, reasons)
        return first + self._parts(column, values.slice(half), start + half, reasons)

    def _column(self, column: str, values: pa.Array) -> tuple[pa.Array, int]:
        tree = self._masker.trees.get(column)
        selection = self._masker.selection if column == VALUE else None
        walk = _Walk(column)
        if tree is not None:
            values = walk.masked(values, tree)
        if selection is not None:
            values = walk.selected(values, selection)
        return values, walk.bits


def _may_have(kind: pa.DataType, node: PlaceNode) -> int:
    """Return the bits of a node and of those below it that values of a type may have."""
    if not node.children or node.method is not None:
        return node.bit
    if pa.types.is_list(kind):
        return _may_have(kind.value_type, node)
    if not pa.types.is_struct(kind):
        return reduce(or_, (_may_have(pa.null(), child) for child in node.children.values()))
    bits = [
        _may_have(kind.field(name).type, child)
        for name, child in node.children.items()
        if name in kind.names
    ]
    return reduce(or_, bits, 0)


def _names(kind: pa.DataType, prefix: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the names of all fields inside a type."""
    if pa.types.is_list(kind):
        yield from _names(kind.value_type, prefix)
    elif pa.types.is_struct(kind):
        for field in kind:
            yield (*prefix, field.name)
            yield from _names(field.type, (*prefix, field.name))


class UnmaskableError(PipelineError):
    """A value that cannot be masked, among others of its column that can."""


class _Walk:
    """One way through a column; `bits` are those of the places that were there."""

    def __init__(self, column: str) -> None:
        self.bits = 0
        self._column = column

    def masked(self, values: pa.Array, node: PlaceNode) -> pa.Array:
        """Return values of the same type, with the rules at and below a node applied.

        Raises UnmaskableError for a value, PipelineError for a type.
        """
        if node.method is not None:
            self.bits |= node.bit
            if node.is_each and pa.types.is_list(values.type):
                return _each(values, node.method, f"{self._place(node)}[]")
            return _replaced(values, node.method, self._place(node))
        kind = values.type
        if pa.types.is_struct(kind):
            return _struct(values, lambda name, inner: self._child(inner, node, name))
        if pa.types.is_list(kind):
            return _list(values, lambda items: self.masked(items, node))
        if pa.types.is_map(kind):
            return self._map(values, node)
        if pa.types.is_string(kind):
            return pa.array([self._text(text, node) for text in values.to_pylist()], kind)
        if pa.types.is_null(kind):
            return values
        place = self._place(node)
        raise PipelineError(
            f"--mask has a rule for {place}.{next(iter(node.children))}, but {place} is a column "
            f"of {kind}, which has no fields; give a rule for {place}"
        )

    def selected(self, values: pa.Array, node: PlaceNode) -> pa.Array:
        """Return values of the same type, null where no field is selected."""
        if not node.children:
            self.bits |= node.bit
            return values
        kind = values.type

        children = node.children

        def field(name: str, inner: pa.Array) -> pa.Array:
            if child := children.get(name):
                return self.selected(inner, child)
            return pa.nulls(len(inner), inner.type)

        if pa.types.is_struct(kind):
            return _struct(values, field)
        if pa.types.is_list(kind):
            return _list(values, lambda items: self.selected(items, node))
        if pa.types.is_map(kind):
            changes = {name: partial(field, name) for name in children}
            return _map(values, partial(_items_by_name, changes=changes), children.__contains__)
        return pa.nulls(len(values), kind)

    def _place(self, node: PlaceNode) -> str:
        return f"{self._column}.{node.path}" if node.path else self._column

    def _child(self, values: pa.Array, node: PlaceNode, name: str) -> pa.Array:
        child = node.children.get(name)
        return values if child is None else self.masked(values, child)

    def _map(self, values: pa.Array, node: PlaceNode) -> pa.Array:
        def is_kept(name: str) -> bool:
            child = node.children.get(name)
            return child is None or child.method is None or child.method.name != "drop"

        changes = {name: partial(self.masked, node=child) for name, child in node.children.items()}
        return _map(values, partial(_items_by_name, changes=changes), is_kept)

    def _text(self, text: str | None, node: PlaceNode) -> str | None:
        """Return the JSON of a value with its fields masked. Raises UnmaskableError."""
        if text is None:
            return None
        try:
            content, bits = changed_json(text.encode(), node, None)
        except RecursionError:
            raise UnmaskableError(NO_JSON) from None
        except PipelineError as error:
            raise UnmaskableError(str(error)) from None
        self.bits |= bits
        return content.decode()


def _replaced(values: pa.Array, method: Method, path: str) -> pa.Array:
    """Return the results of a method for whole values, of the same type.

    Raises UnmaskableError for a value, PipelineError for a type.
    """
    kind = values.type
    if method.name in ("null", "drop") or pa.types.is_null(kind):
        return pa.nulls(len(values), kind)
    if method.name == FIXED:
        result = pa.array([_fixed(method.argument, kind, path)], kind)
        return pc.if_else(values.is_valid(), result[0], pa.scalar(None, kind))
    if pa.types.is_struct(kind):
        if method.name == "empty":
            return _struct(values, lambda name, inner: pa.nulls(len(inner), inner.type))
        return _struct(values, lambda name, inner: _replaced(inner, method, f"{path}.{name}"))
    if pa.types.is_list(kind):
        if method.name == "empty":
            return _emptied(values)
        return _each(values, method, f"{path}[]")
    if pa.types.is_map(kind):
        if method.name == "empty":
            return _map(values, lambda names, items: items, lambda name: False)
        return _map(values, lambda names, items: _replaced(items, method, path), lambda name: True)
    result_of = _function(kind, method)
    return pa.array(
        [None if value is None else result_of(value) for value in values.to_pylist()], kind
    )


def _each(values: pa.Array, method: Method, path: str) -> pa.Array:
    """Return lists with a method applied to each item; dropped items are not there."""
    if method.name == "drop":
        return _emptied(values)
    return _list(values, lambda items: _replaced(items, method, path))


def _function(kind: pa.DataType, method: Method) -> Callable[[Any], Any]:
    """Return the function from a value of a scalar type to its result; null for most types."""
    if pa.types.is_string(kind) or pa.types.is_boolean(kind):
        return method.of
    if pa.types.is_binary(kind):
        return lambda value: _bytes(value, method)
    if pa.types.is_integer(kind):
        spare = max(0, _HASH_BITS - kind.bit_width + 1) if method.name == "hash" else 0
        return lambda value: method.of(value) >> spare
    if pa.types.is_floating(kind):
        return lambda value: float(method.of(value))
    if pa.types.is_decimal(kind):
        bound = 10 ** (kind.precision - kind.scale)
        return lambda value: Decimal(method.of(ExactNumber.of(str(value))) % bound)
    return lambda value: None


def _bytes(value: bytes, method: Method) -> bytes | None:
    try:
        return method.of_bytes(value)
    except PipelineError as error:
        raise UnmaskableError(str(error)) from None


def _fixed(text: str, kind: pa.DataType, path: str) -> Any:
    """Return the value of `fixed:T` in a column. Raises PipelineError: it has no such value."""
    makes: tuple[tuple[Callable[[pa.DataType], bool], Callable[[str], Any]], ...] = (
        (pa.types.is_string, str),
        (pa.types.is_binary, str.encode),
        (pa.types.is_integer, int),
        (pa.types.is_floating, float),
        (pa.types.is_decimal, Decimal),
    )
    for is_of, make in makes:
        if is_of(kind):
            try:
                return pa.array([make(text)], kind)[0].as_py()
            except (ValueError, ArithmeticError, pa.ArrowException):
                break
    raise PipelineError(
        f"--mask {path}={FIXED}:{text} does not fit a column of {kind}; null fits every column"
    )


def _struct(values: pa.Array, change: Callable[[str, pa.Array], pa.Array]) -> pa.Array:
    """Return structs with other values of their fields, which keep their types."""
    fields = list(values.type)
    if not fields:
        return values
    arrays = [
        change(field.name, pc.struct_field(values, [index])) for index, field in enumerate(fields)
    ]
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=values.is_null())


def _list(values: pa.Array, change: Callable[[pa.Array], pa.Array]) -> pa.Array:
    whole = _compact(values)
    items = change(whole.values)
    return pa.ListArray.from_arrays(whole.offsets, items, type=values.type, mask=whole.is_null())


def _emptied(values: pa.Array) -> pa.Array:
    """Return an empty list for each list; null stays null."""
    return pa.array(
        [[] if is_there else None for is_there in values.is_valid().to_pylist()], values.type
    )


def _map(
    values: pa.Array,
    change: Callable[[pa.Array, pa.Array], pa.Array],
    is_kept: Callable[[str], bool],
) -> pa.Array:
    """Return maps with other items, without the entries whose names are not kept.

    Args:
        change: returns the new items from the names and the items of all entries.
        is_kept: returns whether entries of a name stay.
    """
    whole = _compact(values)
    names = whole.keys.cast(pa.string())
    items = change(names, whole.items)
    kept_mask = pa.array([is_kept(name) for name in names.to_pylist()], pa.bool_())
    counts = pc.cumulative_sum(
        pa.concat_arrays([pa.array([0], pa.int32()), kept_mask.cast(pa.int32())])
    )
    return pa.MapArray.from_arrays(
        counts.take(whole.offsets),
        whole.keys.filter(kept_mask),
        items.filter(kept_mask),
        type=values.type,
        mask=whole.is_null(),
    )


def _items_by_name(
    names: pa.Array, items: pa.Array, changes: Mapping[str, Callable[[pa.Array], pa.Array]]
) -> pa.Array:
    """Return the items of maps, those of some names changed."""
    for name, change in changes.items():
        rows = pc.indices_nonzero(pc.equal(names, name)).to_pylist()
        if rows:
            places = list(range(len(items)))
            for number, row in enumerate(rows, len(items)):
                places[row] = number
            changed = change(items.take(pa.array(rows, pa.int64())))
            items = pa.concat_arrays([items, changed]).take(pa.array(places, pa.int64()))
    return items


def _compact(values: pa.Array) -> pa.Array:
    """Return lists or maps whose items are theirs alone: neither of a slice, nor behind nulls."""
    return values.take(pa.array(range(len(values)), pa.int64()))
