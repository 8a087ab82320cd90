"""One damaged file of a data directory, each kind in each way: a start goes on, and no other log
loses a record.
"""

from __future__ import annotations

import random
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.errors import CorruptionError, StorageError
from tests.support.logs import (
    TOPIC_ID,
    abandon,
    append,
    config,
    flush,
    open_manager,
    sync,
    values_of,
    wait_for_a_later_time,
)

if TYPE_CHECKING:
    from minibroker.broker.storage.partition_log import PartitionLog

SETTINGS = config(segment_bytes=1000, index_interval_bytes=200)
OTHER_ID = TOPIC_ID[::-1]
COUNT = 30
VALUES = [b"%08d" % number * 10 for number in range(COUNT)]
CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "meta.properties",
)
OF_LOG = (
    *("first.log", "first.index", "first.timeindex", "active.log", "active.index"),
    *("active.timeindex", "last.snapshot", "leader-epoch-checkpoint", "partition.metadata"),
)
WAYS = ("empty", "cut", "garbage", "missing", "from the future")


def fill(log: PartitionLog) -> None:
    for number, value in enumerate(VALUES):
        append(log, value, producer_id=7, producer_epoch=0, sequence=number)


def make_directory(root: Path, *, is_clean: bool) -> None:
    """Make a data directory with two logs of the same records, as a stop or a kill leaves it."""
    manager = open_manager(str(root), topic=SETTINGS)
    for topic, topic_id in (("damaged", TOPIC_ID), ("other", OTHER_ID)):
        log = manager.create_log(topic, 0, topic_id, SETTINGS)  # type: ignore[arg-type]
        fill(log)
        sync(manager, log)
        append(log, b"unsynced")
        flush(log)
    manager.checkpoint_now()
    if is_clean:
        manager.close()
        wait_for_a_later_time(root)
    abandon(manager)


def find(root: Path, kind: str) -> Path:
    """Return the file of this kind."""
    if kind in CHECKPOINTS:
        return root / kind
    log = root / "damaged-0"
    place, _, ending = kind.rpartition(".")
    if place not in ("first", "active", "last"):
        return log / kind
    files = sorted(log.glob(f"*.{ending}"))
    return files[0] if place == "first" else files[-1]


def damage(path: Path, way: str) -> None:
    """Damage the file in one way; one that is not there appears."""
    content = path.read_bytes() if path.exists() else b"0\n"
    if way == "missing":
        path.unlink(missing_ok=True)
        return
    future = re.sub(rb"^(version[=:] ?)?\d+", rb"\g<1>99", content, count=1, flags=re.M)
    if path.suffix == ".log":
        future = content[:16] + b"\x09" + content[17:]
    elif path.suffix in {".index", ".timeindex", ".snapshot"}:
        future = b"\x7f" * 2 + content[2:]
    damages = {
        "empty": b"",
        "cut": content[: len(content) // 2],
        "garbage": random.Random(1).randbytes(max(len(content), 24)),
        "from the future": future,
    }
    path.write_bytes(damages[way])


@pytest.mark.parametrize("is_clean", [True, False], ids=["stop", "kill"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [*OF_LOG, *CHECKPOINTS])
def test_one_damaged_file_takes_no_record_of_another_log(
    tmp_path: Path, kind: str, way: str, is_clean: bool
) -> None:
    make_directory(tmp_path, is_clean=is_clean)
    path = find(tmp_path, kind)
    damage(path, way)
    if (kind, way) == ("meta.properties", "from the future"):
        with pytest.raises(StorageError, match=r"meta\.properties: version '99'"):
            open_manager(str(tmp_path), topic=SETTINGS)
        return
    manager = open_manager(str(tmp_path), topic=SETTINGS)
    logs = {name.topic: log for name, log in manager.logs.items()}
    assert logs["other"].place.topic_id == OTHER_ID
    assert values_of(logs["other"]) == [*VALUES, b"unsynced"]
    append(logs["other"], b"more")
    assert values_of(logs["other"])[-1] == b"more"
    values: list[bytes | None] = []
    with suppress(StorageError, CorruptionError):  # who reads damaged bytes is told of it
        values = values_of(logs["damaged"])
    # Nothing is made up, and nothing changes its place; other files than `.log` cost no record.
    assert values == [value for value in [*VALUES, b"unsynced"] if value in values]
    assert path.suffix == ".log" or values == [*VALUES, b"unsynced"]
    if kind == "active.log" and way != "from the future":
        # The log ends where its file does: nothing is claimed, and no torn bytes are in between.
        log = logs["damaged"]
        assert log.log_end_offset == len(values)
        append(log, b"more")
        assert values_of(log) == [*values, b"more"]


def test_a_copy_of_a_directory_is_not_recovered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each file of a copy is new. Only the end of each log is looked at."""
    make_directory(tmp_path / "original", is_clean=True)
    marker = ".kafka_cleanshutdown"
    shutil.copytree(tmp_path / "original", tmp_path / "copy", ignore=lambda *_: [marker])
    shutil.copy(tmp_path / "original" / marker, tmp_path / "copy" / marker)
    wait_for_a_later_time(tmp_path / "copy")
    for path in (tmp_path / "copy").rglob("*"):
        path.chmod(0o700)
    manager = open_manager(str(tmp_path / "copy"), topic=SETTINGS)
    for log in manager.logs.values():
        assert values_of(log) == [*VALUES, b"unsynced"]
    assert "is recovered" not in caplog.text
