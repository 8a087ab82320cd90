"""Promises of the tests' own kit.

Missing files are made or named, CI skips nothing, and workers share the tests as planned.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from tests import conftest
from tests.clients.comparison import Results, unlike, verdict
from tests.meta.sources import ROOT
from tests.support import build_files, durations, processes, skips
from tests.support.faulty_files import FaultyFiles
from tests.support.logs import TOPIC_ID, append, config, open_manager
from tests.support.open_storage import storage_closed
from tests.support.schedule import DIFFERENTIAL, FOLDERS, LONGEST, LongestFirst, rank

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return a missing file in a build directory of the test's own."""
    monkeypatch.setattr(build_files, "ROOT", tmp_path)
    monkeypatch.setattr(build_files, "BUILD", tmp_path / "build")
    monkeypatch.delenv(build_files.MAKE_VARIABLE, raising=False)
    return tmp_path / "build" / "jars" / "kafka-0.0.0" / ".done"


def a_make(directory: Path, body: str) -> str:
    """Return a program that is called like make."""
    program = directory / "make"
    program.write_text(f"#!{sys.executable}\nimport pathlib, sys\n{body}")
    program.chmod(0o755)
    return str(program)


def test_a_missing_jar_is_named_with_its_make_target(target: Path) -> None:
    with pytest.raises(
        build_files.MissingError, match=r"kafka-0\.0\.0/\.done is missing: run make build/jars/"
    ):
        build_files.required(target)


def test_under_make_test_a_missing_jar_is_made_once(
    target: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    body = """
path = pathlib.Path(sys.argv[1])
path.parent.mkdir(parents=True)
path.touch(exist_ok=False)
"""
    monkeypatch.setenv(build_files.MAKE_VARIABLE, a_make(tmp_path, body))
    assert build_files.required(target) == target
    build_files.required.cache_clear()
    assert build_files.required(target).exists()


def test_a_make_that_fails_says_why(
    target: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(build_files.MAKE_VARIABLE, a_make(tmp_path, "sys.exit('no Maven here')"))
    with pytest.raises(
        build_files.MissingError, match=r"make build/jars/.* failed:\s+no Maven here"
    ):
        build_files.required(target)


def outcome_of(reason: str) -> tuple[str, object]:
    """Return the outcome of a test that is skipped for this reason."""
    report = pytest.TestReport(
        "tests/x.py::test_x", ("tests/x.py", 1, ""), {}, "skipped", ("x.py", 1, reason), "call"
    )
    steps = conftest.pytest_runtest_makereport()
    next(steps)
    with pytest.raises(StopIteration) as end:
        steps.send(report)
    assert end.value.value is report
    return report.outcome, report.longrepr


def test_a_skip_fails_where_ci_is_true(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(skips.CI_VARIABLE, "true")
    outcome, sentence = outcome_of("Skipped: not run: kcat is not installed")
    assert outcome == "failed"
    assert "kcat is not installed" in str(sentence)
    for reason in skips.ALLOWED:
        assert outcome_of(f"Skipped: {reason}")[0] == "skipped"
    monkeypatch.delenv(skips.CI_VARIABLE)
    assert outcome_of("Skipped: not run: kcat is not installed")[0] == "skipped"


class Worker:
    """The part of xdist's worker that the scheduler uses."""

    shutting_down = False
    gateway = SimpleNamespace(id="gw")

    def __init__(self) -> None:
        self.indexes: list[int] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        self.indexes += indices

    def shutdown(self) -> None:
        self.shutting_down = True


SPARK_TEST, UNIT_TEST = (
    "tests/pipeline/test_sink.py::test_a",
    "tests/unit/kafka/test_java_strings.py::test_a",
)
CASES = [f"{DIFFERENTIAL}::test_answers_are_equal[produce_{n}-v{v}]" for n in "ab" for v in (1, 2)]
OTHERS = ["tests/crash/test_kill.py::test_a", *CASES, UNIT_TEST]


@pytest.fixture
def scheduler(pytestconfig: pytest.Config) -> Iterator[LongestFirst]:
    """Yield a scheduler of three workers."""
    options = pytestconfig.option
    options_of_xdist = (options.tx, options.loadscopereorder)
    options.tx = ["3*popen"]
    made_scheduler = LongestFirst(pytestconfig)
    assert not options.loadscopereorder
    yield made_scheduler
    options.tx, options.loadscopereorder = options_of_xdist


def test_one_of_three_workers_begins_with_spark(scheduler: LongestFirst) -> None:
    tests = [SPARK_TEST, SPARK_TEST.replace("test_sink", "test_archive"), *OTHERS]
    workers = [Worker() for _ in range(3)]
    for worker in workers:
        scheduler.add_node(worker)  # type: ignore[arg-type]
        scheduler.add_node_collection(worker, tests)  # type: ignore[arg-type]
    scheduler.schedule()
    first = [[tests[index] for index in worker.indexes] for worker in workers]
    assert first[0] == tests[:2]
    assert not any(test.startswith("tests/pipeline") for names in first[1:] for test in names)
    scenarios = [test for names in first[1:] for test in names if test.startswith(DIFFERENTIAL)]
    assert set(CASES[:2]) <= set(scenarios), "a scenario is taken with all its versions"


def test_the_longest_folders_come_first() -> None:
    order = sorted([UNIT_TEST, SPARK_TEST, *OTHERS], key=rank)
    assert order[0] == SPARK_TEST
    assert order[-1] == UNIT_TEST
    assert all((ROOT / "tests" / folder).is_dir() for folder in FOLDERS)


def test_the_longest_modules_come_first_in_their_folder() -> None:
    plugin = "tests/unit/testing/test_plugin.py::test_a"
    order = sorted([UNIT_TEST, plugin, OTHERS[0]], key=rank)
    assert order == [OTHERS[0], plugin, UNIT_TEST]
    assert all((ROOT / module).is_file() for module in LONGEST)


def test_the_end_of_a_run_says_how_its_workers_spent_it() -> None:
    steps = [
        durations.Step("gw1", "tests/b.py::test_b", 102.5, 2.5),
        durations.Step("gw0", "tests/a.py::test_a", 101.0, 1.0),
        durations.Step("gw0", "tests/a.py::test_a", 104.0, 3.0),
        durations.Step("gw0", "tests/a.py::test_c", 109.0, 5.0),
        durations.Step("gw0", "tests/a.py::test_short", 109.0, 0.4),
    ]
    assert list(durations.lines(steps, 100.0)) == [
        "gw0: in tests for 9 s, ended after 9 s with tests/a.py",
        "gw1: in tests for 2 s, ended after 2 s with tests/b.py",
        "",
        "    9.4 s  tests/a.py",
        "    2.5 s  tests/b.py",
        "",
        "    5.0 s  tests/a.py::test_c",
        "    4.0 s  tests/a.py::test_a",
        "    2.5 s  tests/b.py::test_b",
    ]


def test_storage_that_a_test_leaves_open_is_closed_behind_it(tmp_path: Path) -> None:
    with storage_closed():
        manager = open_manager(str(tmp_path), files=FaultyFiles(str(tmp_path)))
        log = manager.create_log("t", 0, TOPIC_ID, config())
        append(log, b"v")
        assert paths_held_open(tmp_path)
    assert paths_held_open(tmp_path) == []


def paths_held_open(directory: Path) -> list[Path]:
    """Return the files and directories under `directory` that this process has open."""
    path_by_inode = {path.stat().st_ino: path for path in [directory, *directory.rglob("*")]}
    numbers = [inode_of(int(name)) for name in os.listdir("/dev/fd")]  # noqa: PTH208
    return [path_by_inode[number] for number in numbers if number in path_by_inode]


def inode_of(fd: int) -> int:
    """Return the number of the open file, -1 where the descriptor is closed meanwhile."""
    try:
        return os.fstat(fd).st_ino
    except OSError:
        return -1


ASK = """
import sys
from tests.support import processes
low, high, processes.RESERVED_NAME = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
processes.SERVER_PORTS = range(low, high + 1, high - low)
try:
    print(processes.free_port())
except processes.StartError:
    print("none")
"""


def test_no_two_processes_get_one_port(monkeypatch: pytest.MonkeyPatch) -> None:
    # Reserved from every other run. Below they are given once more, under a name of this run.
    low, high = sorted((processes.free_port(), processes.free_port()))
    name = f"minibroker-ports-of-{os.getpid()}"
    monkeypatch.setattr(processes, "RESERVED_NAME", name)
    monkeypatch.setattr(processes, "SERVER_PORTS", range(low, high + 1, high - low))
    reservations: list[socket.socket] = []
    monkeypatch.setattr(processes, "_reservations", reservations)
    command = [sys.executable, "-c", ASK, str(low), str(high), name]
    first = processes.free_port()
    other = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {first, int(other)} == {low, high}
    assert {first, processes.free_port()} == {low, high}, "a process that ended keeps nothing"
    nobody = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert nobody == "none\n"
    for reservation in reservations:
        reservation.close()


def results_of(result: str | None) -> Results:
    """Return the results of a suite with one test, None: it did not run."""
    return {"test": result} if result else {}


@pytest.mark.parametrize(
    ("first", "later", "kind"),
    [
        (("PASS", "PASS"), [], None),
        (("PASS", "FAIL"), [("PASS", "PASS")] * 3, "steadied"),
        (("FAIL", "PASS"), [("PASS", "PASS")] * 3, "steadied"),
        (("PASS", "FAIL"), [("FAIL", "FAIL")] * 3, "steadied"),
        (("PASS", "FAIL"), [("FAIL", "PASS"), ("PASS", "PASS")], "unsteady"),
        (("FAIL", "PASS"), [("PASS", "FAIL"), ("PASS", "PASS")], "unsteady"),
        (("PASS", "FAIL"), [("PASS", "FAIL"), ("PASS", "PASS")], "differing"),
        (("PASS", "FAIL"), [], "differing"),
        (("PASS", None), [("PASS", None)] * 3, "differing"),
    ],
)
def test_a_test_is_judged_by_its_later_runs(
    first: tuple[str, str | None], later: list[tuple[str, str | None]], kind: str | None
) -> None:
    (directly, through), *repeats = [
        (results_of(one_side), results_of(other_side)) for one_side, other_side in (first, *later)
    ]
    row = verdict(directly, through, repeats)
    for name in ("steadied", "unsteady", "differing"):
        assert list(getattr(row, name)) == (["test"] if name == kind else [])
    assert row.equal == (0 if kind in {"unsteady", "differing"} else 1)
    assert row.passed == (1 if first[0] == "PASS" else 0)


def test_tests_of_one_side_alone_are_unlike() -> None:
    assert unlike({"a": "PASS", "b": "PASS"}, {"a": "PASS", "c": "PASS"}) == ["b", "c"]
