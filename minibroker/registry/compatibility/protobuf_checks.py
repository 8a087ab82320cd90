"""Compatibility of Protobuf schemas: rules over descriptors, as a table.

Fields are the same by number: names, order, comments, options and constants of enums count for
nothing. A message that moves within its parent is the same message.

Source: Protocol Buffers' guides, "Updating A Message Type"; docs of Confluent's Schema Registry,
"Protobuf compatibility rules".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from google.protobuf.descriptor_pb2 import FieldDescriptorProto

from minibroker.registry.compatibility.incompatibility import REASONS_MAX, Incompatibility
from minibroker.registry.formats.limits import WorkBudget

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from google.protobuf.descriptor_pb2 import DescriptorProto

    from minibroker.registry.formats.protobuf import ProtobufContent

_NUMBER, _SIGNED, _TEXT = "number", "signed number", "string or bytes"
SCALAR_KINDS: Final = {
    "TYPE_INT32": _NUMBER,
    "TYPE_INT64": _NUMBER,
    "TYPE_UINT32": _NUMBER,
    "TYPE_UINT64": _NUMBER,
    "TYPE_BOOL": _NUMBER,
    "TYPE_ENUM": _NUMBER,
    "TYPE_SINT32": _SIGNED,
    "TYPE_SINT64": _SIGNED,
    "TYPE_STRING": _TEXT,
    "TYPE_BYTES": _TEXT,
    "TYPE_FIXED32": "fixed32",
    "TYPE_SFIXED32": "fixed32",
    "TYPE_FIXED64": "fixed64",
    "TYPE_SFIXED64": "fixed64",
    "TYPE_FLOAT": "float",
    "TYPE_DOUBLE": "double",
}
"""Type → kind: data of a kind is read as any type of the kind."""
_KINDS: Final = {
    number: SCALAR_KINDS.get(name, "message") for name, number in FieldDescriptorProto.Type.items()
}
_REQUIRED, _REPEATED = 2, 3

Reasons = dict[Incompatibility, None]
"""Reasons in order, each once."""


class MessageType(NamedTuple):
    """A message of a schema, with what surrounds it."""

    message: DescriptorProto
    full_name: str
    local_name: str
    """Without the package."""
    is_own: bool
    """False: it is imported."""
    has_labels: bool
    """Each field has a label, as in proto2; False: a field without one is `optional`."""

    def label(self, field: FieldDescriptorProto) -> int:
        """Return the label that a text gives a field, 0 for none."""
        is_plain = not (self.has_labels or field.proto3_optional or field.label == _REPEATED)
        return 0 if is_plain else int(field.label)


def incompatibilities(reader: ProtobufContent, writer: ProtobufContent) -> list[Incompatibility]:
    """Return why data of the writer cannot be read. Raises InvalidSchemaError, RecursionError."""
    return [*FileWalk(reader, writer, WorkBudget()).reasons()]


class FileWalk:
    """The reasons of one comparison. Each pair of messages is looked at once."""

    def __init__(
        self, reader: ProtobufContent, writer: ProtobufContent, budget: WorkBudget
    ) -> None:
        self._reader, self._writer = reader, writer
        self._reader_types = {item.full_name: item for item in _messages(reader)}
        self._writer_types = {item.full_name: item for item in _messages(writer)}
        self._budget = budget
        self._pairs: set[tuple[str, str]] = set()
        self._reasons: Reasons = {}

    def reasons(self) -> Reasons:
        """Return the reasons, in the order of the writer's messages."""
        new, old = self._reader.file, self._writer.file
        if new.package != old.package:
            self._add(
                "PACKAGE_CHANGED",
                "#/",
                f"the reader's package is {new.package} and the writer's {old.package}",
            )
        prefix = f".{new.package}" if new.package else ""
        for item in self._writer_types.values():
            if not item.is_own or item.message.options.map_entry:
                continue
            other = self._reader_types.get(f"{prefix}.{item.local_name}")
            place = "#/" + item.local_name.replace(".", "/")
            if other is None or not other.is_own:
                if not self._is_inside_missing(item, prefix):
                    self._add("MESSAGE_REMOVED", place, f"the reader lacks {item.local_name}")
            else:
                self._compare_messages(other, item, place)
        return self._reasons

    def _is_inside_missing(self, item: MessageType, prefix: str) -> bool:
        """Return whether the message around one is missing too, which says it all."""
        outer = item.local_name.rpartition(".")[0]
        return bool(outer) and f"{prefix}.{outer}" not in self._reader_types

    def _compare_messages(self, reader: MessageType, writer: MessageType, path: str) -> None:
        pair = (reader.full_name, writer.full_name)
        if pair in self._pairs:
            return
        self._pairs.add(pair)
        new = {field.number: field for field in reader.message.field}
        old = {field.number: field for field in writer.message.field}
        self._compare_oneofs(reader.message, writer.message, path)
        for number in sorted({*new, *old}):
            self._budget.step()
            place = f"{path}/{number}"
            if number not in new:
                self._compare_removed(old[number], reader.message, writer.message, path)
            elif number not in old:
                if new[number].label == _REQUIRED:
                    text = f"the reader requires the field {new[number].name}"
                    self._add("REQUIRED_FIELD_ADDED", place, text)
            else:
                labels = reader.label(new[number]), writer.label(old[number])
                self._compare_fields(new[number], old[number], labels, place)

    def _compare_removed(
        self,
        field: FieldDescriptorProto,
        reader: DescriptorProto,
        writer: DescriptorProto,
        path: str,
    ) -> None:
        oneof = _oneof_of(field, writer)
        if oneof is not None:
            numbers = {other.number for other in writer.field if _oneof_of(other, writer) == oneof}
            is_gone = oneof not in {part.name for part in reader.oneof_decl}
            if is_gone and not numbers & {other.number for other in reader.field}:
                return
            text = f"the reader lacks the field {field.name} of the oneof {oneof}"
            self._add("ONEOF_FIELD_REMOVED", f"{path}/{oneof}/{field.number}", text)
        elif field.label == _REQUIRED:
            text = f"the reader lacks the required field {field.name}"
            self._add("REQUIRED_FIELD_REMOVED", f"{path}/{field.number}", text)

    def _compare_oneofs(self, reader: DescriptorProto, writer: DescriptorProto, path: str) -> None:
        """Refuse fields that could be set together, and now exclude each other."""
        old = {field.number: field for field in writer.field}
        groups: dict[str, set[str]] = {}
        loose: dict[str, int] = {}
        for field in reader.field:
            oneof = _oneof_of(field, reader)
            if oneof is None or field.number not in old:
                continue
            group = _oneof_of(old[field.number], writer)
            groups.setdefault(oneof, set()).add(f"in {group}" if group else str(field.number))
            loose[oneof] = loose.get(oneof, 0) + (group is None)
        for oneof, origins in groups.items():
            if len(origins) > 1:
                kind = "FIELD_MOVED_TO_EXISTING_ONEOF"
                if loose[oneof] > 1:
                    kind = "MULTIPLE_FIELDS_MOVED_TO_ONEOF"
                text = f"fields that could be set together exclude each other in {oneof}"
                self._add(kind, f"{path}/{oneof}", text)

    def _compare_fields(
        self,
        new: FieldDescriptorProto,
        old: FieldDescriptorProto,
        labels: tuple[int, int],
        path: str,
    ) -> None:
        kinds = _KINDS[new.type], _KINDS[old.type]
        new_type, old_type = (
            self._reader_types.get(new.type_name),
            self._writer_types.get(old.type_name),
        )
        shapes = [
            _shape(kind, item) for kind, item in zip(kinds, (new_type, old_type), strict=True)
        ]
        if shapes[0] != shapes[1]:
            text = f"the reader has a {shapes[0]} and the writer a {shapes[1]}"
            self._add("FIELD_KIND_CHANGED", path, text)
        elif shapes[0] == "scalar":
            self._compare_scalars(new, old, labels, path)
        elif new_type is None or old_type is None:
            return
        elif shapes[0] == "map":
            for mine, other in zip(new_type.message.field, old_type.message.field, strict=True):
                self._compare_fields(mine, other, (0, 0), path)
        elif new_type.local_name != old_type.local_name:
            text = f"the reader has a {new_type.local_name} and the writer a {old_type.local_name}"
            self._add("FIELD_NAMED_TYPE_CHANGED", path, text)
        elif not (new_type.is_own and old_type.is_own):
            count = len(self._reasons)
            self._compare_messages(new_type, old_type, path)
            if len(self._reasons) > count:
                text = f"the reader's {new_type.local_name} does not read the writer's"
                self._add("FIELD_NAMED_TYPE_CHANGED", path, text)

    def _compare_scalars(
        self,
        new: FieldDescriptorProto,
        old: FieldDescriptorProto,
        labels: tuple[int, int],
        path: str,
    ) -> None:
        new_kind, old_kind = _KINDS[new.type], _KINDS[old.type]
        if new_kind != old_kind:
            text = f"the reader has a {new_kind} and the writer a {old_kind}"
            self._add("FIELD_SCALAR_KIND_CHANGED", path, text)
        elif (
            new_kind != _TEXT and labels[0] != labels[1] and (all(labels) or labels[1] == _REPEATED)
        ):
            text = "the label of a number differs, and repeated numbers are packed"
            self._add("FIELD_NUMERIC_LABEL_CHANGED", path, text)

    def _add(self, kind: str, path: str, description: str) -> None:
        if len(self._reasons) < REASONS_MAX:
            self._reasons[Incompatibility(kind, path, description)] = None


def _messages(schema: ProtobufContent) -> Iterator[MessageType]:
    for file in (schema.file, *schema.imports):
        prefix = f".{file.package}" if file.package else ""
        has_labels = file.syntax in {"", "proto2"}
        for message, local in _inside(file.message_type, ""):
            full_name = f"{prefix}.{local}"
            yield MessageType(message, full_name, local, file is schema.file, has_labels)


def _inside(
    messages: Iterable[DescriptorProto], outer: str
) -> Iterator[tuple[DescriptorProto, str]]:
    for message in messages:
        local = f"{outer}{message.name}"
        yield message, local
        yield from _inside(message.nested_type, f"{local}.")


def _oneof_of(field: FieldDescriptorProto, message: DescriptorProto) -> str | None:
    if not field.HasField("oneof_index") or field.proto3_optional:
        return None
    return str(message.oneof_decl[field.oneof_index].name)


def _shape(kind: str, item: MessageType | None) -> str:
    if kind != "message":
        return "scalar"
    return "map" if item is not None and item.message.options.map_entry else "message"
