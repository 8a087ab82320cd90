"""protoc in a process of its own: descriptors of texts, or a sentence."""

from __future__ import annotations

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from minibroker.protoc import ProtocError, compile_files

SECONDS = 60.0
NAME = "own.proto"
HEAD = 'syntax = "proto3";'


def test_imports_stand_before_the_file_that_imports_them() -> None:
    text = f'{HEAD} import "a/b.proto"; import "google/protobuf/any.proto";'
    files = compile_files(NAME, text, {"a/b.proto": HEAD, "unused.proto": HEAD}, SECONDS)
    names = [file.name for file in FileDescriptorSet.FromString(files).file]
    assert names == ["a/b.proto", "google/protobuf/any.proto", NAME]


@pytest.mark.parametrize(
    "path", ["", "/a.proto", "../a.proto", "a/../../b", NAME, "a\n", "x" * 256]
)
def test_path_of_an_import_that_leads_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(ProtocError, match="is no path of an import"):
        compile_files(NAME, HEAD, {path: HEAD}, SECONDS)


@pytest.mark.parametrize("paths", [("a", "a/b.proto"), ("a/b.proto", "a"), (".",)])
def test_paths_that_exclude_each_other_are_refused(paths: tuple[str, ...]) -> None:
    with pytest.raises(ProtocError, match="cannot be an import"):
        compile_files(NAME, HEAD, dict.fromkeys(paths, HEAD), SECONDS)


def test_error_of_protoc_has_its_line_and_no_path_of_this_machine() -> None:
    with pytest.raises(ProtocError, match=r"^it is no \.proto file: line:1:\d+:") as raised:
        compile_files(NAME, f"{HEAD} message", {}, SECONDS)
    assert "minibroker-proto-" not in str(raised.value)


def test_protoc_that_takes_too_long_is_ended() -> None:
    with pytest.raises(ProtocError, match="takes longer than 0 s"):
        compile_files(NAME, HEAD, {}, 0.0)
