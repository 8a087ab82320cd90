"""House rules that no linter knows: sizes, forbidden words, one door to each outside library.

Read with `ast`, so that a comment or a docstring never trips a rule about code.
"""

from __future__ import annotations

import ast
import re
import warnings
from pathlib import Path

import pytest

from tests.meta.sources import (
    EVERYTHING,
    PRODUCT,
    assert_none,
    dotted,
    full_imports,
    imports,
    name_of,
    nodes_of,
    sources,
    tree_of,
)

FUNCTION_LINES_MAX = 70
MODULE_LINES_USUAL = 500
HANDLER_LINES_USUAL = 250

PRINTS = (
    "protocol_specs/codegen/",
    "tests/clients/proxy_suites.py",
    "tests/support/installed.py",
    "tests/support/smoke.py",
    "tests/support/wheels.py",
    "tests/golden/record_",
    "benchmarks/",
)
"""Programs for people: printing is their job."""

CLOCK_READS = {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "datetime.today"}

# Inside minibroker: module → the only files that may import it.
DOORS = {
    "kazoo": (
        "minibroker/broker/cluster/zookeeper_session.py",
        "minibroker/tools/import_07/zookeeper.py",
    ),
    "sqlite3": ("minibroker/broker/cluster/embedded.py", "minibroker/tools/import_07/table.py"),
}

_FOR_TYPES = "TYPE_CHECKING"

SLEEPS = {"time.sleep", "asyncio.sleep", "sleep"}
# A Kafka that somebody else runs tells nobody that a topic is there; this is no part of a broker.
MAY_SLEEP = {"minibroker/testing/real_kafka.py"}

STORAGE_DOORS = {
    "os": ("minibroker/broker/storage/files.py",),
    "mmap": ("minibroker/broker/storage/files.py", "minibroker/broker/storage/kept_maps.py"),
}


def test_a_class_has_one_function_of_each_name() -> None:
    """The second one would replace the first: no type checker looks at tests."""
    places = [
        f"{name_of(path)}:{second.lineno} {second.name}"
        for path in EVERYTHING
        for class_ in nodes_of(path, ast.ClassDef)
        for second in _repeated_functions(class_)
    ]
    assert_none(places, "give it a name of its own:")


def _repeated_functions(class_: ast.ClassDef) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return the functions of a class whose name came before; not those with a decorator (setters,
    overloads).
    """
    names: set[str] = set()
    repeated: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
    for node in class_.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.decorator_list:
            if node.name in names:
                repeated.append(node)
            names.add(node.name)
    return repeated


def test_a_name_is_imported_once() -> None:
    """One import at the top of a module serves its types, too."""
    places = [
        f"{name_of(path)}: {', '.join(sorted(names))}"
        for path in EVERYTHING
        if (names := _imported_names(path, for_types=False) & _imported_names(path, for_types=True))
    ]
    assert_none(places, "imported a second time, for types:")


def _imported_names(path: Path, *, for_types: bool) -> set[str]:
    """Return the names that imports at the top of a module give it, or those for its types."""
    body = tree_of(path).body
    if for_types:
        blocks = [node for node in body if isinstance(node, ast.If)]
        body = [node for block in blocks if dotted(block.test) == _FOR_TYPES for node in block.body]
    return {
        alias.asname or alias.name
        for node in body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }


def test_a_function_fits_a_screen() -> None:
    places = [
        f"{name_of(path)}:{node.lineno} {node.name}: {node.end_lineno - node.lineno + 1} lines"
        for path in EVERYTHING
        for node in nodes_of(path, ast.FunctionDef, ast.AsyncFunctionDef)
        if node.end_lineno is not None and node.end_lineno - node.lineno + 1 > FUNCTION_LINES_MAX
    ]
    assert_none(places, f"longer than {FUNCTION_LINES_MAX} lines:")


@pytest.mark.filterwarnings("default")
def test_long_modules_are_named() -> None:
    """Warn of long modules: each may have a second subject, or may be right as it is.

    A line count is a hint and never a reason to split a module.
    """
    for path in EVERYTHING:
        lines = len(path.read_text().splitlines())
        in_handlers = name_of(path).startswith("minibroker/broker/handlers/")
        usual_max = HANDLER_LINES_USUAL if in_handlers else MODULE_LINES_USUAL
        if lines > usual_max:
            warnings.warn(
                f"{name_of(path)} has {lines} lines; is it about one thing?", stacklevel=1
            )


def test_a_logger_stands_before_the_first_function() -> None:
    """A file that was put together of two has it in the middle."""
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    late: list[str] = []
    for path in sources("minibroker", "benchmarks"):
        body = tree_of(path).body
        first = next(
            (at for at, node in enumerate(body) if isinstance(node, definitions)), len(body)
        )
        late += [
            f"{name_of(path)}:{node.lineno}"
            for node in body[first:]
            if isinstance(node, ast.Assign) and dotted(node.targets[0]) == "logger"
        ]
    assert_none(late, "behind a function or a class:")


def test_nothing_prints_but_programs() -> None:
    places = [
        f"{name_of(path)}:{node.lineno}"
        for path in EVERYTHING
        if not name_of(path).startswith(PRINTS)
        for node in nodes_of(path, ast.Call)
        if dotted(node.func) == "print"
    ]
    assert_none(places, "log or return instead of printing:")


def test_no_bare_except_and_no_swallowed_exception() -> None:
    """`except:` catches the stop of the process; `except X: pass` hides what X says.

    `contextlib.suppress(X)` says the same as the second, but as a decision that can be read.
    """
    places = []
    for path in EVERYTHING:
        for node in nodes_of(path, ast.ExceptHandler):
            if node.type is None:
                places.append(f"{name_of(path)}:{node.lineno} bare except")
            elif len(node.body) == 1 and isinstance(node.body[0], ast.Pass):
                places.append(f"{name_of(path)}:{node.lineno} except …: pass")
    assert_none(places, "handle it, or say contextlib.suppress:")


def test_only_the_clock_reads_the_wall_clock() -> None:
    places = [
        f"{name_of(path)}:{node.lineno} {dotted(node)}"
        for path in PRODUCT
        if name_of(path) != "minibroker/clock.py"
        for node in nodes_of(path, ast.Attribute)
        if dotted(node) in CLOCK_READS or dotted(node).endswith(("datetime.now", "datetime.utcnow"))
    ]
    assert_none(places, "take a Clock instead:")


def test_nothing_sleeps() -> None:
    """A sleeping thread stops the broker; a test that sleeps is slow, or wrong elsewhere."""
    product = [path for path in PRODUCT if name_of(path) not in MAY_SLEEP]
    forbidden = {path: {"time.sleep"} for path in product} | dict.fromkeys(sources("tests"), SLEEPS)
    places = [
        f"{name_of(path)}:{node.lineno} {dotted(node.func)}"
        for path, sleeps in forbidden.items()
        for node in nodes_of(path, ast.Call)
        if dotted(node.func) in sleeps
        and not (node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0)
    ]
    assert_none(places, "wait for an event, with a deadline:")


def test_no_test_module_imports_another() -> None:
    """Helpers of two test modules are in a module without `test_` before its name.

    So a test can be renamed, split or removed without a look at the others.
    """
    places = [
        f"{name_of(path)}:{line} {module}"
        for path in sources("tests", "benchmarks")
        for module, line in full_imports(path)
        if module.startswith("tests.") and ".test_" in module
    ]
    assert_none(places, "move what both need into a support module:")


@pytest.mark.parametrize("module", sorted(DOORS))
def test_one_door_to_each_outside_library(module: str) -> None:
    places = [
        f"{name_of(path)}:{line}"
        for path in PRODUCT
        if name_of(path) not in DOORS[module]
        for imported, line in imports(path)
        if imported == module
    ]
    assert_none(places, f"only {', '.join(DOORS[module])} may import {module}:")


@pytest.mark.parametrize("module", sorted(STORAGE_DOORS))
def test_storage_reaches_the_disk_through_one_door(module: str) -> None:
    places = [
        f"{name_of(path)}:{line}"
        for path in sources("minibroker/broker/storage")
        if name_of(path) not in STORAGE_DOORS[module]
        for imported, line in imports(path)
        if imported == module
    ]
    assert_none(places, f"within storage only {', '.join(STORAGE_DOORS[module])} imports {module}:")


def test_no_leftovers() -> None:
    """No note to oneself, no path of a machine, no `maybe_` name."""
    notes = re.compile(
        r"\b(" + "|".join(("FIX" + "ME", "TO" + "DO", "XX" + "X", "HA" + "CK")) + r")\b"
    )
    paths = re.compile(r"[\"'`](/work/|/tmp/|/home/|/root/)")
    places = []
    for path in EVERYTHING:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if notes.search(line):
                places.append(f"{name_of(path)}:{number} {line.strip()}")
            if paths.search(line) and path != Path(__file__):
                places.append(f"{name_of(path)}:{number} {line.strip()}")
        places += [
            f"{name_of(path)}:{node.lineno} {node.name}: name the condition"
            for node in nodes_of(path, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
            if node.name.lstrip("_").startswith("maybe_")
        ]
    assert_none(places, "leftovers:")


def test_every_module_has_a_docstring() -> None:
    places = [name_of(path) for path in EVERYTHING if not _docstring_or_empty_init(path)]
    assert_none(places, "no module docstring:")


def _docstring_or_empty_init(path: Path) -> bool:
    tree = tree_of(path)
    return bool(ast.get_docstring(tree)) or (path.name == "__init__.py" and not tree.body)


def test_public_functions_and_classes_are_documented() -> None:
    """A function for other modules has a docstring; names of tests need none."""
    places = [
        f"{name_of(path)}:{node.lineno} {node.name}"
        for path in PRODUCT
        for node in tree_of(path).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    ]
    assert_none(places, "no docstring:")


def test_a_handler_opens_with_its_key_and_versions() -> None:
    """The first line of a handler's docstring has name, key and versions."""
    opening = re.compile(r"^\w+: key \d+, versions? \d+(-\d+)?\.")
    places = []
    for path in sources("minibroker/broker/handlers"):
        names = {node.name for node in tree_of(path).body if hasattr(node, "name")}
        first_line = (ast.get_docstring(tree_of(path)) or "").split("\n")[0]
        if path.stem == "refusals":  # a table of many APIs
            continue
        if "handle" in names and not opening.match(first_line):
            places.append(f"{name_of(path)}: {first_line!r}")
    assert_none(places, "should read like 'Heartbeat: key 12, versions 0-4.':")


def test_every_module_is_used() -> None:
    """A module that no other one names is dead (entries of the program and lazily loaded ones
    aside).
    """
    entries = {
        "minibroker/__main__.py",
        "minibroker/cli/reference.py",  # make generate
        "protocol_specs/codegen/__main__.py",
        "minibroker/container/launch.py",  # image/rootfs starts both
        "minibroker/container/kafka_configs.py",
        "minibroker/container/zookeeper_port.py",
        "minibroker/testing/plugin.py",
        "minibroker/pipeline/session.py",  # users import it
    }
    text = "\n".join(path.read_text() for path in PRODUCT)
    quoted = set(re.findall(r"[\"'](?=(\w+)[\"'])", text))
    names = set(re.findall(r"\b(\w+)\.(?=(\w+))", text))
    for package, imported in re.findall(r"\b(\w+) import (\([^)]*\)|.*)", text):
        names |= {(package, name) for name in re.findall(r"\w+", imported)}
    places = [
        name_of(path)
        for path in PRODUCT
        if path.name != "__init__.py" and name_of(path) not in entries
        if (path.parent.name, path.stem) not in names and path.stem not in quoted
    ]
    assert_none(places, "nobody imports:")
