"""kill -9 at random moments: every record whose write returned is there once, in order.

A child runs `load` and reports the written offsets. The parent kills it after a random number of
reports, opens the directory, and compares. Each directory gets several kills.
`MINIBROKER_CRASHES=500` (`make crash`) sets the number of kills; half of them flush every append,
as with flush.messages=1.
"""

from __future__ import annotations

import os
import random
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.crash.load import assert_all_there, open_logs
from tests.crash.nursery import Nursery
from tests.support.check import broken_things
from tests.support.log_tool import LogTool
from tests.support.logs import abandon

if TYPE_CHECKING:
    from collections.abc import Iterator

KILLS_A_DIRECTORY = 5
KILLS = int(os.environ.get("MINIBROKER_CRASHES", "30"))
COMPLAINT = re.compile("mismatch|corrupt|exception|invalid|isvalid: false|not found", re.IGNORECASE)


def work_and_die(
    nursery: Nursery, path: Path, seed: int, *, flushes: bool, reports: int
) -> dict[str, int]:
    """Let a child work on `path` and kill it; return topic → the end of its written offsets."""
    nursery.fork(path, seed, int(flushes))
    ends: dict[str, int] = {"t": 0, "c": 0}
    child, count, is_killed = 0, 0, False
    while True:
        word, report = nursery.report()
        number = int(report)
        if word == "child":
            child = number
        elif word == "gone":
            assert number == 1, "the child ended by itself"
            return ends
        else:
            ends[word] = number
            count += 1
        # The nursery names its child at any time: some reports may have come before.
        if child and count >= reports and not is_killed:
            os.kill(child, signal.SIGKILL)
            is_killed = True


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery("tests.crash.load") as started:
        yield started


@pytest.mark.parametrize("seed", range(KILLS // KILLS_A_DIRECTORY))
def test_kill_under_load(tmp_path: Path, nursery: Nursery, seed: int) -> None:
    """Several kills of one directory; the next child goes on where the log ends."""
    chance = random.Random(seed)
    for turn in range(KILLS_A_DIRECTORY):
        promised = work_and_die(
            nursery,
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
                work_and_die(nursery, path, seed, flushes=False, reports=reports)
            open_logs(str(path))[0].close()
            files = [
                log_file
                for log_file in sorted(path.glob("?-0/*"))
                if log_file.stat().st_size
                and log_file.suffix != ".metadata"
                and "." in log_file.name
            ]
            assert len(files) > 8
            for file in files:
                report = tool.dump("--deep-iteration", "--files", str(file))
                assert not report.failed, report.errors
                assert not COMPLAINT.search(report.output + report.errors), (file, report)
