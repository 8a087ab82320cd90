"""Tells by the files of a job where its batch is, so that a kill hits at a known moment.

    offsets/N of the checkpoint ─► files or records ─► commit of the target ─► commits/N
                            BATCH_OPEN            WRITTEN                COMMITTED

An object of each class is called and returns the moment, or None if no batch is under way.
"""

from __future__ import annotations

import glob
import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tests.support.broker import Minibroker

SECONDS: Final = 5.0

BATCH_OPEN: Final = "begun"
"""Nothing of the batch is written yet."""
WRITTEN: Final = "written"
"""Some or all of it is written, and nothing is committed."""
COMMITTED: Final = "committed"
"""The target has it, and Spark's checkpoint does not know that yet."""
PROVISIONAL: Final = "provisional"
"""A rollup's moment: its batches are done, and it writes the open windows."""
MOMENTS: Final = (BATCH_OPEN, WRITTEN, COMMITTED)


def paths_now(directory: Path, pattern: str) -> Iterator[Path]:
    """Yield the paths below a directory while a job makes and removes directories there.

    `Path.glob` raises FileNotFoundError where a directory goes between two of its looks.
    """
    options = {"root_dir": directory, "recursive": True, "include_hidden": True}
    for name in glob.iglob(pattern, **options):  # noqa: PTH207  see above
        yield directory / name


def newest(directory: Path) -> int:
    """Return the largest number that is the name of a file, -1 if there is none."""
    names = (path.name.partition(".")[0] for path in directory.glob("[0-9]*"))
    return max((int(name) for name in names if name.isdecimal()), default=-1)


def batch_under_way(checkpoint: Path) -> int | None:
    """Return the number of the batch that Spark has begun and not ended."""
    number = newest(checkpoint / "offsets")
    return number if number > newest(checkpoint / "commits") else None


class ArchiveMoments:
    """Moments of an archive: data files, then the commit of a table or the list of a batch."""

    def __init__(self, directory: Path, file_format: str) -> None:
        self._directory = directory
        self._of_job = directory / "_minibroker"
        self._last: Callable[[], int] = {
            "iceberg": self._last_of_iceberg,
            "delta": self._last_of_delta,
            "parquet": lambda: newest(self._of_job / "batches"),
        }[file_format]

    def __call__(self) -> str | None:
        number = batch_under_way(self._of_job / "checkpoint")
        if number is None:
            return None
        if self._last() >= number:
            return COMMITTED
        return WRITTEN if any(self._files_of(number)) else BATCH_OPEN

    def _files_of(self, number: int) -> Iterable[Path]:
        """Yield the files of a batch that is not committed, those of killed attempts among them."""
        yield from paths_now(self._of_job, f".staged/{number:09d}-*/*/*/*.parquet")
        for places in ("data/*/*", "*/*", "data"):
            yield from paths_now(self._directory, f"{places}/*-{number:09d}-*.parquet")

    def _last_of_iceberg(self) -> int:
        versions = self._directory.glob("metadata/v*.metadata.json")
        last_version = max(
            versions, key=lambda path: int(path.name[1:].partition(".")[0]), default=None
        )
        if last_version is None:
            return -1
        return int(json.loads(last_version.read_text())["properties"].get("minibroker.batch", -1))

    def _last_of_delta(self) -> int:
        newest_log = max(self._directory.glob("_delta_log/*.json"), default=None)
        actions = [] if newest_log is None else newest_log.read_text().splitlines()
        versions = [json.loads(action).get("txn", {}).get("version", -1) for action in actions]
        return max(versions, default=-1)


class TopicMoments:
    """Moments of a job that writes a topic: an open transaction, then its commit.

    The copy of a topic also keeps an offset map, after the commits and before the checkpoint.
    Without one nobody sees a commit from outside, and the batch counts as begun again.
    """

    def __init__(
        self, checkpoint: Path, broker: Minibroker, partitions: int, maps: Path | None = None
    ) -> None:
        """Watch `target` on `broker`; `maps` is the directory of offset maps."""
        self._checkpoint, self._maps = checkpoint, maps
        self._client = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
        self._names = [TopicPartition("target", number) for number in range(partitions)]

    def __call__(self) -> str | None:
        number = batch_under_way(self._checkpoint)
        if number is None:
            return None
        if self._maps is not None and any(self._maps.glob(f"*{number:012d}.json")):
            return COMMITTED
        return WRITTEN if self._is_open() else BATCH_OPEN

    def _is_open(self) -> bool:
        """Return whether a transaction is open; False while the broker does not answer."""
        try:
            stable, all_records = (self._ends(level) for level in IsolationLevel)
        except KafkaException:
            return False
        return stable != all_records

    def _ends(self, level: IsolationLevel) -> list[int]:
        specs = {name: OffsetSpec.latest() for name in self._names}
        answers = self._client.list_offsets(specs, isolation_level=level, request_timeout=SECONDS)
        return [answers[name].result().offset for name in self._names]


class RollupMoments:
    """Moments of a rollup: files of a stage, then the list of the batch; then provisional rows."""

    def __init__(self, directory: Path) -> None:
        self._of_job = directory / "_minibroker"

    def __call__(self) -> str | None:
        checkpoint = self._of_job / "checkpoint"
        number = batch_under_way(checkpoint)
        if number is None:
            places = (self._of_job / "provisional", checkpoint / "provisional")
            return PROVISIONAL if any(place.exists() for place in places) else None
        if newest(self._of_job / "batches") >= number:
            return COMMITTED
        files = paths_now(self._of_job, f".staged/{number:09d}-*/date=*/*.parquet")
        return WRITTEN if any(files) else BATCH_OPEN
