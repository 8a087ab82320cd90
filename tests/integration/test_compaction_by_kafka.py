"""Apache Kafka 3.9.1's cleaner and ours over the same logs, at the same time: the results are
equal.

The generated logs have all formats and codecs, tombstones, keyless records, idempotent producers,
transactions, and several rounds. For every round Kafka gets a copy of the directory from before it.
One JVM does all of them (`LogCleaning`, tests/support/java).
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from minibroker.broker.storage import names
from minibroker.broker.storage.record_checks import AppendRules
from minibroker.kafka.records.batch import HEADER_FIELDS, iterate_headers, read_header
from minibroker.kafka.records.compression import CODEC_NAMES, NONE
from minibroker.kafka.records.conversion import read_records
from tests.support import java
from tests.support.check import broken_things
from tests.support.compaction import DAY_MS, compact, end_transaction, facts_of, put
from tests.support.logs import (
    NOW_MS,
    TOPIC_ID,
    ManualClock,
    config,
    flush,
    open_manager,
    records_of,
)

if TYPE_CHECKING:
    from minibroker.broker.config.topic import TopicConfig
    from minibroker.broker.storage.partition_log import PartitionLog

pytestmark = pytest.mark.java

LOG_COUNT = 24
ROUNDS = 3
SEGMENT_BYTES = 4000
RETENTION_MS = 3 * DAY_MS // 2
IDEMPOTENT, TRANSACTIONAL = 5, 6
SETTINGS = {
    "cleanup.policy": "compact",
    "segment.bytes": str(SEGMENT_BYTES),
    "index.interval.bytes": "300",
    "delete.retention.ms": str(RETENTION_MS),
}
FORMATS = ("2.8", "2.8", "2.8", "0.10.2", "0.9.0")


class Author:
    """Writes one log from a seed."""

    def __init__(self, log: PartitionLog, chance: random.Random) -> None:
        self.log = log
        self.chance = chance
        self.sequence = {IDEMPOTENT: 0, TRANSACTIONAL: 0}
        self.is_open = False
        self.now_ms = NOW_MS

    def write(self, count: int) -> None:
        """Write batches, of which some begin a segment, and a last one that stays."""
        for _ in range(count):
            self.now_ms += self.chance.randrange(1000)
            if self.chance.random() < 0.05 and not self.is_open:
                self._change_format()
            if self.chance.random() < 0.1:
                self.log.roll()
            self._put()
        if self.is_open:
            self._end()
        put(self.log, (b"end", b"v"), timestamp_ms=self.now_ms)

    def _change_format(self) -> None:
        kind = self.chance.choice(("CreateTime", "CreateTime", "LogAppendTime"))
        settings = topic(self.chance.choice(FORMATS), kind)
        self.log.update_config(settings, AppendRules(settings))

    def _put(self) -> None:
        magic = self.log.config.message_magic
        codec = self.chance.choice(CODEC_NAMES if magic == 2 else CODEC_NAMES[:4])
        pairs = [self._pair() for _ in range(self.chance.choice((1, 1, 2, 3, 12)))]
        kind = self.chance.random() if magic == 2 else 0.0
        common = {"codec": codec, "timestamp_ms": self.now_ms}
        if kind < 0.5:
            put(self.log, *pairs, **common)
        elif kind < 0.75:
            sequence = self._count(IDEMPOTENT, len(pairs))
            put(self.log, *pairs, producer_id=IDEMPOTENT, sequence=sequence, **common)
        else:
            sequence = self._count(TRANSACTIONAL, len(pairs))
            put(
                self.log,
                *pairs,
                producer_id=TRANSACTIONAL,
                sequence=sequence,
                is_transactional=True,
                **common,
            )
            self.is_open = True
            if self.chance.random() < 0.5:
                self._end()

    def _count(self, producer_id: int, count: int) -> int:
        first = self.sequence[producer_id]
        self.sequence[producer_id] += count
        return first

    def _end(self) -> None:
        is_commit = self.chance.random() < 0.5
        end_transaction(self.log, TRANSACTIONAL, is_commit=is_commit, timestamp_ms=self.now_ms)
        self.is_open = False

    def _pair(self) -> tuple[bytes | None, bytes | None]:
        number = self.chance.randrange(25)
        key = b"key-%d" % number * self.chance.choice((1, 1, 10))
        chance = self.chance.random()
        if chance < 0.05:
            return None, b"without a key"
        if chance < 0.2:
            return key, None
        return key, b"value " * self.chance.choice((1, 5, 30))


def topic(
    format_version: str = "2.8", timestamp_type: str = "CreateTime", policy: str = "delete"
) -> TopicConfig:
    values = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
    values |= {"cleanup_policy": policy, "message_format_version": format_version}
    return config(**values, message_timestamp_type=timestamp_type)


def compact_once(log: PartitionLog, now_ms: int = NOW_MS) -> None:
    """Run a round while the policy is `compact`. Keyless records are refused in such a topic: they
    came while the policy was another one, and more of them may come.
    """
    settings, compacted = log.config, topic(policy="compact")
    log.update_config(compacted, AppendRules(compacted))
    compact(log, now_ms)
    log.update_config(settings, AppendRules(settings))


class Compacted(NamedTuple):
    """One round: Kafka's input, and our result for the same."""

    directory: Path
    command: str
    ours: dict[str, bytes]
    end_offset: int


def contents(directory: Path) -> dict[str, bytes]:
    """Return logs and transaction indexes in service."""
    return {
        path.name: path.read_bytes()
        for path in directory.iterdir()
        if path.name.endswith((names.LOG, names.TXN_INDEX)) and path.stat().st_size
    }


def live(path: Path, seed: int) -> list[Compacted]:
    """Write and compact one log, round by round."""
    chance = random.Random(seed)
    manager = open_manager(str(path / f"ours-{seed}"), topic=topic(), clock=ManualClock())
    log = manager.create_log("t", 0, TOPIC_ID, topic())
    author = Author(log, chance)
    rounds = []
    for number in range(ROUNDS):
        author.write(chance.randrange(10, 60))
        log.roll()
        flush(log)
        copy = path / f"kafka-{seed}-{number}" / "t-0"
        shutil.copytree(log.directory, copy)
        now_ms = NOW_MS + number * DAY_MS
        first_dirty = facts_of(log).checkpoint or 0
        settings = "\t".join(f"{key}={value}" for key, value in SETTINGS.items())
        compact_once(log, now_ms)
        assert log.clean_offset is not None
        rounds.append(
            Compacted(
                copy,
                f"clean\t{copy}\t{now_ms}\t{first_dirty}\t{settings}",
                contents(Path(log.directory)),
                log.clean_offset,
            )
        )
        author.now_ms = now_ms
    manager.close()
    return rounds


def ask_kafka(path: Path, commands: list[str]) -> list[list[int]]:
    """Return Kafka's answers: the end of the round, the log's end, base offsets."""
    (path / "commands").write_text("\n".join(commands) + "\n")
    text = java.run_java(
        java.KAFKA_39,
        "LogCleaning",
        str(path / "commands"),
        classes=java.compiled("LogCleaning", java.KAFKA_39),
        with_errors=False,
    )
    return [[int(word) for word in line.split()] for line in text.splitlines()]


def described(content: bytes) -> list[object]:
    """Return batches, record by record; compressed bytes are not compared, since codecs differ."""
    entries: list[object] = []
    for position, header in iterate_headers(content):
        whole = content[position : position + header.size_bytes]
        if header.codec == NONE:
            entries.append(whole)
            continue
        fields = {
            name: getattr(header, name)
            for name in HEADER_FIELDS
            if name not in ("crc", "size_bytes")
        }
        entries.append((fields, read_records(whole, 0, read_header(whole))))
    return entries


def test_the_same_is_left(tmp_path: Path) -> None:
    rounds = [turn for seed in range(LOG_COUNT) for turn in live(tmp_path, seed)]
    answers = ask_kafka(tmp_path, [turn.command for turn in rounds])
    assert len(answers) == len(rounds) == LOG_COUNT * ROUNDS
    for turn, (end_offset, *_) in zip(rounds, answers, strict=True):
        assert end_offset == turn.end_offset, turn.command
        kafkas = contents(turn.directory)
        assert sorted(kafkas) == sorted(turn.ours), turn.command
        for name, content in turn.ours.items():
            if name.endswith(names.TXN_INDEX):
                assert content == kafkas[name], f"{turn.command}: {name}"
            else:
                assert described(content) == described(kafkas[name]), f"{turn.command}: {name}"
    assert sum(len(turn.ours) for turn in rounds) > 2 * len(rounds)


def test_the_directories_are_sound(tmp_path: Path) -> None:
    """check-log finds no damage, and Kafka's loader finds the same segments."""
    for seed in range(6):
        live(tmp_path, 100 + seed)
    directories = sorted(tmp_path.glob("ours-*"))
    for path in directories:
        assert broken_things(path) == []
    answers = ask_kafka(tmp_path, [f"load\t{path / 't-0'}" for path in directories])
    for path, (_, end_offset, *bases) in zip(directories, answers, strict=True):
        manager = open_manager(str(path), topic=topic(), clock=ManualClock())
        log = manager.create_log("t", 0, TOPIC_ID, topic())
        assert log.log_end_offset == end_offset
        assert log.segments.base_offsets == bases
        manager.close()


class Leftover(NamedTuple):
    """Files of a crash, and the segments that were renamed already."""

    cleaned: tuple[str, ...] = ()
    swap: tuple[str, ...] = ()
    deleted: tuple[int, ...] = ()


ALL = (names.LOG, names.OFFSET_INDEX, names.TIME_INDEX)
STEPS = {
    "writing": Leftover(cleaned=(names.LOG,)),
    "written": Leftover(cleaned=ALL),
    "one renamed": Leftover(cleaned=ALL[1:], swap=ALL[:1]),
    "two renamed": Leftover(cleaned=ALL[2:], swap=ALL[:2]),
    "to be swapped": Leftover(swap=ALL),
    "one old is gone": Leftover(swap=ALL, deleted=(0,)),
    "all old are gone": Leftover(swap=ALL, deleted=(0, 1, 2)),
    "log in service": Leftover(swap=ALL[1:], deleted=(0, 1, 2)),
}


class Crashed(NamedTuple):
    """The directory after a crash at one step, and Kafka's recovery of a copy of it."""

    directory: Path
    kafkas: Path
    answer: list[int]


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Crashed]:
    """Return step → the directory of a crash while three segments become one."""
    path = tmp_path_factory.mktemp("leftovers")
    manager = open_manager(str(path / "data"), topic=topic(), clock=ManualClock())
    log = manager.create_log("t", 0, TOPIC_ID, topic())
    for number in range(12):
        put(log, (b"a", b"%d" % number), (b"k%d" % number, b"v"))
        if number % 4 == 3:
            log.roll()
    put(log, (b"a", b"last"))
    flush(log)
    old_log = path / "before"
    shutil.copytree(log.directory, old_log)
    compact_once(log)
    manager.close()
    directories: dict[str, tuple[Path, Path]] = {}
    for name, step in STEPS.items():
        directories[name] = path / "ours" / name / "t-0", path / "kafkas" / name / "t-0"
        for directory in directories[name]:
            leave(step, old_log, Path(log.directory), directory)
    answers = ask_kafka(path, [f"load\t{kafkas}" for _, kafkas in directories.values()])
    return {
        name: Crashed(*both, answer)
        for (name, both), answer in zip(directories.items(), answers, strict=True)
    }


def leave(step: Leftover, old_log: Path, new_log: Path, target: Path) -> None:
    """Restore the directory as it was at that step."""
    shutil.copytree(old_log, target)
    bases = sorted(names.base_offset_of(path.name) or 0 for path in old_log.glob("*.log"))
    first = f"{0:020d}"
    for place in step.deleted:
        for old in target.glob(f"{bases[place]:020d}.*"):
            if old.suffix in ALL:
                old.rename(f"{old}{names.DELETED}")
    for suffix in ALL:
        if suffix in step.cleaned:
            shutil.copy(new_log / (first + suffix), target / (first + suffix + names.CLEANED))
        elif suffix in step.swap:
            shutil.copy(new_log / (first + suffix), target / (first + suffix + names.SWAP))
        elif step.swap and not step.cleaned:
            shutil.copy(new_log / (first + suffix), target / (first + suffix))


@pytest.mark.parametrize("name", STEPS)
def test_a_crash_of_kafkas_cleaner_is_recovered_as_kafka_does(
    name: str, crashed: dict[str, Crashed]
) -> None:
    crash = crashed[name]
    _, end_offset, *bases = crash.answer
    manager = open_manager(str(crash.directory.parent), topic=topic(), clock=ManualClock())
    log = manager.create_log("t", 0, TOPIC_ID, topic())
    assert log.log_end_offset == end_offset == 25
    assert log.segments.base_offsets == bases
    assert contents(crash.directory) == contents(crash.kafkas)
    assert records_of(log)[-1].value == b"last"
    suffixes = {path.suffix for path in crash.directory.iterdir()}
    assert not suffixes & {names.CLEANED, names.SWAP, names.DELETED}
    manager.close()
