"""Words and columns of CONTRIBUTING.md that a machine can check; a reader judges the rest."""

from __future__ import annotations

import ast
import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.meta.sources import (
    PRODUCT,
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

FOLDERS_OF_PAGES = ("minibroker", "docs", "protocol_specs", "benchmarks", "examples", "tests")
MARKDOWN_COLUMNS = 120
TWO_SENTENCES = re.compile(r"[.:?!] [A-Z`]")

CHECKED = sources("minibroker", "benchmarks", "examples", "tests")
"""The files whose docstrings and names are checked."""

OPENINGS = re.compile(
    r"(What|Who|Whom|Whose|Which|Whether|Where|Whoever|Whatever|Of)\b|As (`|an? )"
)
"""Openings of a docstring that hide the verb and the thing."""

OPENINGS_OF_FUNCTIONS = re.compile(
    r"(The|A|An|It|Its|Is|Are|Does|Did|Has|May|Could|Will|How|Why|Every|Everything|Everybody"
    r"|Nobody|Somebody|Something|Those|These|This|There|One|Nothing)\b"
)
"""Openings of a function's docstring that do not say what it returns or does."""

NAMES_OF_TESTS = re.compile(r"test_((what|who|whom|whose|whoever|whatever)_|[A-Za-z]\d+_)")
"""A name that begins with a question word, or with the id of a row of some table."""

ROW_IDS = re.compile(
    r"\b(row|rows) [A-Z]\d{1,2}\b|\([A-Z]\d{1,2}(, [A-Z]\d{1,2})*\)|^[A-Z]\d{1,2}: "
)

SHARED_CLASS_NAMES = {
    "Broker": "the node in app.py, and the public class of minibroker.testing",
    "Cluster": "the metadata of one broker, and the public class of minibroker.testing",
    "Member": "of the classic and of the consumer protocol, which no module mixes",
    "Step": "of a classic and of a consumer group, on the base in groups/steps.py",
}
"""Names of more than one class → the reason."""

LOGGERS = ("getLogger", "logging.getLogger")

ROOMS = ("minibroker", "benchmarks", "protocol_specs/codegen")
"""Folders whose names and sentences are checked word by word."""

_POINTERS = (
    "asked before begun found gained given gone held here kept known left listed made matched named"
    " noted noting opened parsed placed planned reached said seen sent settled shown taken there"
    " thing told wanted was what where who"
)
POINTERS = frozenset(_POINTERS.split())
"""Words that say how a value was come by, or where it is, and not what it is."""

VERBS = frozenset({"read", "written"})
"""Words that may name a function, and no value."""

NAMES_OF_OPTIONS = {
    ("minibroker/pipeline/operations/rows.py", "where"),
    ("minibroker/pipeline/options/row_options.py", "where"),
}
"""(file, name): a field that is called as its option is."""

ROOM_FILES = sources(*ROOMS)

NAMED_FILES = [*ROOM_FILES, *sources("examples", "tests", ".ci", "docs/site")]
"""The files whose values and functions are named by nouns and verbs."""

SUBJECTS = re.compile(r"(?:^|[.:;!?] )(?:What|Who|Whom|Whoever|Whatever) (?![^.]*\?)")
"""A question word as the subject of a sentence."""

ARGUMENT = re.compile(r" {4}(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: \([^)]*\))?:")
"""The entry of one or more arguments in a docstring."""

CHAINED_ERRORS = re.compile(r"Raises (\w+Error )?as `")
"""A pointer to another docstring in place of the errors."""


def functions(directory: str) -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield every function and method of a directory, with its file."""
    for path in sources(directory):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield path, node


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of every docstring, those below constants and fields included."""
    for node in ast.walk(tree_of(path)):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            if (
                isinstance(statement, ast.Expr)
                and isinstance(statement.value, ast.Constant)
                and isinstance(statement.value.value, str)
            ):
                yield statement.lineno, statement.value.value


def bound_names(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and name of every variable, parameter and loop variable."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg


def all_names(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and name of every variable, parameter, field, function and class; the module's."""
    yield 1, path.stem
    yield from bound_names(path)
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name


def test_a_name_is_a_noun_or_a_verb() -> None:
    places = [
        f"{name_of(path)}:{line} {name}"
        for path in NAMED_FILES
        for line, name in all_names(path)
        if name.strip("_").lower() in POINTERS and (name_of(path), name) not in NAMES_OF_OPTIONS
    ]
    assert_none(places, "name the thing that it is:")


def test_a_value_is_not_named_by_a_verb() -> None:
    places = [
        f"{name_of(path)}:{node.lineno} {node.id}"
        for path in NAMED_FILES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in VERBS
    ]
    assert_none(places, "name the thing that it is:")


def test_no_sentence_has_a_question_word_as_its_subject() -> None:
    places = [
        f"{name_of(path)}:{line} {match.group().strip()}"
        for path in ROOM_FILES
        for line, text in docstrings(path)
        for match in SUBJECTS.finditer(" ".join(text.split()))
    ]
    assert_none(places, "name the subject:")


def test_a_docstring_names_its_errors() -> None:
    places = [
        f"{name_of(path)}:{line}"
        for path in ROOM_FILES
        for line, text in docstrings(path)
        if CHAINED_ERRORS.search(" ".join(text.split()))
    ]
    assert_none(places, "name the errors:")


def explained_arguments(docstring: str) -> list[str]:
    """Return the names that stand in the docstring's section `Args:`."""
    _, _, section = docstring.partition("\nArgs:\n")
    entries = section.partition("\n\n")[0].splitlines()
    return [
        name.strip(" *")
        for entry in entries
        if (names := ARGUMENT.match(entry))
        for name in names.group(1).split(",")
    ]


def test_a_docstring_explains_arguments_that_exist() -> None:
    places = [
        f"{name_of(path)}:{node.lineno} {name}"
        for room in ROOMS
        for path, node in functions(room)
        for name in explained_arguments(ast.get_docstring(node) or "")
        if name
        not in {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
    ]
    assert_none(places, "the function has no argument of this name:")


def test_a_docstring_opens_with_a_verb_or_a_noun() -> None:
    places = [
        f"{name_of(path)}:{line} {text.strip().splitlines()[0]}"
        for path in CHECKED
        for line, text in docstrings(path)
        if OPENINGS.match(text.strip())
    ]
    assert_none(places, "say what is returned, raised or changed, in a sentence with a verb:")


def test_a_docstring_of_a_function_opens_with_a_verb() -> None:
    places = [
        f"{name_of(path)}:{node.lineno} {text.splitlines()[0]}"
        for room in ROOMS
        for path, node in functions(room)
        if node.name != "__init__"
        and (text := ast.get_docstring(node) or "")
        and OPENINGS_OF_FUNCTIONS.match(text)
    ]
    assert_none(places, "say what the function returns, raises or changes:")


def test_no_variable_is_called_one() -> None:
    places = [
        f"{name_of(path)}:{line}"
        for path in CHECKED
        for line, name in bound_names(path)
        if name == "one"
    ]
    assert_none(places, "name the thing:")


def test_a_variable_of_a_loop_is_a_word() -> None:
    """`_` stands for a value that nobody uses."""
    places = [
        f"{name_of(path)}:{node.target.lineno} {node.target.id}"
        for path in PRODUCT
        for node in nodes_of(path, ast.For, ast.comprehension)
        if isinstance(node.target, ast.Name) and len(node.target.id) == 1 and node.target.id != "_"
    ]
    assert_none(places, "name the thing, as in `for segment in segments`:")


def test_names_of_tests_are_statements() -> None:
    places = [
        f"{name_of(path)}:{node.lineno} {node.name}"
        for path, node in functions("tests")
        if NAMES_OF_TESTS.match(node.name)
    ]
    assert_none(places, "begin with the thing that the test is about:")


def test_no_docstring_cites_a_row_of_another_table() -> None:
    places = [
        f"{name_of(path)}:{line} {text.strip().splitlines()[0]}"
        for path in CHECKED
        for line, text in docstrings(path)
        if ROW_IDS.search(text)
    ]
    assert_none(places, "cite a KIP, a class of Kafka or docs/behaviours.md:")


def test_a_logger_is_called_logger() -> None:
    places = [
        f"{name_of(path)}:{node.lineno}"
        for path in sources("minibroker")
        for node in tree_of(path).body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and dotted(node.value.func) in LOGGERS
        and [dotted(target) for target in node.targets] != ["logger"]
    ]
    assert_none(places, "`logger = logging.getLogger(__name__)`:")


def test_a_class_name_stands_for_one_class() -> None:
    names = Counter(
        node.name
        for path in sources("minibroker")
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef)
    )
    assert {name for name, count in names.items() if count > 1} == set(SHARED_CLASS_NAMES)


def pages_of(folder: str) -> list[Path]:
    """Return the Markdown pages of a folder; the ones at the top belong to docs."""
    return [*(ROOT / folder).rglob("*.md"), *(ROOT.glob("*.md") if folder == "docs" else ())]


@pytest.mark.parametrize("folder", FOLDERS_OF_PAGES)
def test_a_row_of_a_table_is_one_line(folder: str) -> None:
    """A row that wraps ends the table: what follows is shown as text."""
    places = [
        f"{name_of(page)}:{number}"
        for page in pages_of(folder)
        for number, line in enumerate(page.read_text().splitlines(), 1)
        if line.startswith("| ") and not line.rstrip().endswith("|")
    ]
    assert_none(places, "end the row with a bar, on the same line:")


@pytest.mark.parametrize("folder", FOLDERS_OF_PAGES)
def test_prose_fits_its_columns(folder: str) -> None:
    """A Markdown page wraps at 120 columns, or has a sentence on each line.

    A row of a table cannot wrap. ruff keeps Python at 100 columns.
    """
    places = [
        f"{name_of(page)}:{number} {len(line)} columns"
        for page in pages_of(folder)
        for number, line in enumerate(page.read_text().splitlines(), 1)
        if len(line) > MARKDOWN_COLUMNS and not line.startswith("|") and TWO_SENTENCES.search(line)
    ]
    assert_none(places, f"wrap at {MARKDOWN_COLUMNS} columns, or after each sentence:")
