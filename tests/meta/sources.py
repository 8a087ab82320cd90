"""The repository's hand-written Python files, parsed, for the rules of this folder."""

from __future__ import annotations

import ast
import functools
import gc
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

Node = TypeVar("Node", bound=ast.AST)

ROOT = Path(__file__).resolve().parents[2]

PACKAGE = ROOT / "minibroker"

# Written by the generator: judged by its freshness test, not by these rules.
GENERATED = (
    "minibroker/kafka/protocol/messages/",
    "minibroker/kafka/protocol/stored/",
    "minibroker/kafka/protocol/api_keys.py",
    "minibroker/kafka/error_codes.py",
    "minibroker/rig/names.py",
)


def name_of(path: Path) -> str:
    """Return the path below the repository's root, with forward slashes."""
    return path.relative_to(ROOT).as_posix()


def is_generated(path: Path) -> bool:
    """Return whether the generator wrote this file."""
    return name_of(path).startswith(GENERATED) and path.name != "__init__.py"


def sources(*folders: str) -> list[Path]:
    """Return every hand-written Python file below `folders`, sorted."""
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return sorted(path for path in paths if not is_generated(path))


PRODUCT = sources("minibroker")

EVERYTHING = sources("minibroker", "tests", "benchmarks", "examples")


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """Return the parsed file.

    No garbage is collected meanwhile: a collected object of an earlier test may log a traceback,
    and a traceback parses its line. CPython before 3.11.8 then raises SystemError (gh-106905).
    """
    gc.disable()
    try:
        return ast.parse(path.read_text(), filename=name_of(path))
    finally:
        gc.enable()


@functools.cache
def _nodes_by_type(path: Path) -> dict[type[ast.AST], list[Any]]:
    nodes: dict[type[ast.AST], list[Any]] = {}
    for node in ast.walk(tree_of(path)):
        nodes.setdefault(type(node), []).append(node)
    return nodes


def nodes_of(path: Path, *types: type[Node]) -> Iterator[Node]:
    """Yield the nodes of these exact types; a file is walked once for all rules."""
    by_type = _nodes_by_type(path)
    for node_type in types:
        yield from by_type.get(node_type, ())


def dotted(node: ast.expr) -> str:
    """Return `a.b.c` of an attribute chain, or an empty string."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = dotted(node.value)
        return f"{head}.{node.attr}" if head else ""
    return ""


def full_imports(path: Path) -> Iterator[tuple[str, int]]:
    """Yield every module that the file imports or imports from, in full, and the line.

    `from a import b` gives `a` and `a.b`: only the file system knows whether `b` is a module.
    """
    for node in nodes_of(path, ast.Import):
        for alias in node.names:
            yield alias.name, node.lineno
    for origin in nodes_of(path, ast.ImportFrom):
        if origin.module and not origin.level:
            yield origin.module, origin.lineno
            for alias in origin.names:
                yield f"{origin.module}.{alias.name}", origin.lineno


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the top-level name of every module that the file imports, and the line."""
    for module, line in full_imports(path):
        yield module.split(".")[0], line


def assert_none(places: list[str], rule: str) -> None:
    """Fail with the whole list: a newcomer mends everything in one go."""
    assert not places, rule + "\n  " + "\n  ".join(places)
