"""Logs for tests: a clock that stands still, topic configurations, batches, a log manager."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.topic import TopicConfig, broker_topic_values, topic_config
from minibroker.broker.storage import log_reads, names
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.epochs import LeaderEpochs
from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.log_manager import LogManager
from minibroker.broker.storage.partition_log import PartitionLog
from minibroker.broker.storage.validator import check
from minibroker.kafka.records.batch import iterate_headers
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.control import TransactionMarker, build_marker
from minibroker.kafka.records.record import Record, decode_records
from tests.support.faulty_files import FaultyFiles
from tests.support.runners import workers_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from minibroker.broker.storage.files import Files
    from minibroker.broker.storage.record_checks import AppendRules
    from minibroker.broker.storage.tail import AppendInfo
    from minibroker.kafka.ids import TopicId
    from minibroker.kafka.records.batch import BatchHeader

NOW_MS = 1_700_000_000_000
TOPIC_ID: TopicId = bytes(range(16))  # type: ignore[assignment]
NewLog = Callable[..., PartitionLog]
"""Makes a log of a topic; the keywords are its settings."""
DEFAULTS = TopicConfig(broker_topic_values(BrokerConfig()))


class ManualClock:
    """A clock that only the test moves."""

    def __init__(self, now_ms: int = NOW_MS) -> None:
        self.now = now_ms

    def now_ms(self) -> int:
        return self.now

    def monotonic_s(self) -> float:
        return self.now / 1000

    def on_move(self, listener: Callable[[float], None]) -> None:
        """Do nothing: no timer waits for this clock."""


def config(**overrides: object) -> TopicConfig:
    """Return the default configuration with some keys replaced: `config(segment_bytes=100)`."""
    settings = {name.replace("_", "."): str(value) for name, value in overrides.items()}
    return topic_config(settings, DEFAULTS)


def batch(
    *values: bytes,
    timestamp_ms: int = NOW_MS,
    timestamps: Sequence[int] | None = None,
    codec: str = "none",
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
) -> memoryview:
    """Return the bytes of one batch as a producer sends it, writable."""
    times = timestamps or [timestamp_ms] * len(values)
    records = [Record(0, time, None, value) for time, value in zip(times, values, strict=True)]
    return memoryview(
        build_batch(
            records,
            codec=codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=sequence,
        )
    )


def open_manager(
    *paths: str,
    clock: ManualClock | None = None,
    files: Files = REAL_FILES,
    topic: TopicConfig | None = None,
    run_later: Callable[[Callable[[], None]], object] | None = None,
) -> LogManager:
    """Return a log manager of the directories; every topic has the configuration `topic`."""
    disk = Disk(files) if run_later is None else Disk(files, workers_of(run_later))
    manager = LogManager(
        paths, clock=clock or ManualClock(), config_of=lambda _: topic or DEFAULTS, disk=disk
    )
    manager.open()
    manager.claim(0, "test-cluster-id-000000")
    manager.load()
    return manager


def sync(manager: LogManager, log: PartitionLog) -> None:
    """Sync and write checkpoints, like the worker and the loop some seconds after an append."""
    task = log.durability.sync_task()
    if task is None:
        return
    task()
    remove_superseded = task.apply()
    manager.checkpoint_now()
    if remove_superseded is not None:
        remove_superseded()


def flush(log: PartitionLog) -> None:
    """Make everything appended durable before this returns."""
    task = log.durability.flush_task()
    task()
    task.apply()


def abandon(manager: LogManager) -> None:
    """Leave the logs like kill -9: nothing is written; locks and handles are closed."""
    manager.disk.close()
    for directory in manager.directories:
        directory.release()


def wait_for_a_later_time(root: Path) -> None:
    """Return when a change of a file gets a later time than the marker of the clean stop has. The
    clock of a file system moves every few milliseconds.
    """
    probe = root.parent / f"{root.name}.probe"
    stopped_ns = (root / names.CLEAN_SHUTDOWN).stat().st_ctime_ns
    probe.touch()
    while probe.stat().st_ctime_ns <= stopped_ns:
        probe.touch()
    probe.unlink()


def marker_of(
    producer_id: int, *, is_commit: bool = True, epoch: int = 0, timestamp_ms: int = NOW_MS
) -> memoryview:
    """Return the batch that ends a transaction of a producer."""
    marker = TransactionMarker(is_commit, coordinator_epoch=0)
    return memoryview(
        build_marker(
            marker, producer_id=producer_id, producer_epoch=epoch, timestamp_ms=timestamp_ms
        )
    )


def append_records(
    log: PartitionLog,
    records: memoryview,
    leader_epoch: int,
    now_ms: int,
    *,
    origin: Literal["client", "coordinator"] = "client",
    is_bounded: bool = False,
    header: BatchHeader | None = None,
) -> AppendInfo:
    """Check one batch and stage it, as `Partition.append` does."""
    checked = log.check(records, now_ms, origin, is_bounded, header)
    return log.append_as_leader(checked, leader_epoch, origin)


def check_and_number(
    records: memoryview,
    rules: AppendRules,
    next_offset: int,
    leader_epoch: int,
    now_ms: int,
    *,
    origin: Literal["client", "coordinator"] = "client",
    is_bounded: bool = False,
    header: BatchHeader | None = None,
) -> tuple[memoryview, BatchHeader]:
    """Return what a log writes for `records` (writable), and its header."""
    checked = check(records, rules, now_ms, "topic-0", origin, is_bounded, header)
    checked.number(next_offset, leader_epoch)
    return checked.records, checked.header


def append(log: PartitionLog, *values: bytes, leader_epoch: int = 0, **fields: object) -> int:
    """Append and write one batch; return its first offset."""
    info = append_records(log, batch(*values, **fields), leader_epoch, NOW_MS)  # type: ignore[arg-type]
    log.write_staged()
    return info.first_offset


def records_of(
    log: PartitionLog, start: int | None = None, max_bytes: int = 1 << 20
) -> list[Record]:
    """Return every record from `start` (the log's start) to the end, read as a consumer does."""
    offset = log.log_start_offset if start is None else start
    all_records: list[Record] = []
    while offset < log.log_end_offset:
        fetched = log_reads.read(
            log, offset, max_bytes, end_offset=log.log_end_offset, min_one_batch=True
        )
        old_offset = offset
        for position, header in iterate_headers(fetched.records):
            records = decode_records(fetched.records[position:])
            all_records += [record for record in records if record.offset >= offset]
            offset = header.last_offset + 1
        if offset == old_offset:
            break
    return all_records


def values_of(log: PartitionLog, start: int | None = None) -> list[bytes | None]:
    return [record.value for record in records_of(log, start)]


def epochs_of(*entries: tuple[int, int]) -> LeaderEpochs:
    """Return the history of leaders with these (epoch, start offset)."""
    epochs = LeaderEpochs()
    for epoch, start in entries:
        epochs.assign(epoch, start)
    return epochs


def fill_segments(log: PartitionLog, count: int = 3) -> None:
    """Append `count` records, each in a segment of its own: b"0", b"1", …"""
    for number in range(count):
        append(log, b"%d" % number)
        log.roll()


def names_of(log: PartitionLog, *endings: str) -> list[str]:
    """Return the names of files in the log's directory with one of these endings."""
    names = (path.name for path in Path(log.directory).iterdir())
    return sorted(name for name in names if name.endswith(endings))


def log_on_faulty_files(root: Path) -> tuple[FaultyFiles, LogManager, PartitionLog]:
    """Return a new log in `root`, a directory whose calls can fail."""
    root.mkdir(exist_ok=True)
    files = FaultyFiles(str(root))
    manager = open_manager(str(root), files=files)
    return files, manager, manager.create_log("t", 0, TOPIC_ID, config())


def logs_on_faulty_files(
    parent: Path, steps: int, count: int
) -> Iterator[tuple[int, FaultyFiles, LogManager, PartitionLog]]:
    """Yield for each step, from 1 on, its number and a new log of `count` segments.

    Its directory stands alone, so that the call of this step can fail in it.
    """
    for step in range(1, steps):
        files, manager, log = log_on_faulty_files(parent / str(step))
        fill_segments(log, count)
        yield step, files, manager, log
