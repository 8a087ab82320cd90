"""kill -9 at random moments: every batch whose write returned is there once, in order.

A child appends batches as fast as it can (idempotent, several sizes, small segments, so that it
rolls, flushes and checkpoints all the time) and reports after each `write_staged` the offset that
is written. The parent kills it after a random number of reports, opens the directory and compares.
"""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.java import KAFKA_39, run_java
from tests.support.logs import TOPIC_ID, append, config, open_manager, records_of

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {"segment_bytes": 40_000, "index_interval_bytes": 500}
BATCHES_AT_ONCE = 7

CHILD = f"""
import sys
from tests.crash.test_kill import value_at
from tests.support.java import KAFKA_39, run_java
from tests.support.logs import NOW_MS, TOPIC_ID, batch, config, open_manager
settings = config(**{SETTINGS!r})
manager = open_manager(sys.argv[1], topic=settings)
log = manager.create_log("t", 0, TOPIC_ID, settings)
offset = log.log_end_offset
turn = 0
while True:
    for _ in range({BATCHES_AT_ONCE}):
        sent = batch(value_at(offset), timestamp_ms=NOW_MS + offset, producer_id=1,
        producer_epoch=0,
                     sequence=offset)
        log.append(sent, 0, NOW_MS)
        offset += 1
    log.write_staged()
    sys.stdout.write(f"{{offset}}\\n")
    sys.stdout.flush()
    turn += 1
    if turn % 11 == 0:
        log.flush()
    if turn % 17 == 0:
        manager.checkpoint_now()
"""


def value_at(offset: int) -> bytes:
    return b"%d," % offset * (offset % 97 + 1)


def append_until_killed(path: Path, reports: int) -> int:
    """The offset that the child reported last."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert child.stdout is not None
    last = 0
    for _ in range(reports):
        last = int(child.stdout.readline())
    child.send_signal(signal.SIGKILL)
    for line in child.stdout:
        if line.endswith("\n"):
            last = int(line)
    child.wait()
    child.stdout.close()
    return last


@pytest.mark.parametrize("seed", range(4))
def test_kill_under_load(tmp_path: Path, seed: int) -> None:
    """Three kills on one directory; the child goes on where the log ends."""
    chance = random.Random(seed)
    settings = config(**SETTINGS)
    for _ in range(3):
        written = append_until_killed(tmp_path, chance.randrange(1, 120))
        manager = open_manager(str(tmp_path), topic=settings)
        log = manager.create_log("t", 0, TOPIC_ID, settings)
        end = log.log_end_offset
        assert end >= written
        records = records_of(log)
        assert [one.offset for one in records] == list(range(end))
        assert all(one.value == value_at(one.offset) for one in records)
        for segment in log.segments:
            segment.offset_index.check(segment.size_bytes)
            segment.time_index.check()
        sequence = {"producer_id": 1, "producer_epoch": 0, "sequence": end}
        assert append(log, value_at(end), **sequence) == end
        manager.close()


@pytest.mark.java
def test_after_a_kill_kafka_s_tool_has_nothing_to_say(tmp_path: Path) -> None:
    """Killed under load, opened, closed: every log, index, time index and snapshot."""
    settings = config(**SETTINGS)
    append_until_killed(tmp_path, 60)
    open_manager(str(tmp_path), topic=settings).close()
    files = [path for path in (tmp_path / "t-0").iterdir() if path.stat().st_size]
    judged = [
        path for path in files if path.suffix in (".log", ".index", ".timeindex", ".snapshot")
    ]
    assert len(judged) > 8
    said = run_java(
        KAFKA_39,
        "kafka.tools.DumpLogSegments",
        "--deep-iteration",
        "--files",
        ",".join(sorted(str(path) for path in judged)),
    )
    assert not re.search("mismatch|corrupt|non-consecutive|exception|invalid", said, re.IGNORECASE)
    assert "isvalid: false" not in said
