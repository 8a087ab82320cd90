"""A power cut: flushed records are there once, in order, and the log goes on.

At every call of a scripted life, and at random calls of random ones (`load`), half of which flush
every append, as with flush.messages=1. `MINIBROKER_CRASHES=500` (`make crash`) makes it 500 of
those.

A scripted life of a broker (create, append, roll, flush, sync, checkpoint, clean stop)
runs on `FaultyFiles`; the power is cut at call number 1, 2, 3, … until the script ends without
meeting it. After each cut the disk holds what had been synced, and of unsynced bytes and names
nothing, some or all, or all the names and no bytes. Then the directory is opened with healthy
files.

With `flush.messages=1` everything answered is durable, and nothing else has to be synced by hand.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, NamedTuple

import pytest

from minibroker.broker.config.topic import topic_config
from minibroker.broker.storage import log_reads
from minibroker.broker.storage.files import Files
from minibroker.broker.storage.log_manager import LogManager
from tests.crash.load import Load, assert_all_there, batches_of, lost_between_segments, open_logs
from tests.support.check import broken_things
from tests.support.faulty_files import FaultyFiles, PowerCut, keep_everything, keep_nothing
from tests.support.logs import (
    DEFAULTS,
    NOW_MS,
    TOPIC_ID,
    ManualClock,
    abandon,
    append,
    config,
    flush,
    open_manager,
    records_of,
    sync,
)
from tests.unit.broker.partitions.conftest import World

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

SETTINGS = config(segment_bytes=900, index_interval_bytes=150)
CUTS_A_DIRECTORY = 5
CUTS_USUAL = 40
CUTS = int(os.environ.get("MINIBROKER_CRASHES", CUTS_USUAL))
SURVIVALS = ["nothing", "a part", "everything", "names"]


class Life:
    """The appended records, and how many of them must survive."""

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
                    flush(log)
                    self.durable = len(self.appended)
                if number in (4, 12):
                    self.manager.checkpoint_now()
                if number in (6, 8):
                    sync(self.manager, log)
                    self.durable = len(self.appended)
            self.manager.close()
            self.durable = len(self.appended)

    def cut(self, keep: Callable[[int], int], keep_names: Callable[[int], int]) -> None:
        self.manager = None
        self.files.power_cut(keep, keep_names)
        self.files.forget_pins()


class Outcome(NamedTuple):
    """Counts of one life: records that had to survive, that did, and that had been appended."""

    durable: int
    survived: int
    appended: int


def check(life: Life) -> Outcome:
    """Check that durable records are there once, later ones were appended, and the log goes on."""
    manager = open_manager(str(life.path), files=Files(), topic=SETTINGS, clock=ManualClock())
    log = manager.create_log("t", 0, TOPIC_ID, SETTINGS)
    all_records = [record for _, records in batches_of(log) for record in records]
    lost = lost_between_segments(log, life.durable)
    offsets = [offset for offset in range(log.log_end_offset) if offset not in lost]
    assert len(offsets) >= life.durable
    assert [record.offset for record in all_records] == offsets
    assert [record.value for record in all_records] == [life.appended[offset] for offset in offsets]
    for segment in (
        log.segments if all_records else ()
    ):  # before the first record there are no files
        segment.offset_index.check(segment.size_bytes)
        segment.time_index.check()
    for record in all_records:
        hit = log_reads.offset_for_timestamp(log, record.timestamp)
        assert hit is not None
        assert hit.offset == record.offset
    end = log.log_end_offset
    producer = log.producers.loaded().producers.get(3)
    sequence = 0 if producer is None else producer.last_sequence + 1
    value = b"after the cut"
    assert append(log, value, producer_id=3, producer_epoch=0, sequence=sequence) == end
    assert records_of(log)[-1].value == value
    manager.close()
    return Outcome(life.durable, len(all_records), len(life.appended))


def survivors(
    survival: str, chance: random.Random
) -> tuple[Callable[[int], int], Callable[[int], int]]:
    """Return how many unsynced bytes of a file, and how many unsynced names, a cut leaves."""

    def a_part(unsynced: int) -> int:
        return chance.randrange(unsynced + 1)

    return {
        "nothing": (keep_nothing, keep_nothing),
        "a part": (a_part, a_part),
        "everything": (keep_everything, keep_everything),
        "names": (keep_nothing, keep_everything),
    }[survival]


def live_and_cut(
    path: Path, call: int, keep: Callable[[int], int], keep_names: Callable[[int], int]
) -> Outcome | None:
    """Run one life with a power cut at `call`; return None if it ended before."""
    life = Life(path)
    life.files.cut_at = call
    try:
        life.run()
    except PowerCut:
        if life.manager is not None:
            abandon(life.manager)
        _release(path)
        life.cut(keep, keep_names)
        return check(life)
    life.files.forget_pins()
    return None


def random_life_and_cut(path: Path, seed: int, gaps: Mapping[str, set[int]]) -> bool:
    """Run one life on a directory of earlier lives; return False if it ended before the cut.

    `gaps` as `assert_all_there` takes it.
    """
    chance = random.Random(seed)
    files = FaultyFiles(str(path))
    files.cut_at = chance.randrange(1, 400)
    load, manager = None, None
    promised = {"t": 0, "c": 0}
    try:
        manager, logs = open_logs(str(path), files)
        promised = {topic: log.recovery_point for topic, log in logs.items()}
        load = Load(manager, logs, chance, flushes=seed % 2 == 0)
        load.durable = promised
        for _ in range(200):
            load.turn(lambda _topic, _offset: None)
    except PowerCut:
        if manager is not None:
            abandon(manager)
        _release(path)
    else:
        abandon(manager)
        files.forget_pins()
        return False
    keep, keep_names = survivors(chance.choice(SURVIVALS), chance)
    files.power_cut(keep, keep_names)
    files.forget_pins()
    if _has_begun(path):
        assert broken_things(path, is_strict=False) == []
    manager, logs = open_logs(str(path))
    assert_all_there(logs, promised, gaps=gaps)
    manager.checkpoint_now()
    assert broken_things(path) == []
    if chance.random() < 0.5:
        manager.close()
        assert broken_things(path) == []
    else:
        for log in manager.logs.values():
            flush(log)
        abandon(manager)
    return True


def _has_begun(path: Path) -> bool:
    """Return whether the cut left something by which `check-log` knows a data directory."""
    return any(
        entry.is_dir() or entry.name == "meta.properties" or "checkpoint" in entry.name
        for entry in path.iterdir()
    )


@pytest.mark.parametrize("seed", range(CUTS // CUTS_A_DIRECTORY))
def test_power_cuts_under_load(tmp_path: Path, seed: int) -> None:
    """Several cuts of one directory; each life begins with the remains of the last one."""
    cuts = 0
    gaps: dict[str, set[int]] = {"t": set(), "c": set()}
    for turn in range(3 * CUTS_A_DIRECTORY):
        cuts += random_life_and_cut(tmp_path, 1000 * seed + turn, gaps)
        if cuts == CUTS_A_DIRECTORY:
            return
    raise AssertionError(f"only {cuts} lives met the cut")


def _release(path: Path) -> None:
    """Release the lock, as the death of a process does."""
    from minibroker.broker.storage.log_directory import LogDirectory  # noqa: PLC0415

    LogDirectory.locked_paths.discard(str(path))


@pytest.mark.parametrize("survival", SURVIVALS)
def test_a_power_cut_at_every_call(tmp_path: Path, survival: str) -> None:
    keep, keep_names = survivors(survival, random.Random(7))
    # Each survival takes a fourth of the calls, together all; `make crash` takes all with each.
    step = 1 if CUTS > CUTS_USUAL else len(SURVIVALS)
    call = 1 if CUTS > CUTS_USUAL else 1 + SURVIVALS.index(survival)
    outcomes: list[Outcome] = []
    while (outcome := live_and_cut(tmp_path / str(call), call, keep, keep_names)) is not None:
        outcomes.append(outcome)
        call += step
    assert call > 100
    # The cuts took something: a disk that keeps what nobody synced would show nothing here.
    lost = [outcome for outcome in outcomes if outcome.survived < outcome.appended - 1]
    if survival == "everything":
        assert lost == []
    elif survival != "a part":
        assert any(outcome.survived == outcome.durable for outcome in lost)


APPENDS = 12


PRODUCED = {"flush.messages": "1", "segment.bytes": "600", "index.interval.bytes": "100"}


async def _produce_and_cut(
    world: World, settings: dict[str, str], call: int, survival: str, chance: random.Random
) -> int | None:
    """Append through the partitions like producers, and cut the power after `call` calls.

    Return how many appends were acknowledged, None if the script ended before the cut.
    """
    answered = 0
    world.dynamic.set_topic("t", settings)
    world.files.cut_at = world.files.call_count + call
    try:
        world.create("t")
        for number in range(APPENDS):
            claim = world.append(b"%d" % number * 20)
            world.manager.commit()
            assert world.manager.appends.flushing is not None
            assert world.manager.appends.flushing.future.done()
            world.manager.appends.flushing = None
            assert claim.error_code == 0
            answered += 1
    except PowerCut:
        world.files.power_cut(*survivors(survival, chance))
        return answered
    finally:
        world.files.cut_at = -1
        abandon(world.logs)
        world.files.forget_pins()
    return None


@pytest.mark.parametrize("preallocate", ["false", "true"])
@pytest.mark.parametrize("survival", ["nothing", "a part", "names"])
async def test_with_flush_messages_of_one_no_answer_is_broken(
    tmp_path: Path, survival: str, preallocate: str
) -> None:
    chance = random.Random(11)
    settings = {**PRODUCED, "preallocate": preallocate}
    topic = topic_config(settings, DEFAULTS)
    call, calls = 0, set()
    while True:
        call += 1
        directory = tmp_path / str(call)
        directory.mkdir()
        world = World(directory)
        answered = await _produce_and_cut(world, settings, call, survival, chance)
        if answered is None:
            break
        calls.add(answered)
        manager = LogManager(
            [directory.path for directory in world.logs.directories],
            clock=ManualClock(),
            config_of=lambda _: topic,
        )
        manager.open()
        manager.load()
        log = manager.create_log("t", 0, world.image.topics["t"].topic_id, topic)
        values = [record.value for record in records_of(log)]
        assert values == [b"%d" % number * 20 for number in range(len(values))]
        assert answered <= len(values) <= answered + 1
        abandon(manager)
    assert calls == set(range(APPENDS))
