"""LogManager: directories, locks, identity, checkpoints, deletion, strays, clean stop and start."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from minibroker.broker.storage import log_reads
from minibroker.broker.storage.closing import closing_task
from minibroker.broker.storage.files import Files
from minibroker.broker.storage.indexes import TAIL_ENTRIES
from minibroker.broker.storage.log_directory import LogDirectory
from minibroker.broker.storage.log_manager import LogManager
from minibroker.broker.storage.partition_metadata import encode_metadata
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, StorageError
from minibroker.kafka.ids import ZERO_TOPIC_ID, TopicId, TopicPartition
from tests.support.evidence import MARKED
from tests.support.faulty_files import FaultyFiles
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
    values_of,
)

OTHER_ID = TopicId(bytes(15) + b"\1")
IDS = {"a": TOPIC_ID, "b": OTHER_ID}


@pytest.fixture
def twice(tmp_path: Path) -> Path:
    """Log directories `a` and `b` with a log of t-0 each; its record names the directory."""
    for name, topic_id in IDS.items():
        manager = open_manager(str(tmp_path / name))
        append(manager.create_log("t", 0, topic_id, DEFAULTS), name.encode())
        manager.close()
    return tmp_path


def open_both(path: Path) -> LogManager:
    return open_manager(str(path / "a"), str(path / "b"))


@pytest.mark.parametrize("name", IDS)
def test_the_log_of_the_topic_is_served_and_the_other_one_kept(twice: Path, name: str) -> None:
    manager = open_both(twice)
    log = manager.create_log("t", 0, IDS[name], DEFAULTS)
    assert values_of(log) == [name.encode()]
    append(log, b"more")
    manager.close()
    (stray,) = twice.glob("?/t-0.*-stray")
    assert stray.parent.name != name
    assert stray.parent.name.encode() in (stray / "00000000000000000000.log").read_bytes()
    manager = open_both(twice)
    assert values_of(manager.create_log("t", 0, IDS[name], DEFAULTS)) == [name.encode(), b"more"]
    manager.close()


def test_both_are_kept_where_a_third_topic_has_the_name(twice: Path) -> None:
    manager = open_both(twice)
    third = TopicId(bytes(15) + b"\3")
    assert values_of(manager.create_log("t", 0, third, DEFAULTS)) == []
    manager.close()
    assert len(list(twice.glob("?/t-0.*-stray"))) == 2


def test_without_an_id_of_the_topic_nothing_is_decided(twice: Path) -> None:
    manager = open_both(twice)
    manager.create_log("t", 0, ZERO_TOPIC_ID, DEFAULTS)
    assert list(twice.glob("?/t-0.*-stray")) == []
    assert values_of(manager.create_log("t", 0, OTHER_ID, DEFAULTS)) == [b"b"]
    manager.close()


@pytest.mark.parametrize("content", [None, b"damaged"])
def test_a_second_log_that_does_not_say_whose_it_is_is_refused(
    twice: Path, content: bytes | None
) -> None:
    for metadata in twice.glob("?/t-0/partition.metadata"):
        metadata.unlink()
        if content is not None:
            metadata.write_bytes(content)
    with pytest.raises(StorageError, match=r"t-0"):
        open_both(twice)


def test_a_start_that_decides_nothing_leaves_both(twice: Path) -> None:
    for _ in range(2):
        abandon(open_both(twice))
    assert len(list(twice.glob("?/t-0"))) == 2


ROOT = Path(__file__).resolve().parents[4]


def test_a_new_partition_has_kafka_s_files(tmp_path: Path) -> None:
    manager = open_manager(str(tmp_path))
    log = manager.create_log("payments", 3, TOPIC_ID, DEFAULTS)
    append(log, b"v", leader_epoch=4)
    manager.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".kafka_cleanshutdown",
        ".lock",
        "cleaner-offset-checkpoint",
        "log-start-offset-checkpoint",
        "meta.properties",
        "payments-3",
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
    ]
    directory = tmp_path / "payments-3"
    assert sorted(path.name for path in directory.iterdir()) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "00000000000000000001.snapshot",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
    assert (directory / "leader-epoch-checkpoint").read_text() == "0\n1\n4 0\n"
    text = (directory / "partition.metadata").read_text()
    assert text == "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert (tmp_path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":-1}'
    for name in ("recovery-point", "replication"):
        checkpoint = (tmp_path / f"{name}-offset-checkpoint").read_text()
        assert checkpoint == "0\n1\npayments 3 1\n"
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n0\n"


def test_an_empty_partition_is_a_directory_that_knows_its_topic(tmp_path: Path) -> None:
    """Until the first record, over a stop and a start: a thousand of them cost next to nothing."""
    for round_number in range(2):
        manager = open_manager(str(tmp_path))
        log = manager.create_log("t", 0, TOPIC_ID, DEFAULTS)
        log.begin_leader_epoch(4 + round_number)
        assert log.epochs.history.entries == [(4 + round_number, 0)]
        manager.close()
        assert [path.name for path in (tmp_path / "t-0").iterdir()] == ["partition.metadata"]
    manager = open_manager(str(tmp_path))
    log = manager.create_log("t", 0, TOPIC_ID, DEFAULTS)
    log.begin_leader_epoch(6)
    append(log, b"v", leader_epoch=6)
    assert sorted(path.name for path in (tmp_path / "t-0").iterdir()) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
    assert (tmp_path / "t-0/leader-epoch-checkpoint").read_text() == "0\n1\n6 0\n"
    manager.close()


def test_the_stop_of_a_log_without_records_syncs_nothing_and_loses_no_later_one(
    tmp_path: Path,
) -> None:
    files = FaultyFiles(str(tmp_path))
    manager = open_manager(str(tmp_path), files=files)
    log = manager.create_log("t", 0, TOPIC_ID, DEFAULTS)
    log.begin_leader_epoch(0)
    calls = files.call_count
    assert closing_task(log) is None
    assert files.call_count == calls
    manager.close()
    manager = open_manager(str(tmp_path), files=files)
    log = manager.create_log("t", 0, TOPIC_ID, DEFAULTS)
    append(log, b"v")
    flush(log)
    abandon(manager)
    files.power_cut()
    files.forget_pins()
    manager = open_manager(str(tmp_path))
    assert values_of(manager.logs[TopicPartition("t", 0)]) == [b"v"]
    manager.close()


def test_the_marker_is_gone_while_the_directory_is_served(tmp_path: Path) -> None:
    open_manager(str(tmp_path)).close()
    manager = open_manager(str(tmp_path))
    assert manager.was_clean
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    abandon(manager)
    manager = open_manager(str(tmp_path))
    assert not manager.was_clean
    manager.close()


def test_partitions_go_to_the_directory_with_the_fewest(tmp_path: Path) -> None:
    manager = open_manager(str(tmp_path / "a"), str(tmp_path / "b"))
    for partition in range(6):
        manager.create_log("t", partition, TOPIC_ID, DEFAULTS)
    assert len(list((tmp_path / "a").glob("t-*"))) == 3
    assert len(list((tmp_path / "b").glob("t-*"))) == 3
    for log in manager.logs.values():
        append(log, b"v")
    manager.close()
    manager = open_manager(str(tmp_path / "a"), str(tmp_path / "b"))
    assert [len(values_of(log)) for log in manager.logs.values()] == [1] * 6
    manager.close()


def test_one_partition_in_two_directories_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        manager = open_manager(str(tmp_path / name))
        manager.create_log("t", 0, TOPIC_ID, DEFAULTS)
        manager.close()
    with pytest.raises(StorageError, match="t-0 is in two places"):
        open_manager(str(tmp_path / "a"), str(tmp_path / "b"))


def test_a_directory_in_use_is_refused_within_and_across_processes(tmp_path: Path) -> None:
    manager = open_manager(str(tmp_path))
    with pytest.raises(StorageError, match="in use by another process"):
        open_manager(str(tmp_path))
    code = (
        "import sys; from tests.support.logs import open_manager; "
        "from minibroker.kafka.errors import StorageError\n"
        "try: open_manager(sys.argv[1])\n"
        "except StorageError as error: print(error)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]

    def other() -> str:
        return subprocess.run(
            command, capture_output=True, text=True, check=True, cwd=ROOT
        ).stdout.strip()

    assert "is in use by another process" in other()
    manager.close()
    assert other() == ""


def test_a_file_in_the_place_of_the_directory_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="is not a directory"):
        open_manager(str(tmp_path / "file"))


def test_a_directory_that_cannot_be_used_is_offline_and_the_others_are_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    manager = open_manager(str(tmp_path / "file"), str(tmp_path / "good"))
    assert [directory.is_offline for directory in manager.directories] == [True, False]
    assert "file is not a directory: it is offline" in caplog.text
    for partition in range(2):
        manager.create_log("t", partition, TOPIC_ID, DEFAULTS)
    assert {log.log_directory for log in manager.logs.values()} == {str(tmp_path / "good")}
    manager.close()
    assert (tmp_path / "good" / ".kafka_cleanshutdown").exists()


def test_a_directory_in_use_is_refused_though_there_are_others(tmp_path: Path) -> None:
    first = open_manager(str(tmp_path / "a"))
    with pytest.raises(StorageError, match="in use by another process"):
        open_manager(str(tmp_path / "b"), str(tmp_path / "a"))
    open_manager(str(tmp_path / "b")).close()  # its lock was given back
    first.close()


def test_without_any_usable_directory_there_is_no_start(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("")
    with pytest.raises(StorageError, match="b is not a directory"):
        open_manager(str(tmp_path / "a"), str(tmp_path / "b"))


def test_a_directory_fails_whole_though_its_files_close_badly(tmp_path: Path) -> None:
    """Every log of it is out of service, and its lock is given back."""

    class ClosingBadlyFiles(Files):
        def close(self, fd: int) -> None:  # type: ignore[override]
            os.close(fd)
            if is_dead:
                raise OSError(errno.EIO, "Input/output error")

    is_dead = False
    manager = open_manager(str(tmp_path / "a"), str(tmp_path / "b"), files=ClosingBadlyFiles())
    logs = [manager.create_log("t", index, TOPIC_ID, DEFAULTS) for index in range(4)]
    for log in logs:
        append(log, b"v")
    is_dead = True
    lost = manager.fail_directory(str(tmp_path / "a"))
    assert lost is not None
    assert len(lost) == 2
    assert sorted(manager.logs) == sorted(log.name for log in logs if log.name not in lost)
    assert [log.place.is_deleted for log in logs] == [log.name in lost for log in logs]
    is_dead = False
    manager.close()
    again = open_manager(str(tmp_path / "a"), str(tmp_path / "b"))
    assert len(again.logs) == 4
    again.close()


def test_a_directory_that_cannot_be_read_while_loading_is_offline(tmp_path: Path) -> None:
    manager = open_manager(str(tmp_path / "a"), str(tmp_path / "b"))
    for partition in range(4):
        append(manager.create_log("t", partition, TOPIC_ID, DEFAULTS), b"v")
    manager.close()
    checkpoint = tmp_path / "b" / "recovery-point-offset-checkpoint"
    checkpoint.unlink()
    checkpoint.mkdir()  # in the place of the file: the system refuses to read it
    manager = open_manager(str(tmp_path / "a"), str(tmp_path / "b"))
    assert [directory.is_offline for directory in manager.directories] == [False, True]
    assert len(manager.logs) == 2
    assert all(log.log_directory.endswith("a") for log in manager.logs.values())
    manager.close()


def test_a_failed_directory_loses_its_logs_and_is_touched_no_more(tmp_path: Path) -> None:
    manager = open_manager(str(tmp_path / "a"), str(tmp_path / "b"))
    for partition in range(4):
        append(manager.create_log("t", partition, TOPIC_ID, DEFAULTS), b"v")
    manager.checkpoint_now()
    old_text = (tmp_path / "a" / "recovery-point-offset-checkpoint").read_text()
    lost = manager.fail_directory(str(tmp_path / "a"))
    assert lost is not None
    assert len(lost) == 2
    assert manager.fail_directory(str(tmp_path / "a")) is None
    assert sorted(lost + list(manager.logs)) == [TopicPartition("t", n) for n in range(4)]
    manager.close()
    assert (tmp_path / "a" / "recovery-point-offset-checkpoint").read_text() == old_text
    assert not (tmp_path / "a" / ".kafka_cleanshutdown").exists()
    manager = open_manager(str(tmp_path / "a"), str(tmp_path / "b"))
    assert [values_of(log) for log in manager.logs.values()] == [[b"v"]] * 4
    manager.close()


def test_without_a_log_directory_there_is_no_new_log(tmp_path: Path) -> None:
    """The broker is about to end. Until then it answers KAFKA_STORAGE_ERROR."""
    manager = open_manager(str(tmp_path / "a"), str(tmp_path / "b"))
    for name in ("a", "b"):
        manager.fail_directory(str(tmp_path / name))
    with pytest.raises(
        StorageError, match=r"no log directory for t-0: all of log\.dirs have failed"
    ):
        manager.create_log("t", 0, TOPIC_ID, DEFAULTS)
    manager.close()


@pytest.mark.parametrize(
    ("broker_id", "cluster_id", "sentence"),
    [(1, "c", r"belongs to broker\.id 0"), (0, "other", "belongs to cluster c, but")],
)
def test_a_directory_of_another_broker_is_refused(
    tmp_path: Path, broker_id: int, cluster_id: str, sentence: str
) -> None:
    first = LogManager([str(tmp_path)], clock=ManualClock(), config_of=lambda _: DEFAULTS)
    first.open()
    assert first.cluster_id is None
    first.claim(0, "c")
    first.close()
    second = LogManager([str(tmp_path)], clock=ManualClock(), config_of=lambda _: DEFAULTS)
    second.open()
    with pytest.raises(StorageError, match=sentence):
        second.claim(broker_id, cluster_id)
    abandon(second)


def test_a_log_of_another_topic_makes_room_and_is_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manager = open_manager(str(tmp_path))
    append(manager.create_log("t", 0, TOPIC_ID, DEFAULTS), b"old")
    manager.close()
    manager = open_manager(str(tmp_path))
    log = manager.create_log("t", 0, OTHER_ID, DEFAULTS)
    assert (log.place.topic_id, values_of(log)) == (OTHER_ID, [])
    (stray,) = tmp_path.glob("t-0.*-stray")
    assert str(stray) in caplog.text
    append(log, b"new")
    manager.close()
    manager = open_manager(str(tmp_path))
    assert values_of(manager.create_log("t", 0, OTHER_ID, DEFAULTS)) == [b"new"]
    assert b"old" in (stray / "00000000000000000000.log").read_bytes()
    manager.close()


def test_a_directory_that_is_put_there_later_is_not_taken_for_another_topic_s(
    tmp_path: Path,
) -> None:
    manager = open_manager(str(tmp_path))
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0/partition.metadata").write_bytes(encode_metadata(TOPIC_ID))
    with pytest.raises(KafkaError) as caught:
        manager.create_log("t", 0, OTHER_ID, DEFAULTS)
    assert caught.value.code is ErrorCode.INCONSISTENT_TOPIC_ID
    manager.close()


def test_a_directory_without_an_id_belongs_to_the_topic_of_its_name(tmp_path: Path) -> None:
    """Kafka before 2.8 left directories like this."""
    manager = open_manager(str(tmp_path))
    append(manager.create_log("t", 0, TOPIC_ID, DEFAULTS), b"old")
    manager.close()
    (tmp_path / "t-0/partition.metadata").unlink()
    manager = open_manager(str(tmp_path))
    log = manager.create_log("t", 0, OTHER_ID, DEFAULTS)
    assert (log.place.topic_id, values_of(log)) == (OTHER_ID, [b"old"])
    manager.close()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_deletion_that_the_disk_refuses_takes_its_directory_offline(
    tmp_path: Path, code: int
) -> None:
    """As in Kafka, a full disk counts like a broken one here: the log is not served any more."""
    files = FaultyFiles(str(tmp_path))
    manager = open_manager(str(tmp_path), files=files)
    manager.create_log("t", 0, TOPIC_ID, DEFAULTS)
    files.fail_at, files.fail_errno = files.call_count + 1, code
    with pytest.raises(StorageError, match="cannot delete t-0") as caught:
        manager.delete("t", 0, MARKED)
    assert caught.value.is_lasting
    assert caught.value.log_directory == str(tmp_path)
    assert manager.fail_directory(str(tmp_path)) == [("t", 0)]
    files.forget_pins()


def test_a_deleted_partition_is_renamed_at_once_and_removed_by_the_task(tmp_path: Path) -> None:
    manager = open_manager(str(tmp_path))
    log = manager.create_log("t", 0, TOPIC_ID, DEFAULTS)
    append(log, b"v" * 200_000)
    fetched = log_reads.read(log, 0, 10**6, end_offset=1, min_one_batch=True)
    task = manager.delete("t", 0, MARKED)
    assert task is not None
    assert manager.get("t", 0) is None
    assert not (tmp_path / "t-0").exists()
    marked = next(tmp_path.glob("t-0.*-delete"))
    assert len(marked.name) == len("t-0.-delete") + 32
    task()
    assert not marked.exists()
    assert bytes(fetched.records[-100:-1]) == b"v" * 99
    assert manager.delete("t", 0, MARKED) is None
    manager.create_log("t", 0, TopicId(bytes(range(1, 17))), DEFAULTS)
    manager.close()


def test_a_deletion_that_a_crash_interrupted_goes_on(tmp_path: Path) -> None:
    manager = open_manager(str(tmp_path))
    append(manager.create_log("t", 0, TOPIC_ID, DEFAULTS), b"v")
    assert manager.delete("t", 0, MARKED) is not None
    abandon(manager)
    manager = open_manager(str(tmp_path))
    assert list(tmp_path.glob("*-delete")) == []
    assert manager.logs == {}
    manager.close()


def test_strange_directories_are_kept_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    strange = ["lost+found", f"t-0.{'a' * 32}-stray", "nodash"]
    for name in strange:
        (tmp_path / name).mkdir()
    manager = open_manager(str(tmp_path))
    assert sorted(Path(path).name for path in manager.strays) == sorted(strange)
    assert all(name in caplog.text for name in strange)
    manager.close()
    assert all((tmp_path / name).is_dir() for name in strange)


def test_the_high_watermark_of_a_log_that_no_partition_has_yet_is_kept(tmp_path: Path) -> None:
    """A broker can stop before it knows the role of a replica: more may not count as committed."""
    manager = open_manager(str(tmp_path))
    append(manager.create_log("t", 0, TOPIC_ID, DEFAULTS), b"a", b"b", b"c")
    manager.report_high_watermarks({TopicPartition("t", 0): 2}.get)
    manager.close()
    manager = open_manager(str(tmp_path))
    manager.report_high_watermarks(lambda _: None)
    manager.close()
    manager = open_manager(str(tmp_path))
    assert manager.logs[TopicPartition("t", 0)].high_watermark == 2
    manager.close()


def test_nothing_blocking_is_done_by_the_caller_of_create_append_and_delete(tmp_path: Path) -> None:
    """Files of a new partition, fsync and removal are left to `run_later`."""
    tasks: list[Callable[[], None]] = []
    manager = open_manager(str(tmp_path), run_later=tasks.append)
    log = manager.create_log("t", 0, TOPIC_ID, DEFAULTS)
    assert list((tmp_path / "t-0").iterdir()) == []
    append(log, b"v")
    assert [path.suffix for path in (tmp_path / "t-0").iterdir()] == [".log"]
    while tasks:
        tasks.pop(0)()
    assert len(list((tmp_path / "t-0").iterdir())) == 5
    manager.close()


def test_a_thousand_idle_logs_are_small_and_hold_no_handle(tmp_path: Path) -> None:
    """Less than 4 KB each, measured; and the number of open files does not grow."""
    import gc  # noqa: PLC0415
    import tracemalloc  # noqa: PLC0415

    manager = open_manager(str(tmp_path), run_later=lambda _: None)
    for partition in range(300):
        manager.create_log("t", partition, TOPIC_ID, DEFAULTS)
    manager.close()
    gc.collect()
    tracemalloc.start()
    manager = open_manager(str(tmp_path))
    gc.collect()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used / 300 < 4096
    assert len(manager.disk.handles) == 0
    manager.close()


def test_a_log_that_is_only_appended_to_keeps_one_file_open(tmp_path: Path) -> None:
    """A thousand busy partitions are to need a thousand handles, and to open nothing anew."""
    topic = config(index_interval_bytes=0)
    manager = open_manager(str(tmp_path), topic=topic)
    log = manager.create_log("t", 0, TOPIC_ID, topic)
    for number in range(2 * TAIL_ENTRIES):
        append(log, b"v", timestamp_ms=NOW_MS + number)
    flush(log)
    assert (tmp_path / "t-0" / f"{0:020d}.index").stat().st_size > TAIL_ENTRIES
    assert (tmp_path / "t-0" / f"{0:020d}.timeindex").stat().st_size > TAIL_ENTRIES
    assert len(manager.disk.handles) == 1
    manager.close()


def test_handles_are_bounded(tmp_path: Path) -> None:
    manager = open_manager(str(tmp_path))
    manager.disk.handles.limit = 5
    for turn in range(3):
        for partition in range(12):
            append(manager.create_log("t", partition, TOPIC_ID, DEFAULTS), b"%d" % turn)
            assert len(manager.disk.handles) <= 5
    assert all(values_of(log) == [b"0", b"1", b"2"] for log in manager.logs.values())
    manager.close()


def test_a_partition_that_is_made_again_is_not_taken_for_its_namesake(tmp_path: Path) -> None:
    """kill -9 before the next checkpoint: the old one's start offset would empty the new one."""
    manager = open_manager(str(tmp_path))
    log = manager.create_log("t", 0, TOPIC_ID, DEFAULTS)
    for _ in range(9):
        append(log, b"old")
    log.advance_log_start(7)
    flush(log)
    manager.checkpoint_now()
    task = manager.delete("t", 0, MARKED)
    assert task is not None
    task()
    again = manager.create_log("t", 0, TOPIC_ID, DEFAULTS)
    append(again, b"new")
    abandon(manager)
    manager = open_manager(str(tmp_path))
    (reopened,) = manager.logs.values()
    assert values_of(reopened) == [b"new"]
    assert (reopened.log_start_offset, reopened.recovery_point) == (0, 0)
    manager.close()


def test_a_namesake_of_an_earlier_run_is_forgotten_too(tmp_path: Path) -> None:
    """The checkpoints are older than the deletion, and nothing was written since."""
    manager = open_manager(str(tmp_path))
    log = manager.create_log("t", 0, TOPIC_ID, DEFAULTS)
    for _ in range(9):
        append(log, b"old")
    log.advance_log_start(7)
    manager.checkpoint_now()
    task = manager.delete("t", 0, MARKED)
    assert task is not None
    task()
    abandon(manager)
    manager = open_manager(str(tmp_path))
    append(manager.create_log("t", 0, TOPIC_ID, DEFAULTS), b"new")
    abandon(manager)
    manager = open_manager(str(tmp_path))
    (reopened,) = manager.logs.values()
    assert values_of(reopened) == [b"new"]
    manager.close()


def test_a_namesake_is_not_taken_for_it_before_the_worker_has_written(tmp_path: Path) -> None:
    """The loop waits for no checkpoint: a mark in the new directory stands for it until then."""
    manager = open_manager(str(tmp_path))
    for partition in range(2):
        log = manager.create_log("t", partition, TOPIC_ID, DEFAULTS)
        for _ in range(9):
            append(log, b"old")
        log.advance_log_start(7)
        flush(log)
    manager.checkpoint_now()
    manager.delete("t", 0, MARKED)
    abandon(manager)
    tasks: list[Callable[[], None]] = []
    manager = open_manager(str(tmp_path), run_later=tasks.append)
    append(manager.create_log("t", 0, TOPIC_ID, DEFAULTS), b"new")
    abandon(manager)
    manager = open_manager(str(tmp_path))
    assert values_of(manager.logs[TopicPartition("t", 0)]) == [b"new"]
    assert manager.logs[TopicPartition("t", 1)].log_start_offset == 7
    assert not (tmp_path / "t-0" / "made-anew").exists()
    abandon(manager)
    manager = open_manager(str(tmp_path))
    assert values_of(manager.logs[TopicPartition("t", 0)]) == [b"new"]
    manager.close()


def test_a_log_that_is_made_anew_again_keeps_its_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker has written the checkpoints with the log before, and is about to unmark that."""
    tasks: list[Callable[[], None]] = []
    manager = open_manager(str(tmp_path), run_later=tasks.append)
    manager.create_log("t", 0, TOPIC_ID, DEFAULTS)
    manager.delete("t", 0, MARKED)
    log = manager.create_log("t", 0, TOPIC_ID, DEFAULTS)
    for _ in range(9):
        append(log, b"old")
    log.advance_log_start(7)
    flush(log)
    checkpoint = manager._checkpoint

    def checkpoint_then_another_log(directories: Sequence[LogDirectory]) -> None:
        checkpoint(directories)
        monkeypatch.undo()
        manager.delete("t", 0, MARKED)
        append(manager.create_log("t", 0, TOPIC_ID, DEFAULTS), b"new")

    monkeypatch.setattr(manager, "_checkpoint", checkpoint_then_another_log)
    for task in tasks.copy():
        task()
    abandon(manager)
    manager = open_manager(str(tmp_path))
    assert values_of(manager.logs[TopicPartition("t", 0)]) == [b"new"]
    manager.close()


def test_checkpoints_are_not_written_for_a_new_name(tmp_path: Path) -> None:
    manager = open_manager(str(tmp_path))
    manager.create_log("a", 0, TOPIC_ID, DEFAULTS)
    manager.checkpoint_now()
    manager.create_log("b", 0, TOPIC_ID, DEFAULTS)
    assert "b 0" not in (tmp_path / "recovery-point-offset-checkpoint").read_text()
    manager.close()
