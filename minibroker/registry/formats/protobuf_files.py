"""A .proto text, or a file descriptor in base64 ─► descriptors of it and of all that it imports.

`minibroker.protoc` makes descriptors of texts, and knows Google's files. Two of Confluent's are
known here.

Source: Protocol Buffers' language guides; Confluent's registry takes both forms.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from typing import TYPE_CHECKING, Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from minibroker.protoc import ProtocError, check_path, compile_files
from minibroker.registry.formats.limits import DEPTH_MAX
from minibroker.registry.formats.parsed_schema import InvalidSchemaError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OWN_NAME: Final = "__schema__.proto"
"""Path of the schema's own file."""
PARTS_MAX: Final = 20_000
"""Brackets, semicolons and commas of a text; a message of a person has some hundreds."""
_SECONDS: Final = 10.0
_BASE64: Final = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")
_TOKENS: Final = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)"
    r"|\"(?:[^\"\\\n]|\\.)*+\"?|'(?:[^'\\\n]|\\.)*+'?|[{}\[\]<>;,]",
    re.DOTALL,
)
_OPENING, _CLOSING = frozenset("{[<"), frozenset("}]>")
_META_TARGETS: Final = ("File", "Message", "Field", "Enum", "EnumValue")
_CONFLUENT: Final = {
    "confluent/meta.proto": (
        'syntax = "proto3"; package confluent; import "google/protobuf/descriptor.proto";'
        " message Meta { string doc = 1; map<string, string> params = 2;"
        " repeated string tags = 3; }"
        + "".join(
            f" extend google.protobuf.{target}Options {{ Meta {name}_meta = 1088; }}"
            for target, name in zip(
                _META_TARGETS, ("file", "message", "field", "enum", "enum_value"), strict=True
            )
        )
    ),
    "confluent/type/decimal.proto": (
        'syntax = "proto3"; package confluent.type;'
        " message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }"
    ),
}
"""Files that Confluent's registry knows without a reference: path → text."""


def read_files(text: str, references: Sequence[tuple[str, str]]) -> list[FileDescriptorProto]:
    """Return the files of a schema: those that it imports in order, its own last.

    Raises InvalidSchemaError: protoc does not take it.
    """
    if not text.strip():
        raise InvalidSchemaError("it is empty")
    imported = {**_CONFLUENT, **dict(references)}
    try:
        for name in imported:
            check_path(name, OWN_NAME)
    except ProtocError as error:
        raise InvalidSchemaError(str(error)) from None
    descriptors = {
        name: _from_base64(name, content)
        for name, content in {**imported, OWN_NAME: text}.items()
        if _BASE64.fullmatch(content)
    }
    texts = {name: content for name, content in imported.items() if name not in descriptors}
    if OWN_NAME not in descriptors:
        if descriptors:
            raise InvalidSchemaError("a schema as text cannot import a file descriptor in base64")
        return _compiled(text, texts)
    own = descriptors.pop(OWN_NAME)
    imports = "".join(f'import "{name}";\n' for name in own.dependency if name not in descriptors)
    files = _compiled(f'syntax = "proto3";\n{imports}', texts)[:-1] if imports else []
    return _linked([*files, *descriptors.values(), own])


def pool_of(files: Sequence[FileDescriptorProto]) -> DescriptorPool:
    """Return the types of files. Raises InvalidSchemaError: they do not fit together."""
    pool = DescriptorPool()
    for file in files:
        try:
            pool.AddSerializedFile(file.SerializeToString())
        except TypeError as error:
            raise InvalidSchemaError(f"the file {file.name} is wrong ({error!s:.500})") from None
    return pool


def _linked(files: list[FileDescriptorProto]) -> list[FileDescriptorProto]:
    """Return the files behind those that they import. Raises InvalidSchemaError."""
    by_name = {file.name: file for file in files}
    ordered: dict[str, FileDescriptorProto] = {}
    pending = [(files[-1], False)]
    while pending:
        file, is_ready = pending.pop()
        if file.name in ordered:
            continue
        if is_ready:
            ordered[file.name] = file
            continue
        pending.append((file, True))
        for name in file.dependency:
            if name not in by_name:
                raise InvalidSchemaError(f"{name} is imported and is none of the references")
            if name not in ordered:
                pending.append((by_name[name], False))
        if len(pending) > len(files) ** 2 + 10:
            raise InvalidSchemaError("files import each other")
    result = list(ordered.values())
    pool_of(result)
    return result


def _compiled(text: str, imported: Mapping[str, str]) -> list[FileDescriptorProto]:
    """Return what protoc makes of a text and of the files that it imports."""
    for content in (text, *imported.values()):
        _check_shape(content)
    try:
        files = compile_files(OWN_NAME, text, imported, _SECONDS)
    except ProtocError as error:
        raise InvalidSchemaError(str(error)) from None
    return list(FileDescriptorSet.FromString(files).file)


def _from_base64(name: str, content: str) -> FileDescriptorProto:
    try:
        file = FileDescriptorProto.FromString(b64decode("".join(content.split()), validate=True))
    except (binascii.Error, DecodeError):
        raise InvalidSchemaError(
            "it is neither a .proto file nor a file descriptor in base64"
        ) from None
    file.name = name
    file.ClearField("source_code_info")
    return file


def _check_shape(text: str) -> None:
    """Check how deep a text goes and how many parts it has. Raises InvalidSchemaError."""
    depth = parts = 0
    for token in _TOKENS.finditer(text):
        character = token.group()
        if character in _OPENING:
            depth += 1
            if depth > DEPTH_MAX:
                raise InvalidSchemaError(f"nested deeper than {DEPTH_MAX} brackets")
        elif character in _CLOSING:
            depth -= 1
        parts += len(character) == 1
        if parts > PARTS_MAX:
            raise InvalidSchemaError(f"more than {PARTS_MAX} parts; no more are allowed")
