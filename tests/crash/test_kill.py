"""kill -9 at random moments: everything whose write returned is there once, in order.

A child works as `load` does and reports what is written; the parent kills it after a random number
of reports, looks at the directory, opens it, and compares. The same directory is killed again and
again. `MINIBROKER_CRASHES=500` (`make crash`) makes it as many kills; half of them flush every
append, as with flush.messages=1.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.crash.load import assert_all_there, open_logs
from tests.support.check import broken_things
from tests.support.log_tool import LogTool
from tests.support.logs import abandon

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
KILLS_A_DIRECTORY = 5
KILLS = int(os.environ.get("MINIBROKER_CRASHES", "30"))
COMPLAINT = re.compile("mismatch|corrupt|exception|invalid|isvalid: false|not found", re.IGNORECASE)


class Nursery:
    """Where the children come from: forked, so that a kill costs no start of Python."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.load"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def _word(self) -> tuple[str, int]:
        assert self._process.stdout is not None
        word, number = self._process.stdout.readline().split()
        return word.decode(), int(number)

    def work_and_die(self, path: Path, seed: int, *, flushes: bool, reports: int) -> dict[str, int]:
        """A child works on `path` and is killed; topic → the offset below which it had written."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"%s %d %d\n" % (str(path).encode(), seed, flushes))
        self._process.stdin.flush()
        written: dict[str, int] = {"t": 0, "c": 0}
        child, count = 0, 0
        while True:
            word, number = self._word()
            if word == "child":
                child = number
            elif word == "gone":
                assert number == 1, "the child ended by itself"
                return written
            else:
                written[word] = number
                count += 1
            if child and count == reports:
                os.kill(child, signal.SIGKILL)


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.mark.parametrize("seed", range(KILLS // KILLS_A_DIRECTORY))
def test_kill_under_load(tmp_path: Path, nursery: Nursery, seed: int) -> None:
    """Several kills of one directory; the next child goes on where the log ends."""
    chance = random.Random(seed)
    for turn in range(KILLS_A_DIRECTORY):
        promised = nursery.work_and_die(
            tmp_path,
            chance.randrange(1 << 30),
            flushes=(seed + turn) % 2 == 0,
            reports=chance.randrange(1, 150),
        )
        assert broken_things(tmp_path, is_strict=False) == []
        manager, logs = open_logs(str(tmp_path))
        assert_all_there(logs, promised)
        assert broken_things(tmp_path) == []
        if chance.random() < 0.3:
            manager.close()
            assert broken_things(tmp_path) == []
        else:
            abandon(manager)


@pytest.mark.java
def test_after_kills_kafka_s_tool_has_nothing_to_say(tmp_path: Path, nursery: Nursery) -> None:
    """Every log, index, time index, transaction index and snapshot of directories that were killed
    and opened.
    """
    chance = random.Random(1)
    with LogTool() as tool:
        for number in range(max(1, KILLS // 50)):
            path = tmp_path / str(number)
            for _ in range(2):
                seed, reports = chance.randrange(1 << 30), chance.randrange(20, 120)
                nursery.work_and_die(path, seed, flushes=False, reports=reports)
            open_logs(str(path))[0].close()
            files = [
                one
                for one in sorted(path.glob("?-0/*"))
                if one.stat().st_size and one.suffix != ".metadata" and "." in one.name
            ]
            assert len(files) > 8
            for one in files:
                said = tool.dump("--deep-iteration", "--files", str(one))
                assert not said.failed, said.errors
                assert not COMPLAINT.search(said.output + said.errors), (one, said)
