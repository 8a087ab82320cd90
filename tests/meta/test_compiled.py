"""Rules of the modules that the compiled wheel compiles (`modules` in pyproject.toml).

mypyc reads these things in another way than Python does, without a word. So they stand in none of
these modules, and the compiled package answers as the pure one does.
"""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from typing import TYPE_CHECKING, Final, TypeAlias

from tests.meta.sources import (
    EVERYTHING,
    PACKAGE,
    ROOT,
    assert_none,
    dotted,
    name_of,
    nodes_of,
    sources,
    tree_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

ERRORS_WITH_A_CAUSE: Final = ("HalfChangedError", "StorageError", "SyncError")
TYPES_OF_INTERPRETED_CODE: Final = {
    *("CodeType", "CoroutineType", "FrameType", "FunctionType", "GeneratorType", "MethodType"),
}
SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@functools.cache
def compiled_paths() -> list[Path]:
    """Return the modules that are compiled, as pyproject.toml lists them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    hooks = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]
    (modules,) = [hook["modules"] for hook in hooks.values() if "modules" in hook]
    return [ROOT / module for module in modules]


def module_of(path: Path) -> str:
    """Return the dotted name of a module of the product."""
    return name_of(path).removesuffix(".py").replace("/", ".")


@functools.cache
def compiled_names() -> set[str]:
    """Return the dotted names of the modules that are compiled."""
    return {module_of(path) for path in compiled_paths()}


@functools.cache
def origins(path: Path) -> dict[str, str]:
    """Return name → what a `from … import` or `import … as` of this file binds it to."""
    bound = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in nodes_of(path, ast.ImportFrom)
        for alias in node.names
    }
    for node in nodes_of(path, ast.Import):
        bound |= {alias.asname: alias.name for alias in node.names if alias.asname}
    return bound


def having(paths: list[Path], pattern: str) -> Iterator[Path]:
    """Yield the files whose text has the pattern: only those have to be parsed."""
    search = re.compile(pattern).search
    return (path for path in paths if search(path.read_text(encoding="utf-8")))


def functions_of(path: Path) -> Iterator[Function]:
    """Yield all functions of a file."""
    yield from nodes_of(path, ast.FunctionDef, ast.AsyncFunctionDef)


def handlers_of(function: Function) -> Iterator[ast.ExceptHandler]:
    """Yield the `except` clauses of a function, without those of functions in it."""
    waiting: list[ast.AST] = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ExceptHandler):
            yield node
        if not isinstance(node, SCOPES):
            waiting += ast.iter_child_nodes(node)


def test_each_module_is_listed_once() -> None:
    paths = compiled_paths()
    assert_none([name_of(path) for path in paths if not path.is_file()], "no such module:")
    assert paths == sorted(set(paths))


def test_two_kinds_of_exceptions_in_a_function_have_two_names() -> None:
    """The variable would have the type of the first: another error would end in TypeError."""
    places = []
    for path in compiled_paths():
        for function in functions_of(path):
            types: dict[str, set[str]] = {}
            for handler in handlers_of(function):
                if handler.name is not None and handler.type is not None:
                    types.setdefault(handler.name, set()).add(ast.unparse(handler.type))
            places += [
                f"{name_of(path)}:{function.lineno} {function.name}: {name}"
                for name, kinds in types.items()
                if len(kinds) > 1
            ]
    assert_none(places, "one name for two kinds of exceptions:")


@functools.cache
def native_classes() -> set[str]:
    """Return the full names of the classes that become types of C: those whose bases are."""
    bases: dict[str, list[str]] = {}
    for path in compiled_paths():
        for class_ in tree_of(path).body:
            if isinstance(class_, ast.ClassDef):
                full = f"{module_of(path)}.{class_.name}"
                bases[full] = [base for base in full_bases(path, class_) if base]
    native = set(bases)
    while foreign := {name for name in native if not native.issuperset(bases[name])}:
        native -= foreign
    return native


@functools.cache
def compiled_classes() -> set[str]:
    """Return the full names of all classes of the compiled modules."""
    return {
        f"{module_of(path)}.{class_.name}"
        for path in compiled_paths()
        for class_ in nodes_of(path, ast.ClassDef)
    }


def full_bases(path: Path, class_: ast.ClassDef) -> list[str]:
    """Return the full names of a class's bases, but for `Generic[…]`."""
    nodes = [base.value if isinstance(base, ast.Subscript) else base for base in class_.bases]
    return [full_name(path, node) for node in nodes if dotted(node) != "Generic"]


def full_name(path: Path, node: ast.expr) -> str:
    """Return the full name of what `a.b` means in this file, "" for another expression."""
    head, _, rest = dotted(node).partition(".")
    full = origins(path).get(head) or (f"{module_of(path)}.{head}" if head else "")
    return f"{full}.{rest}" if rest else full


def test_classes_below_a_compiled_one_are_compiled() -> None:
    """An interpreted class cannot inherit from a type of C."""
    assert native_classes()
    names = "|".join({full.rpartition(".")[2] for full in native_classes()})
    places = [
        f"{name_of(path)}:{class_.lineno} {class_.name}({base})"
        for path in having(EVERYTHING, rf"class \w+\([^)]*\b(?:{names})\b")
        if module_of(path) not in compiled_names()
        for class_ in nodes_of(path, ast.ClassDef)
        for base in full_bases(path, class_)
        if base in native_classes()
    ]
    assert_none(places, "compile them together:")


def test_a_compiled_class_has_no_slots_to_read_and_no_weak_references() -> None:
    places = [
        f"{name_of(path)}:{node.lineno}"
        for path in compiled_paths()
        for node in nodes_of(path, ast.Attribute)
        if dotted(node) == "self.__slots__"
    ]
    places += [
        f"{name_of(path)}:{node.lineno}"
        for path in compiled_paths()
        for node in nodes_of(path, ast.Constant)
        if node.value == "__weakref__"
    ]
    assert_none(places, "not there once it is compiled:")


def test_the_fields_of_a_named_tuple_have_types_that_are_imported() -> None:
    """Compiled code evaluates them when the module is imported, and does not find `object`."""
    places = []
    for path in compiled_paths():
        late = {"object", *names_for_the_checker(path)}
        for class_ in nodes_of(path, ast.ClassDef):
            if "NamedTuple" not in map(dotted, class_.bases):
                continue
            fields = [node for node in class_.body if isinstance(node, ast.AnnAssign)]
            used = {
                name.id
                for field in fields
                for name in ast.walk(field.annotation)
                if isinstance(name, ast.Name)
            }
            places += [f"{name_of(path)}:{class_.lineno} {name}" for name in sorted(used & late)]
    assert_none(places, "import it outside of TYPE_CHECKING:")


def names_for_the_checker(path: Path) -> set[str]:
    """Return the names that only a type checker imports."""
    blocks = [
        node
        for node in tree_of(path).body
        if isinstance(node, ast.If) and dotted(node.test) == "TYPE_CHECKING"
    ]
    return {
        alias.asname or alias.name
        for block in blocks
        for node in block.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }


def test_nobody_asks_for_the_type_of_interpreted_code() -> None:
    """A compiled function, method, generator or coroutine is of another type, of C."""
    places = [
        f"{name_of(path)}:{node.lineno} {alias.name}"
        for path in sources("minibroker/broker", "minibroker/kafka", "minibroker/rig")
        for node in nodes_of(path, ast.ImportFrom)
        if node.module == "types"
        for alias in node.names
        if alias.name in TYPES_OF_INTERPRETED_CODE
    ]
    assert_none(places, "not the type that a compiled one has:")


def test_an_error_of_storage_gets_its_cause_from_its_maker() -> None:
    """`raise … from error` loses its cause, and `StorageError.is_lasting` looks at that one."""
    places = [
        f"{name_of(path)}:{node.lineno}"
        for path in compiled_paths()
        for node in nodes_of(path, ast.Raise)
        if node.cause is not None
        and isinstance(node.exc, ast.Call)
        and dotted(node.exc.func) in ERRORS_WITH_A_CAUSE
        and not any(keyword.arg == "cause" for keyword in node.exc.keywords)
    ]
    assert_none(places, "the cause is lost once it is compiled, give it as `cause`:")


def test_only_an_error_of_storage_sets_its_cause() -> None:
    places = [
        f"{name_of(path)}:{node.lineno}"
        for path in sources("minibroker/broker", "minibroker/kafka")
        for node in nodes_of(path, ast.Attribute)
        if node.attr == "__cause__" and isinstance(node.ctx, ast.Store)
    ]
    assert_none(
        [place for place in places if "kafka/errors.py" not in place], "give it as `cause`:"
    )


# A test that replaces a part of a compiled module: its callers are compiled, and do not look it up.


@functools.cache
def limits_of(module: str) -> set[str]:
    """Return the variables of a module of the product that are no `Final`: compiled code reads them
    from the module.
    """
    path = PACKAGE.parent / f"{module.replace('.', '/')}.py"
    return {
        node.target.id
        for node in tree_of(path).body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and "Final" not in ast.unparse(node.annotation)
    }


def is_looked_up(module: str, name: str) -> bool:
    """Return whether code of the compiled `module` looks `name` up in it at each use."""
    path = PACKAGE.parent / f"{module.replace('.', '/')}.py"
    origin = origins(path).get(name)
    if origin is None:
        return name in limits_of(module)
    home, _, bare = origin.rpartition(".")
    return home not in compiled_names() or bare in limits_of(home)


def replaced(path: Path, call: ast.Call) -> str:
    """Return what a `monkeypatch.setattr` replaces in a compiled module, "" where it is no such."""
    if not (dotted(call.func).endswith(".setattr") and len(call.args) >= 2):
        return ""
    target, *rest = call.args
    if isinstance(target, ast.Constant):
        owner, _, name = str(target.value).rpartition(".")
    else:
        owner = full_name(path, target)
        name = rest[0].value if isinstance(rest[0], ast.Constant) else "?"
    if owner in compiled_names():
        return "" if is_looked_up(owner, name) else f"{owner}.{name}"
    return f"{owner}.{name}" if owner in compiled_classes() else ""


def test_a_test_that_replaces_a_compiled_part_is_marked_pure() -> None:
    """Or it lowers a limit, which is no `Final`, or lets something below fail, such as `Files`."""
    places = []
    for path in having(sources("tests"), r"\.setattr\("):
        for function in tree_of(path).body:
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if any("mark.pure(" in ast.unparse(mark) for mark in function.decorator_list):
                continue
            parts = [
                replaced(path, node) for node in ast.walk(function) if isinstance(node, ast.Call)
            ]
            places += [f"{name_of(path)}:{function.lineno} {part}" for part in parts if part]
    assert_none(places, "calls of compiled code do not see it:")
