"""Masks and selected fields of one record: bytes in, bytes out. Pure; it runs in the tasks.

    key, value, headers ─► Masker.apply ─► key, value, headers, found, reason

A JSON value is parsed, its fields are replaced or left out, and it is written again as compact
JSON. The fields that no rule names keep their order, and numbers keep their digits. A value that
is no JSON object (or array of objects) cannot be masked, and neither can one that has a text or a
number where a rule expects an object: the name that is meant may be in that text. There is a reason
then, and no value. No reason has a part of the value in it.

`place_bits` is a number with a bit for each rule, then for each selected field: 1 if the record had
its place. A rule that no record of a job had is probably a wrong name, and the job says so.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.operations.mask_methods import DROPPED, Method, number_of, unmarked
from minibroker.pipeline.operations.mask_rules import HEADERS, KEY, VALUE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.pipeline.operations.mask_rules import FieldPath, MaskRule

NO_TEXT: Final = "it is not UTF-8"
NO_JSON: Final = "it is no JSON"
NO_OBJECT: Final = "it is no JSON object"
TOO_DEEP: Final = "its objects are too deep within each other"

NOT_WRITTEN: Final = " is not written: "
WAY_OUT: Final = "; give --on-unmaskable skip to leave such records out, or choose with --where"
"""Parts of the sentence about a record that ends the job; the reason is between them."""


def _no_constant(name: str) -> float:
    raise ValueError(name)  # NaN and Infinity are no JSON


_DECODER: Final = json.JSONDecoder(
    parse_float=number_of, parse_int=number_of, parse_constant=_no_constant
)
_INT_DECODER: Final = json.JSONDecoder(parse_float=number_of, parse_constant=_no_constant)
"""The same for a text without `-0`, the only whole number that Python writes in another way."""
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
_ASCII_ENCODER: Final = json.JSONEncoder(separators=(",", ":"))

Header = tuple[str, bytes | None]


class Masked(NamedTuple):
    """The result for one record."""

    key: bytes | None
    value: bytes | None
    headers: list[Header] | None
    place_bits: int
    """Bits of the rules and the selected fields whose places were there."""
    reason: str | None
    """Why the record cannot be written, None if it can."""


class PlaceNode:
    """The rules or the selected fields below one name."""

    __slots__ = ("bit", "children", "is_each", "method", "path")

    def __init__(self, path: str = "") -> None:
        self.path = path
        self.children: dict[str, PlaceNode] = {}
        self.method: Method | None = None
        """The rule for this place itself; None: only for places within it."""
        self.is_each = False
        """True if the items of an array are meant, and not the array."""
        self.bit = 0


class Masker:
    """All rules and selected fields of a job; the tasks get it by pickle."""

    def __init__(
        self, rules: Sequence[MaskRule], fields: Sequence[FieldPath], secret: bytes
    ) -> None:
        """Args:
        rules: of `--mask`.
        fields: of `--select`, of the value; empty: all are kept.
        secret: of the hashes.
        """
        self.trees: dict[str, PlaceNode] = {}
        """Column → its rules."""
        for index, rule in enumerate(rules):
            node = self._place(rule.path)
            node.method, node.is_each = Method(rule, secret), rule.path.is_each
            node.bit = 1 << index
        self.selection: PlaceNode | None = PlaceNode() if fields else None
        """The selected fields of the value, None if all are kept."""
        for index, path in enumerate(fields, len(rules)):
            _leaf(self.selection or PlaceNode(), path.names).bit = 1 << index

    @property
    def columns(self) -> list[str]:
        """Return the columns of a record that are read and replaced."""
        more = [VALUE] if self.selection is not None and VALUE not in self.trees else []
        return sorted([*self.trees, *more])

    def apply(self, key: bytes | None, value: bytes | None, headers: list[Header] | None) -> Masked:
        """Return the record as it may be written; a column of no rule is returned as it is."""
        place_bits = 0
        try:
            key, bits = self._bytes(KEY, key)
            place_bits |= bits
            value, bits = self._bytes(VALUE, value)
            place_bits |= bits
            headers, bits = self._headers(headers)
        except PipelineError as error:
            return Masked(None, None, None, place_bits, str(error))
        return Masked(key, value, headers, place_bits | bits, None)

    def _place(self, path: FieldPath) -> PlaceNode:
        return _leaf(self.trees.setdefault(path.target, PlaceNode()), path.names)

    def _bytes(self, target: str, value: bytes | None) -> tuple[bytes | None, int]:
        """Return a whole key or value, and the bits that were found. Raises PipelineError."""
        tree, selection = self.trees.get(target), self.selection if target == VALUE else None
        if value is None or (tree is None and selection is None):
            return value, 0
        try:
            if tree is not None and tree.method is not None:
                return tree.method.of_bytes(value), tree.bit
            return changed_json(value, tree, selection)
        except PipelineError as error:
            raise PipelineError(f"its {target} cannot be masked: {error}") from None
        except RecursionError:
            raise PipelineError(f"its {target} cannot be masked: {TOO_DEEP}") from None

    def _headers(self, headers: list[Header] | None) -> tuple[list[Header] | None, int]:
        tree = self.trees.get(HEADERS)
        if tree is None or not headers:
            return headers, 0
        result, bits = [], 0
        for name, value in headers:
            node = tree if tree.method is not None else tree.children.get(name)
            if node is None or node.method is None:
                result.append((name, value))
                continue
            bits |= node.bit
            try:
                if node.method.of(None) is not DROPPED:
                    result.append((name, node.method.of_bytes(value)))
            except PipelineError as error:
                raise PipelineError(f"header {name!r} cannot be masked: {error}") from None
        return result, bits


def _leaf(node: PlaceNode, names: Sequence[str]) -> PlaceNode:
    for name in names:
        path = f"{node.path}.{name}" if node.path else name
        node = node.children.setdefault(name, PlaceNode(path))
    return node


def changed_json(
    value: bytes, tree: PlaceNode | None, selection: PlaceNode | None
) -> tuple[bytes, int]:
    """Return a JSON value with its fields masked and selected, and the bits of those found.

    Raises PipelineError, and RecursionError for a value too deep.
    """
    plain, bits = _fields_of(value), 0
    if tree is not None:
        plain, bits = _masked(tree, plain)
    if selection is not None:
        plain, more = _selected(selection, plain)
        bits |= more
    return _written(plain), bits


def _fields_of(value: bytes) -> Any:
    """Return the fields of a JSON value. Raises PipelineError."""
    try:
        text = value.decode()
        plain = (_DECODER if "-0" in text else _INT_DECODER).decode(text)
    except UnicodeDecodeError:
        raise PipelineError(NO_TEXT) from None
    except ValueError:
        raise PipelineError(NO_JSON) from None
    if not _is_objects(plain):
        raise PipelineError(NO_OBJECT)
    return plain


def _is_objects(plain: Any) -> bool:
    """Return whether a value has fields alone: an object, or an array of such."""
    if isinstance(plain, list):
        return all(map(_is_objects, plain))
    return isinstance(plain, dict)


def _masked(node: PlaceNode, plain: Any) -> tuple[Any, int]:
    """Return a value with the rules below `node` applied, and the bits of those found.

    Raises PipelineError for a value that has no fields, where a rule names one.
    """
    bits = 0
    if isinstance(plain, list):
        for index, item in enumerate(plain):
            plain[index], more = _masked(node, item)
            bits |= more
    elif isinstance(plain, dict):
        for name, child in node.children.items():
            if name not in plain:
                continue
            if child.method is None:
                plain[name], more = _masked(child, plain[name])
                bits |= more
                continue
            bits |= child.bit
            if (result := _result(child, child.method, plain[name])) is DROPPED:
                del plain[name]
            else:
                plain[name] = result
    elif plain is not None:
        raise PipelineError(f"{node.path!r} is neither an object nor an array of objects")
    return plain, bits


def _result(node: PlaceNode, method: Method, value: Any) -> Any:
    if node.is_each and isinstance(value, list):
        return [result for item in value if (result := method.of(item)) is not DROPPED]
    return method.of(value)


def _selected(node: PlaceNode, plain: Any) -> tuple[Any, int]:
    """Return the selected fields of a value, and the bits of those found."""
    if not node.children:
        return plain, node.bit
    bits = 0
    if isinstance(plain, list):
        items = []
        for item in plain:
            if isinstance(item, (dict, list)):
                part, more = _selected(node, item)
                items.append(part)
                bits |= more
        return items, bits
    fields = {}
    for name, value in plain.items():
        child = node.children.get(name)
        if child is None or (child.children and not isinstance(value, (dict, list))):
            continue
        fields[name], more = _selected(child, value)
        bits |= more
    return fields, bits


def _written(plain: Any) -> bytes:
    """Return compact JSON in UTF-8; halves of surrogate pairs stay escaped."""
    try:
        content = _ENCODER.encode(plain).encode()
    except UnicodeEncodeError:
        content = _ASCII_ENCODER.encode(plain).encode()
    return unmarked(content)
