"""A file descriptor ─► .proto text: the canonical and the normalized text of a schema.

Both have the layout of Confluent's registry: reserved numbers, options, fields, oneofs, groups,
extensions, then messages and enums. Comments are gone. Normalized text has fields, constants,
imports and options in order, and full names of types.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.message_factory import GetMessageClass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message import Message

_LINE: Final = 2
"""Blanks of one step to the right."""
_LAST_FIELD: Final = 536_870_911
_LAST_ENUM: Final = 2**31 - 1
_ESCAPES: Final = {
    "\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t",
}  # fmt: skip
_ESCAPED: Final = re.compile(r'[\\"\x00-\x1f\x7f]')
_SCALARS: Final = {
    number: name.removeprefix("TYPE_").lower() for name, number in FieldDescriptorProto.Type.items()
}
_LABELS: Final = {1: "optional", 2: "required", 3: "repeated"}
_REPEATED: Final = 3
_GROUP, _MESSAGE, _ENUM = 10, 11, 14


class ProtoWriter:
    """The text of one file."""

    def __init__(
        self, file: FileDescriptorProto, pool: DescriptorPool, *, normalize: bool = False
    ) -> None:
        """Args:
        pool: of the file and of its imports, for options.
        normalize: leave out differences without a meaning.
        """
        self._file = file
        self._pool = pool
        self._normalize = normalize
        self._inner_names = {
            name for message in file.message_type for name in _names_inside(message)
        }

    def text(self) -> str:
        """Return the text of the file."""
        file = self._file
        syntax = file.syntax or "proto2"
        head = [
            f'edition = "{_edition(file)}";'
            if file.HasField("edition")
            else f'syntax = "{syntax}";'
        ]
        if self._normalize and syntax == "proto2":
            head = []
        if file.package:
            head.append(f"package {file.package};")
        public = {file.dependency[index] for index in file.public_dependency}
        imports = sorted(file.dependency) if self._normalize else file.dependency
        blocks = [
            head,
            [
                *(f'import "{name}";' for name in imports if name not in public),
                *(f'import public "{name}";' for name in imports if name in public),
            ],
            self._option_lines(file.options),
            [
                *_flat(self._message(message) for message in file.message_type),
                *_flat(self._enum(enum) for enum in file.enum_type),
            ],
            self._extend_lines(file.extension, {}),
            [*_flat(self._service(service) for service in file.service)],
        ]
        return "\n".join("".join(f"{line}\n" for line in block) for block in blocks if block)

    # ---- messages

    def _message(self, message: DescriptorProto, head: str = "message ") -> list[str]:
        nested = {f".{inner.name}": inner for inner in message.nested_type}
        maps = {name: inner for name, inner in nested.items() if inner.options.map_entry}
        own_types = self._groups_of(message) | {inner.name for inner in maps.values()}
        plain = [field for field in message.field if not _is_in_oneof(field)]
        blocks = [
            _reserved(message.reserved_range, message.reserved_name, _LAST_FIELD + 1),
            self._option_lines(message.options),
            [*_flat(self._field(field, nested) for field in self._in_order(plain))],
            self._oneof_lines(message, nested),
            self._extension_lines(message),
            self._extend_lines(message.extension, nested),
            [
                *_flat(
                    self._message(inner)
                    for inner in message.nested_type
                    if inner.name not in own_types
                ),
                *_flat(self._enum(enum) for enum in message.enum_type),
            ],
        ]
        return _braced(f"{head}{message.name}", blocks)

    def _groups_of(self, message: DescriptorProto) -> set[str]:
        fields = [*message.field, *message.extension]
        return {field.type_name.rpartition(".")[2] for field in fields if field.type == _GROUP}

    def _in_order(self, fields: Iterable[FieldDescriptorProto]) -> list[FieldDescriptorProto]:
        return sorted(fields, key=lambda field: field.number) if self._normalize else [*fields]

    def _oneof_lines(
        self, message: DescriptorProto, nested: dict[str, DescriptorProto]
    ) -> list[str]:
        oneofs = []
        for index, oneof in enumerate(message.oneof_decl):
            members = self._in_order(
                field
                for field in message.field
                if _is_in_oneof(field) and field.oneof_index == index
            )
            if members:
                blocks = [
                    self._option_lines(oneof.options),
                    [*_flat(self._field(field, nested, is_bare=True) for field in members)],
                ]
                oneofs.append((members[0].number, _braced(f"oneof {oneof.name}", blocks)))
        if self._normalize:
            oneofs.sort(key=lambda item: item[0])
        return [*_flat(lines for _, lines in oneofs)]

    def _extension_lines(self, message: DescriptorProto) -> list[str]:
        return [
            f"extensions {_range(part.start, part.end - 1, _LAST_FIELD)};"
            for part in message.extension_range
        ]

    def _extend_lines(
        self, fields: Sequence[FieldDescriptorProto], nested: dict[str, DescriptorProto]
    ) -> list[str]:
        targets: dict[str, list[FieldDescriptorProto]] = {}
        for field in fields:
            targets.setdefault(field.extendee, []).append(field)
        return [
            *_flat(
                _braced(
                    f"extend {self._type_name(target)}",
                    [[*_flat(self._field(field, nested) for field in members)]],
                )
                for target, members in targets.items()
            )
        ]

    # ---- fields

    def _field(
        self,
        field: FieldDescriptorProto,
        nested: dict[str, DescriptorProto],
        *,
        is_bare: bool = False,
    ) -> list[str]:
        simple = "." + field.type_name.rpartition(".")[2]
        entry = nested.get(simple)
        label = "" if is_bare else self._label(field)
        options = self._field_options(field)
        if field.type == _GROUP and entry is not None:
            head = f"{label}group {entry.name} = {field.number}{options}"
            return self._message(entry, "").__class__([f"{head} {{", *self._message(entry, "")[1:]])
        if field.type == _MESSAGE and entry is not None and entry.options.map_entry:
            key, value = entry.field
            kind, label = f"map<{self._kind(key)}, {self._kind(value)}>", ""
        else:
            kind = self._kind(field)
        return [f"{label}{kind} {field.name} = {field.number}{options};"]

    def _label(self, field: FieldDescriptorProto) -> str:
        is_explicit = (
            (self._file.syntax or "proto2") == "proto2"
            or field.label == _REPEATED
            or field.proto3_optional
        )
        return f"{_LABELS[field.label]} " if is_explicit else ""

    def _kind(self, field: FieldDescriptorProto) -> str:
        if field.type in {_MESSAGE, _ENUM, _GROUP}:
            return self._type_name(field.type_name)
        return str(_SCALARS[field.type])

    def _type_name(self, name: str) -> str:
        """Return the name of a type: without the package where nothing else has that name."""
        if self._normalize or not name.startswith("."):
            return name
        full = name.removeprefix(".")
        package = f"{self._file.package}." if self._file.package else ""
        local = full.removeprefix(package)
        first = local.partition(".")[0]
        is_own = full.startswith(package)
        if is_own:
            inside = first in self._inner_names and "." not in local
            return f".{full}" if inside else local
        return f".{full}" if first in {*package.split("."), *self._inner_names} else full

    def _field_options(self, field: FieldDescriptorProto) -> str:
        parts = []
        if field.HasField("default_value"):
            text = field.default_value
            if _SCALARS[field.type] in {"string", "bytes"}:
                text = f'"{text if _SCALARS[field.type] == "bytes" else _escaped(text)}"'
            parts.append(f"default = {text}")
        if field.HasField("json_name") and field.json_name != _json_name(field.name):
            parts.append(f'json_name = "{_escaped(field.json_name)}"')
        parts += self._options(field.options)
        if not parts:
            return ""
        if len(parts) == 1:
            return f" [{parts[0]}]"
        inner = ",\n".join(" " * _LINE + part for part in parts)
        return f" [\n{inner}\n]"

    # ---- enums, services

    def _enum(self, enum: EnumDescriptorProto) -> list[str]:
        values = sorted(enum.value, key=lambda item: item.number) if self._normalize else enum.value
        constants = []
        for value in values:
            parts = self._options(value.options)
            options = f" [{', '.join(parts)}]" if parts else ""
            constants.append(f"{value.name} = {value.number}{options};")
        reserved = _reserved(enum.reserved_range, enum.reserved_name, _LAST_ENUM)
        return _braced(
            f"enum {enum.name}", [[*reserved, *self._option_lines(enum.options), *constants]]
        )

    def _service(self, service: ServiceDescriptorProto) -> list[str]:
        calls = []
        for method in service.method:
            request = "stream " * method.client_streaming + self._type_name(method.input_type)
            answer = "stream " * method.server_streaming + self._type_name(method.output_type)
            head = f"rpc {method.name} ({request}) returns ({answer})"
            options = self._option_lines(method.options)
            calls.append([f"{head};"] if not options else [f"{head} {{", *_indented(options), "};"])
        return _braced(
            f"service {service.name}", [self._option_lines(service.options), [*_flat(calls)]]
        )

    # ---- options

    def _option_lines(self, options: Message) -> list[str]:
        return [f"option {part};" for part in self._options(options)]

    def _options(self, options: Message) -> list[str]:
        """Return each option as `name = value`; those that the schema itself defines too."""
        raw = options.SerializeToString(deterministic=True)
        if not raw:
            return []
        try:
            descriptor = self._pool.FindMessageTypeByName(options.DESCRIPTOR.full_name)
        except KeyError:
            message = options
        else:
            message = GetMessageClass(descriptor).FromString(raw)
        parts = []
        for field, value in message.ListFields():
            if field.name in {"map_entry", "uninterpreted_option"} and not field.is_extension:
                continue
            name = f"({field.full_name})" if field.is_extension else field.name
            values = value if field.is_repeated else [value]
            parts += [f"{name} = {_option_value(field, item)}" for item in values]
        return sorted(parts) if self._normalize else parts


def _option_value(field: Any, value: Any) -> str:
    if field.message_type is not None:
        inner = [
            f"{_member_name(part)}: {_option_value(part, item)}"
            for part, content in value.ListFields()
            for item in _items(part, content)
        ]
        return "{ " + ", ".join(inner) + " }"
    if field.enum_type is not None:
        constant = field.enum_type.values_by_number.get(value)
        return constant.name if constant is not None else str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{_escaped(value)}"'
    if isinstance(value, bytes):
        return '"' + "".join(f"\\{byte:03o}" for byte in value) + '"'
    return str(value)


def _items(field: Any, content: Any) -> Iterable[Any]:
    if not field.is_repeated:
        return [content]
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        entry = GetMessageClass(field.message_type)
        return [entry(key=key, value=content[key]) for key in sorted(content)]
    return list(content)


def _member_name(field: Any) -> str:
    return f"[{field.full_name}]" if field.is_extension else str(field.name)


def _braced(head: str, blocks: Iterable[Sequence[str]]) -> list[str]:
    """Return blocks of lines in braces; a blank line stands between two."""
    inner: list[str] = []
    for block in blocks:
        if block:
            inner += ["", *block] if inner else block
    return [f"{head} {{}}"] if not inner else [f"{head} {{", *_indented(inner), "}"]


def _indented(lines: Iterable[str]) -> list[str]:
    return [
        "\n".join(" " * _LINE + part if part else part for part in line.split("\n"))
        for line in lines
    ]


def _reserved(ranges: Any, names: Iterable[str], end: int) -> list[str]:
    is_exclusive = end == _LAST_FIELD + 1
    last = end - 1 if is_exclusive else end
    return [
        *(
            f"reserved {_range(part.start, part.end - 1 if is_exclusive else part.end, last)};"
            for part in ranges
        ),
        *(f'reserved "{_escaped(name)}";' for name in names),
    ]


def _range(start: int, end: int, last: int) -> str:
    if start == end:
        return str(start)
    return f"{start} to {'max' if end == last else end}"


def _is_in_oneof(field: FieldDescriptorProto) -> bool:
    return field.HasField("oneof_index") and not field.proto3_optional


def _names_inside(message: DescriptorProto) -> Iterable[str]:
    for inner in message.nested_type:
        yield inner.name
        yield from _names_inside(inner)
    yield from (enum.name for enum in message.enum_type)


def _json_name(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in others)


def _escaped(text: str) -> str:
    return _ESCAPED.sub(
        lambda match: _ESCAPES.get(match.group(), f"\\{ord(match.group()):03o}"), text
    )


def _edition(file: FileDescriptorProto) -> str:
    field = file.DESCRIPTOR.fields_by_name["edition"]
    return str(field.enum_type.values_by_number[file.edition].name).removeprefix("EDITION_")


def _flat(groups: Iterable[Sequence[str]]) -> Iterable[str]:
    return (line for group in groups for line in group)
