"""The imports of a start: what a broker alone loads before it has answered its first Metadata."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.dynamic import DynamicConfig
from minibroker.kafka.records import crc
from minibroker.verbs.serve.warm_up import MODULES, import_rest
from tests.support.imports import names_in
from tests.support.wire import WireClient

OWN_MODULES_MAX = 144
"""The modules of ours in such a start. A module more is 0.1 to 1 ms more for every start: a part
that a broker alone does not need is imported when something asks for it.
"""

DEAR_CLASSES_MAX = 13
"""The NamedTuples and enumerations of ours in such a start. To make one takes 0.5 to 1.5 million
instructions: a value that nobody compares or unpacks is a plain class, which takes 0.1 million.
"""


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of the modules that `minibroker serve --memory` has imported at that answer, but
    for those that it imports behind the ready line while nobody asks.
    """
    directory: Path = tmp_path_factory.mktemp("start")
    words = ["serve", "--memory", "--listen", "127.0.0.1:0", "--loop", "asyncio"]
    with subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "minibroker", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "TMPDIR": str(directory)},
    ) as process:
        try:
            assert process.stdout is not None
            start: list[str] = []
            for line in process.stdout:
                start.append(line)
                if line.startswith("minibroker listening on "):
                    break
            with WireClient("127.0.0.1", int(start[-1].rpartition(":")[2])) as client:
                assert client.call("metadata", 4, topics=[])["brokers"]
        finally:
            process.kill()
        answer = process.communicate(timeout=60)[0]
    return names_in("".join(start)) | (names_in(answer) - set(MODULES))


def test_the_modules_of_a_start_are_counted(imported: set[str]) -> None:
    own = {name for name in imported if name.startswith("minibroker.")}
    assert "minibroker.broker.handlers.common.leaders" in own  # of the handler of Metadata
    assert len(own) <= OWN_MODULES_MAX, sorted(own)


def test_the_named_tuples_and_enumerations_of_a_start_are_counted(imported: set[str]) -> None:
    own = sorted(name for name in imported if name.startswith("minibroker."))
    script = (
        "import enum, importlib, sys\n"
        f"for name in {own!r}:\n"
        "    for value in vars(importlib.import_module(name)).values():\n"
        "        if isinstance(value, type) and value.__module__ == name:\n"
        "            if hasattr(value, '_field_defaults') or issubclass(value, enum.Enum):\n"
        "                print(value.__name__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    names = done.stdout.split()
    assert {"ServePlan", "TopicPartition", "SecurityProtocol"} <= set(names)
    assert len(names) <= DEAR_CLASSES_MAX, names


@pytest.mark.parametrize(
    "name",
    [
        "minibroker.broker.peers",
        "minibroker.broker.replication.fetcher",
        "minibroker.broker.cluster.leader_balance",
        "minibroker.broker.cluster.reassignment",
        "minibroker.broker.cluster.requests",
        "minibroker.broker.replication.isr",
        "minibroker.broker.security.acl_entries",
        "minibroker.broker.security.acl_words",
        "minibroker.client.async_connection",
    ],
)
def test_a_broker_alone_imports_nothing_for_several_brokers_and_no_acls(
    imported: set[str], name: str
) -> None:
    assert name not in imported


@pytest.mark.parametrize(
    "name",
    [
        "minibroker.broker.partitions.partition",
        "minibroker.broker.partitions.replicas",
        "minibroker.broker.storage.partition_log",
        "minibroker.broker.storage.recovery",
        "minibroker.kafka.records.crc",
    ],
)
def test_a_start_without_a_log_imports_nothing_that_works_on_logs(
    imported: set[str], name: str
) -> None:
    assert name not in imported


def test_a_start_reads_the_default_settings_without_a_pattern(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To compile those of `java_numbers` takes 1.7 million instructions."""

    def refuse(pattern: str, *_: object) -> None:
        raise AssertionError(f"the pattern {pattern} is compiled")

    monkeypatch.setattr(re, "fullmatch", refuse)
    defaults = DynamicConfig(BrokerConfig()).topic_default
    assert defaults.values["min.cleanable.dirty.ratio"] == 0.5


@pytest.mark.parametrize("room", ["minibroker.control", "minibroker.registry", "minibroker.rig"])
def test_a_start_without_the_option_imports_nothing_of_its_room(
    imported: set[str], room: str
) -> None:
    assert not [name for name in imported if name.startswith(room)]


def new_modules_of(code: str) -> list[list[str]]:
    """Return the modules of ours that each line of the code imports, behind those of a start."""
    script = (
        "import sys; import minibroker.verbs.serve.verb, minibroker.verbs.serve.process\n"
        f"for line in {code.splitlines()!r}:\n"
        "    before = set(sys.modules); exec(line)\n"
        "    new = set(sys.modules) - before\n"
        "    print(*sorted(name for name in new if name.startswith('minibroker.')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    return [line.split() for line in done.stdout.splitlines()]


def test_behind_the_ready_line_each_step_imports_one_module() -> None:
    """Several at once would hold the loop for more than 1 ms."""
    steps = new_modules_of("\n".join(f"import {name}" for name in MODULES))
    assert steps == [[name] for name in MODULES]


def test_behind_those_steps_a_first_log_imports_nothing_more() -> None:
    first_log = (
        "minibroker.broker.partitions.checking",
        "minibroker.broker.partitions.partition",
        "minibroker.broker.storage.record_checks",
        "minibroker.broker.storage.recovery",
        "minibroker.broker.storage.retention",
    )
    steps = new_modules_of("\n".join(f"import {name}" for name in (*MODULES, *first_log)))
    assert steps[len(MODULES) :] == [[] for _ in first_log]


async def test_the_rest_is_imported_unless_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    imported_names: list[str] = []
    monkeypatch.setattr("minibroker.verbs.serve.warm_up.import_module", imported_names.append)
    monkeypatch.delitem(sys.modules, MODULES[0], raising=False)
    monkeypatch.delitem(sys.modules, MODULES[-1], raising=False)
    await import_rest()
    assert {MODULES[0], MODULES[-1]} <= set(imported_names)
    assert imported_names == [name for name in MODULES if name not in sys.modules]


async def test_slow_checksums_are_said_behind_the_ready_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await import_rest()
    assert not caplog.records
    monkeypatch.setattr(crc, "IS_SLOW", True)
    await import_rest()
    assert "the package crc32c is missing" in caplog.text


@pytest.mark.parametrize(
    "name", ["argparse", "random", "tempfile", "shutil", "bz2", "encodings.idna", "pathlib"]
)
def test_a_start_does_without_these_modules_of_python(imported: set[str], name: str) -> None:
    assert name not in imported
