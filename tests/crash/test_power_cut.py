"""The power goes at every call: what was flushed is there once, in order, and the log goes on.

A scripted life of a broker (create, append, roll, flush, checkpoint, truncate the tail, clean stop)
runs on `FaultyFiles`; the power is cut at call number 1, 2, 3, … until the script ends without
meeting it. After each cut the disk holds what had been synced, and of unsynced bytes nothing, some
or all. Then the directory is opened with healthy files.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from minibroker.storage.files import Files
from tests.support.faulty_files import FaultyFiles, PowerCut
from tests.support.logs import (
    NOW_MS,
    TOPIC_ID,
    ManualClock,
    abandon,
    append,
    config,
    open_manager,
    records_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from minibroker.storage.log_manager import LogManager

SETTINGS = config(segment_bytes=900, index_interval_bytes=150)


class Life:
    """What the script has appended, and how much of it must survive."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.mkdir()
        self.files = FaultyFiles(str(path))
        self.appended: list[bytes] = []
        self.durable = 0
        self.manager: LogManager | None = None

    def run(self) -> None:
        for round_number in range(3):
            self.manager = open_manager(
                str(self.path), files=self.files, topic=SETTINGS, clock=ManualClock()
            )
            log = self.manager.create_log("t", 0, TOPIC_ID, SETTINGS)
            for number in range(14):
                value = b"%d/%d" % (round_number, number) * 10
                sequence = len(self.appended)
                self.appended.append(value)
                append(
                    log,
                    value,
                    timestamp_ms=NOW_MS + sequence,
                    producer_id=3,
                    producer_epoch=0,
                    sequence=sequence,
                    leader_epoch=round_number,
                )
                if number in (2, 3, 11):
                    log.flush()
                    self.durable = len(self.appended)
                if number in (4, 12):
                    self.manager.checkpoint_now()
            self.manager.close()
            self.durable = len(self.appended)

    def cut(self, keep: Callable[[int], int]) -> None:
        self.manager = None
        self.files.power_cut(keep)
        self.files.forget_pins()


def check(life: Life) -> None:
    """Everything durable is there once, what follows it was appended, and the log takes more."""
    manager = open_manager(str(life.path), files=Files(), topic=SETTINGS, clock=ManualClock())
    log = manager.create_log("t", 0, TOPIC_ID, SETTINGS)
    found = records_of(log)
    assert [record.offset for record in found] == list(range(len(found)))
    assert len(found) >= life.durable
    assert [record.value for record in found] == life.appended[: len(found)]
    for segment in log.segments:
        segment.offset_index.check(segment.size_bytes)
        segment.time_index.check()
    for record in found:
        hit = log.offset_for_timestamp(record.timestamp)
        assert hit is not None
        assert hit.offset == record.offset
    sequence = len(found)
    value = b"after the cut"
    first = append(log, value, producer_id=3, producer_epoch=0, sequence=sequence)
    assert first == sequence
    assert records_of(log)[-1].value == value
    manager.close()


def live_and_cut(path: Path, call: int, keep: Callable[[int], int]) -> bool:
    """One life with the power cut at `call`; False if it ended before."""
    life = Life(path)
    life.files.cut_at = call
    try:
        life.run()
    except PowerCut:
        assert life.manager is None or not life.manager.logs or life.durable <= len(life.appended)
        if life.manager is not None:
            abandon(life.manager)
        _release(path)
        life.cut(keep)
        check(life)
        return True
    life.files.forget_pins()
    return False


def _release(path: Path) -> None:
    """A process that died holds no lock."""
    from minibroker.storage.log_directory import LogDirectory  # noqa: PLC0415

    LogDirectory.held.discard(str(path))


@pytest.mark.parametrize("survival", ["nothing", "a part", "everything"])
def test_a_power_cut_at_every_call(tmp_path: Path, survival: str) -> None:
    chance = random.Random(7)

    def keep(unsynced: int) -> int:
        if survival == "nothing":
            return 0
        return unsynced if survival == "everything" else chance.randrange(unsynced + 1)

    step = {"nothing": 1, "a part": 1, "everything": 3}[survival]
    call = 1
    while live_and_cut(tmp_path / str(call), call, keep):
        call += step
    assert call > 100
