"""From words to a verb: lazily, with a sentence and an exit code for every end."""

from __future__ import annotations

import io
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import pytest

from minibroker.cli import program
from minibroker.cli.declaration import InOrder, Option, Verb, VerbGroup, options_of
from minibroker.cli.errors import CommandError, UsageError
from minibroker.cli.help_page import help_of
from minibroker.cli.kinds import COUNT, FILE, SWITCH, Kind, Many
from minibroker.kafka.errors import ConfigError
from tests.support.plans import plan_from

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Plan(NamedTuple):
    """Options of every form."""

    topic: Annotated[str, Option("TOPIC", Kind("TOPIC"), "topic to read", example="orders")]
    files: Annotated[
        tuple[str, ...], Option("FILE", Many("FILE", is_split=False), "files beside it")
    ] = ()
    count: Annotated[int | None, Option("--count", COUNT, "so many", short="-n")] = None
    follow: Annotated[bool, Option("--follow", SWITCH, "do not end", short="-f")] = False
    pairs: Annotated[
        tuple[tuple[str, str], ...],
        InOrder(
            (
                Option("--first", Kind("A", lambda word: ("first", word)), "an A"),
                Option("--second", Kind("B", lambda word: ("second", word)), "a B"),
            )
        ),
    ] = ()
    config: Annotated[str | None, Option("--config", FILE, "a file", "Settings")] = None


def verb_that(run: Callable[..., int], *, later_wins: bool = False) -> Verb:
    return Verb(
        name="read",
        does="read a topic",
        plan=Plan,
        run=run,
        examples=("read orders -n 10",),
        later_wins=later_wins,
    )


READ = verb_that(lambda plan, out, errors: 0)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("orders", Plan("orders")),
        ("orders a b -n 5 -f", Plan("orders", ("a", "b"), 5, follow=True)),
        ("-n5 orders", Plan("orders", count=5)),
        ("--count=5 orders -", Plan("orders", ("-",), 5)),
        ("-f -- --orders -n", Plan("--orders", ("-n",), follow=True)),
        (
            "t --second 1 --first 2 --second=3",
            Plan("t", pairs=(("second", "1"), ("first", "2"), ("second", "3"))),
        ),
    ],
)
def test_words_become_a_plan(words: str, expected: Plan) -> None:
    assert plan_from(READ, words.split()) == expected


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("", "TOPIC is missing: for instance orders"),
        ("t --cuont 1", "unknown argument '--cuont' (did you mean --count?)"),
        ("t -x", "unknown argument '-x'"),
        ("t -n", "-n needs a value"),
        ("t -n --follow", "-n needs a value"),
        ("t --follow=yes", "--follow takes no value"),
        ("t -n 1 --count 2", "--count is given 2 times"),
        ("t -n 0", "--count '0': expected a number from 1 up"),
    ],
)
def test_wrong_words_are_refused(words: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan_from(READ, words.split())
    assert str(caught.value) == sentence


def test_a_later_flag_may_win() -> None:
    verb = verb_that(lambda plan, out, errors: 0, later_wins=True)
    assert plan_from(verb, ["t", "-n", "1", "--count", "2"]).count == 2


def test_the_help_page_has_usage_titles_and_examples() -> None:
    assert help_of(READ) == (
        "minibroker read: read a topic\n\n"
        "  minibroker read TOPIC [FILE...] [OPTION]...\n\n"
        "Options:\n"
        "  TOPIC                    topic to read\n"
        "  FILE...                  files beside it\n"
        "  -n, --count N            so many\n"
        "  -f, --follow             do not end\n"
        "  --first A                an A\n"
        "  --second B               a B\n\n"
        "Settings:\n"
        "  --config FILE            a file\n\n"
        "Exit codes: 0; 1 for a failure, with one sentence that says why; 2 for wrong usage; 130 "
        "after\nCtrl-C.\n\n"
        "  minibroker read orders -n 10\n"
    )


def run_verb(monkeypatch: pytest.MonkeyPatch, run: Callable[..., int]) -> tuple[int, str, str]:
    monkeypatch.setattr(program, "member", lambda group, name: verb_that(run))
    out, errors = io.StringIO(), io.StringIO()
    code = program.run_words(["version", "t"], out, errors)
    return code, out.getvalue(), errors.getvalue()


class OwnError(CommandError):
    exit_code = 4


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (UsageError("no"), 2, "minibroker read: no; see minibroker read --help\n"),
        (CommandError("no"), 1, "minibroker read: no\n"),
        (OwnError("no"), 4, "minibroker read: no\n"),
        (ConfigError("no"), 1, "minibroker read: no\n"),
        (FileNotFoundError(2, "No such file", "x"), 1, "minibroker read: x: No such file\n"),
        (KeyboardInterrupt(), 130, "minibroker read: interrupted\n"),
    ],
)
def test_every_end_has_a_sentence_and_a_code(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, sentence: str
) -> None:
    def run(*_: Any) -> int:
        raise error

    assert run_verb(monkeypatch, run) == (code, "", sentence)


def test_a_run_returns_its_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_verb(monkeypatch, lambda plan, out, errors: out.write(plan.topic) + 2) == (
        3,
        "t",
        "",
    )


def test_a_mistyped_verb_names_the_near_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["check-lgo"]) == 2
    assert capsys.readouterr().err == (
        "minibroker: unknown verb 'check-lgo' (did you mean check-log?); see minibroker --help\n"
    )
    assert program.main(["help", "version"]) == 0
    assert capsys.readouterr().out.startswith(
        "minibroker version: show the version, and whether it is the compiled package\n"
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="not run: no /dev/full here")
def test_an_output_that_takes_no_more_is_a_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "minibroker", "--help"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (
        1,
        "minibroker: standard output: No space left on device\n",
    )


def modules_after(code: str) -> set[str]:
    """Return the modules that a fresh Python has loaded after the code."""
    script = (
        f"import sys; from minibroker.cli import main; {code}; print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stderr.splitlines()[-1].split())


def test_the_collector_of_garbage_rests_while_the_program_is_imported() -> None:
    code = (
        "import gc, sys; from minibroker.cli import main; rounds = []; "
        "gc.callbacks.append("
        "lambda *_: rounds.append(hasattr(sys.modules.get('minibroker.cli.program'), 'main'))); "
        "main(['version']); print(gc.isenabled(), False in rounds, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr.split() == ["True", "False"]


def test_a_start_loads_its_own_verb_alone() -> None:
    """argparse alone would cost 6 ms of a start that may take 120."""
    loaded = modules_after("main(['serve', '--set', 'num.partitions=many'])")
    own = {name for name in loaded if name.startswith(("minibroker.cli.", "minibroker.verbs."))}
    assert own == {
        *("minibroker.cli.declaration", "minibroker.cli.errors", "minibroker.cli.kinds"),
        *("minibroker.cli.parser", "minibroker.cli.program", "minibroker.cli.quantities"),
        *("minibroker.cli.verbs_table", "minibroker.verbs.serve", "minibroker.verbs.serve.plan"),
        *("minibroker.verbs.serve.settings", "minibroker.verbs.serve.verb"),
    }
    assert not loaded & {"argparse", "difflib", "asyncio", "socket"}
    assert not any(name.startswith(("minibroker.client", "minibroker.pipeline")) for name in loaded)


def test_help_imports_neither_the_broker_nor_the_client() -> None:
    """For all verbs in one process."""
    loaded = modules_after(
        "from minibroker.cli.verbs_table import PROGRAM; main(['--help']); "
        "[main([name, '--help']) for name in PROGRAM.modules if name != 'pipeline']"
    )
    assert not {name for name in loaded if name.startswith("minibroker.broker.")}
    assert not {"asyncio", "socket"} & loaded
    assert not any(name.startswith("minibroker.client") for name in loaded)


def verbs_of(group: VerbGroup) -> Iterator[tuple[str, Verb]]:
    """Yield the words behind `minibroker` and the verb, of all verbs."""
    for name in group.modules:
        entry = program.member(group, name)
        if isinstance(entry, VerbGroup):
            yield from ((f"{name} {below}", verb) for below, verb in verbs_of(entry))
        else:
            yield name, entry


VERBS = dict(verbs_of(program.PROGRAM))


@pytest.mark.parametrize("name", VERBS)
def test_an_example_is_a_command_of_its_verb(name: str) -> None:
    """Its words make a plan; only files that it names may be missing."""
    verb = VERBS[name]
    assert verb.command == f"minibroker {name}"
    assert verb.examples
    for example in verb.examples:
        assert example == name or example.startswith(f"{name} ")
        words = shlex.split(example.removeprefix(name).partition("|")[0])
        plan_from(verb, words)


@pytest.mark.parametrize("name", VERBS)
def test_a_help_page_fits_a_terminal(name: str) -> None:
    page = help_of(VERBS[name])
    assert max(map(len, page.splitlines())) <= 100
    assert page.startswith(f"minibroker {name}: {VERBS[name].does}\n")


@pytest.mark.parametrize("name", VERBS)
def test_a_word_beside_the_choices_is_refused(name: str) -> None:
    """`--security` is checked by its verb, which takes any case."""
    for field in options_of(VERBS[name].plan):
        declared = field.declared
        for option in declared.options if isinstance(declared, InOrder) else [declared]:
            if isinstance(option, Option) and option.kind.choices and option.flag != "--security":
                with pytest.raises(UsageError):
                    option.kind.of_words(["no-such-word"])
