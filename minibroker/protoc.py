"""protoc: .proto texts ─► the descriptors of a file and of all that it imports.

It comes with grpcio-tools and runs in a process of its own: it would hold Python's lock, and a
hostile text could end it. Google's files are known; those of `google/type` where
googleapis-common-protos is installed.

The registry and the pipeline ask it. Protobuf's library is not imported here.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

PATH_MAX: Final = 255
"""Characters of the path of an import."""
_LOG_LINE: Final = re.compile(r"WARNING: All log|[IWE]\d{4} ")


class ProtocError(ValueError):
    """A text that protoc does not take, or not in time."""


def compile_files(name: str, text: str, imported: Mapping[str, str], timeout_s: float) -> bytes:
    """Return a FileDescriptorSet, encoded: what a text imports in order, and its own file last.

    Args:
        name: path of the text's own file.
        imported: path of an import → its text.

    Raises ProtocError.
    """
    for path in imported:
        check_path(path, name)
    with tempfile.TemporaryDirectory(prefix="minibroker-proto-") as directory:
        root = Path(directory, "files")
        for path, content in {**imported, name: text}.items():
            file = root / PurePosixPath(path)
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(content, encoding="utf-8")
            except OSError as error:
                raise ProtocError(f"{path!r:.100} cannot be an import: {error.strerror}") from None
        result = Path(directory, "result")
        command = [
            *(sys.executable, "-m", "grpc_tools.protoc", f"-I{root}", *_google()),
            *("--include_imports", f"--descriptor_set_out={result}", name),
        ]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=timeout_s, check=False
            )
        except subprocess.TimeoutExpired:
            raise ProtocError(f"protoc takes longer than {timeout_s:g} s") from None
        if done.returncode:
            raise ProtocError(f"it is no .proto file: {_errors(done.stderr, root, name):.500}")
        return result.read_bytes()


def check_path(path: str, own_name: str) -> None:
    """Check the path of an import. Raises ProtocError: it leads elsewhere, or to the file that
    imports it.
    """
    pure = PurePosixPath(path)
    if (
        pure.is_absolute()
        or not path
        or len(path) > PATH_MAX
        or ".." in pure.parts
        or path == own_name
        or not path.isprintable()
    ):
        raise ProtocError(f"{path!r:.100} is no path of an import")


def _errors(output: str, root: Path, own_name: str) -> str:
    """Return the errors of protoc, without its own log and our paths."""
    lines = [line for line in output.splitlines() if not _LOG_LINE.match(line)]
    return "; ".join(lines).replace(f"{root}/", "").replace(own_name, "line")


def _google() -> list[str]:
    """Return options for the directories of Google's .proto files, and for no other directory."""
    return [
        *(f"-I{Path(place, '_proto')}" for place in _places("grpc_tools")),
        *(f"-Igoogle/type={place}" for place in _places("google.type")),
    ]


def _places(package: str) -> list[str]:
    """Return the directories of a package, none for one that is not installed."""
    spec = find_spec(package)
    return [] if spec is None else list(spec.submodule_search_locations or ())
