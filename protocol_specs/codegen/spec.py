"""Spec files as checked objects: JSON text in, `MessageSpec` objects with version ranges out.

`protocol_specs/README.md` explains the grammar. Every range here is already cut to the range of its
parent, so the emitters need no intersections. A file that breaks the grammar raises `SpecError`,
which names the file and the field.
"""

import json
from keyword import iskeyword
from pathlib import Path
from typing import Any, NamedTuple

NUMBER_CODES = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "error_code": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
}
"""Types of fixed size that are one number, with their letter in the struct module."""

TYPE_DEFAULTS: dict[str, Any] = {"bool": False, "float64": 0.0, "string": "", "records": None}
OTHER_TYPES = {"string", "bytes", "records", "uuid"}
_FIELD_KEYS = {
    "name", "type", "versions", "nullable", "tag", "default", "ignorable", "doc", "fields",
}  # fmt: skip
_RESERVED = {"read", "write", "self", "cls", "reader", "writer"}


class SpecError(Exception):
    """A spec file that breaks the grammar."""


class Range(NamedTuple):
    """Versions from `first` to `last`, both included."""

    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last


class FieldSpec:
    """A field of a struct; `struct` is set if its type, or the type of its items, is a struct."""

    def __init__(self, data: dict[str, Any], parent: Range, place: str) -> None:
        self.name: str = data["name"]
        place = f"{place}.{self.name}"
        unknown = data.keys() - _FIELD_KEYS
        if unknown:
            raise SpecError(f"{place}: unknown keys {sorted(unknown)}")
        if not self.name.isidentifier() or iskeyword(self.name) or self.name in _RESERVED:
            raise SpecError(f"{place}: not usable as a Python name")
        self.type: str = data["type"]
        self.is_array = self.type.startswith("[]")
        self.item_type = self.type.removeprefix("[]")
        self.is_struct = self.item_type[0].isupper()
        if not self.is_struct and self.item_type not in NUMBER_CODES.keys() | OTHER_TYPES:
            raise SpecError(f"{place}: no type is called {self.item_type}")
        self.versions = parse_range(data.get("versions"), parent, place) or parent
        self.nullable = parse_range(data.get("nullable"), self.versions, place)
        self.tag: int | None = data.get("tag")
        self.ignorable: bool = data.get("ignorable", False)
        self.doc: str = data["doc"]
        self.default = data["default"] if "default" in data else self._type_default()
        tagged_struct = self.is_struct and self.tag is not None
        may_be_null = tagged_struct or self.nullable is not None or self.type == "records"
        if self.default is None and not may_be_null:
            raise SpecError(f"{place}: null is the default, but no version is nullable")
        self.struct: StructSpec | None = None

    def _type_default(self) -> Any:
        if self.is_array:
            return []
        if self.is_struct:  # a tagged struct that is not set means a struct of defaults
            return {} if (self.tag is None) == (self.nullable is None) else None
        return TYPE_DEFAULTS.get(self.type, 0)

    @property
    def is_number(self) -> bool:
        """Return whether the field is a number of fixed size in its place, which can be packed with
        others.
        """
        return self.type in NUMBER_CODES and self.tag is None

    @property
    def is_optional(self) -> bool:
        """Return whether the Python attribute can be None."""
        return self.nullable is not None or self.default is None


class StructSpec:
    """An ordered set of fields; `versions` is the range in which it occurs."""

    def __init__(self, name: str, versions: Range, doc: str = "") -> None:
        self.name = name
        self.versions = versions
        self.doc = doc
        self.fields: list[FieldSpec] = []

    @property
    def plain(self) -> list[FieldSpec]:
        """Return the fields in their order on the wire."""
        return [field for field in self.fields if field.tag is None]

    @property
    def tagged_fields(self) -> list[FieldSpec]:
        """Return the tagged fields in the order of their tags."""
        return sorted(
            (field for field in self.fields if field.tag is not None), key=lambda f: f.tag or 0
        )

    def shape(self) -> Any:
        """Return everything but class names and documentation; structs of equal shape are the same
        class.
        """
        return (
            self.versions,
            [
                (f.name, f.type, f.versions, f.nullable, f.tag, repr(f.default), f.ignorable)
                + ((f.struct.shape(),) if f.struct else ())
                for f in self.fields
            ],
        )


class MessageSpec:
    """A side of an API or of a stored record: a root struct and the structs that it uses."""

    def __init__(
        self, name: str, versions: Range, flexible_from: int | None, data: dict[str, Any]
    ) -> None:
        self.versions = versions
        self.flexible_from = flexible_from
        self.structs: list[StructSpec] = []
        """In an order in which a struct stands before its users; the root is last."""
        self._common: dict[str, StructSpec] = {}
        for common_name, common in data.get("structs", {}).items():
            common_range = parse_range(common["versions"], versions, common_name) or versions
            self._common[common_name] = StructSpec(common_name, common_range)
        for common_name, common in data.get("structs", {}).items():
            self._fill(self._common[common_name], common["fields"], name)
        self.structs = _users_last(self.structs)
        self.root = StructSpec(name, versions)
        self._fill(self.root, data["fields"], name)

    def _fill(self, struct: StructSpec, fields: list[dict[str, Any]], place: str) -> None:
        for data in fields:
            field = FieldSpec(data, struct.versions, f"{place}.{struct.name}")
            if field.is_struct and "fields" in data:
                field.struct = StructSpec(field.item_type, field.versions, field.doc)
                self._fill(field.struct, data["fields"], place)
            elif field.is_struct:
                if field.item_type not in self._common:
                    raise SpecError(f"{place}.{field.name}: no struct is called {field.item_type}")
                field.struct = self._common[field.item_type]
                field.struct.doc = field.struct.doc or field.doc
            struct.fields.append(field)
        if len({field.name for field in struct.fields}) != len(struct.fields):
            raise SpecError(f"{place}.{struct.name}: two fields share a name")
        self.structs.append(struct)

    def is_flexible(self, version: int) -> bool:
        """Return whether the version has compact lengths and tagged fields."""
        return self.flexible_from is not None and version >= self.flexible_from


class ApiSpec:
    """A file of `protocol_specs/apis`."""

    def __init__(self, path: Path) -> None:
        data = json.loads(path.read_text())
        self.path = path
        self.key: int = data["key"]
        self.name: str = data["name"]
        self.api: str = data["api"]
        self.doc: str = data["doc"]
        self.version_notes: dict[str, str] = data["version_notes"]
        self.versions = whole_range(data["versions"])
        self.flexible_from = flexible_start(data["flexible"])
        if path.name != f"{self.key:02d}_{self.name}.json":
            raise SpecError(f"{path.name} holds key {self.key}, {self.name}")
        self.request, self.response = (
            MessageSpec(f"{self.api}{side}", self.versions, self.flexible_from, data[side.lower()])
            for side in ("Request", "Response")
        )


class RecordSide(NamedTuple):
    """A class of a stored file, with its description."""

    message: MessageSpec
    doc: str
    type: int | None
    """Number of the record's type; None for key and value."""


class StoredRecord:
    """A file of `protocol_specs/stored`: key and value of a record of an internal topic or a file,
    or all records of a topic whose records have a type and no key.
    """

    def __init__(self, path: Path) -> None:
        data = json.loads(path.read_text())
        self.path = path
        self.name: str = data["name"]
        self.doc: str = data["doc"]
        self.version_notes: dict[str, str] = data["version_notes"]
        sides = [data[side] for side in ("key", "value") if side in data]
        self.sides = [_record_side(side) for side in sides + data.get("records", [])]
        if path.name != f"{self.name}.json":
            raise SpecError(f"{path.name} holds {self.name}")


def _record_side(data: dict[str, Any]) -> RecordSide:
    versions, flexible = whole_range(data["versions"]), flexible_start(data["flexible"])
    message = MessageSpec(data["class"], versions, flexible, data)
    doc = data.get("doc", "The record itself; its version is the int16 in front of it.")
    return RecordSide(message, doc, data.get("type"))


def whole_range(text: str) -> Range:
    """Return the range of a text such as `"0-13"`; both ends are needed."""
    first, last = text.split("-")
    return Range(int(first), int(last))


def flexible_start(text: str | None) -> int | None:
    """Return 9 for `"9+"`, None for null."""
    return None if text is None else int(text.removesuffix("+"))


def parse_range(text: str | None, within: Range, place: str) -> Range | None:
    """Return the range of `"3+"`, `"0-8"` or `"1"`, which has to be inside `within`; None
    for None.
    """
    if text is None:
        return None
    if text.endswith("+"):
        version_range = Range(int(text[:-1]), within.last)
    elif "-" in text:
        version_range = whole_range(text)
    else:
        version_range = Range(int(text), int(text))
    if not within.first <= version_range.first <= version_range.last <= within.last:
        raise SpecError(f"{place}: versions {text} do not lie within {within.first}-{within.last}")
    return version_range


def _users_last(structs: list[StructSpec]) -> list[StructSpec]:
    """Return the shared structs, each after those that it uses."""
    ordered: list[StructSpec] = []

    def place(struct: StructSpec) -> None:
        for field in struct.fields:
            if field.struct is not None:
                place(field.struct)
        if struct not in ordered:
            ordered.append(struct)

    for struct in structs:
        place(struct)
    return ordered
