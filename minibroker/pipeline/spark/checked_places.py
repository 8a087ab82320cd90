"""The check of a job's masks and selected fields with its first records (`operations.met_places`).

It is done before the job claims its directory, makes a topic or starts a query. A job that passed
has a file with its masks, and is not checked again: a later batch may well be without a place.

    DIR/_minibroker/places.txt     the masks and fields whose places were there
"""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Final

from minibroker.pipeline import offsets
from minibroker.pipeline.checkpoints import job_directory
from minibroker.pipeline.files.paths import JOB_DIRECTORY, join
from minibroker.pipeline.kafka.source import frames as sources
from minibroker.pipeline.operations import met_places
from minibroker.pipeline.operations.frames import found_in
from minibroker.pipeline.operations.met_places import MetPlaces

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from minibroker.pipeline.files.file_system import FileSystem
    from minibroker.pipeline.kafka.cluster import Kafka
    from minibroker.pipeline.operations.rows import RowOperations
    from minibroker.pipeline.spark.topic_identity import Place

_FILE: Final = "places.txt"
FEW: Final = 200
"""Records that the driver looks at; if a place is missing there, tasks look at the whole batch."""
_LOOK_S: Final = 5.0


class CheckedPlaces:
    """The masks and selected fields of one job; used by the driver alone."""

    def __init__(
        self, operations: RowOperations, secret: bytes, files: FileSystem, directory: str
    ) -> None:
        """Args:
        operations: of the job.
        secret: of the hashes.
        files: of the directory.
        directory: with the job's identity.
        """
        self._operations = operations
        self._secret = secret
        self._files = files
        self._path = join(directory, JOB_DIRECTORY, _FILE)
        places = [*operations.rules, *operations.fields]
        self._text = "".join(f"{place}\n" for place in places)
        self.is_done = not places or files.read(self._path) == self._text
        """True if there is nothing to check, or nothing more."""

    def begin(
        self,
        read: Callable[[], DataFrame],
        rows_max: int,
        *,
        stop: threading.Event | None,
        waits: bool,
    ) -> bool:
        """Check with the first records; return False if there are none, so that no job may begin.

        Args:
            read: returns the records that the job will read next, chosen and not yet masked.
            rows_max: records of the first batch, at most.
            stop: ends the waiting.
            waits: whether to wait for a first record.

        Raises JobUsageError: no record has a place.
        """
        stop = stop or threading.Event()
        while not self.is_done and not self._is_met(read(), rows_max):
            if not waits or stop.wait(_LOOK_S):
                return False
        return True

    def _is_met(self, rows: DataFrame, rows_max: int) -> bool:
        """Check with these rows; return False if there are none. Raises JobUsageError."""
        few = rows.select("key", "value", "headers").limit(FEW).collect()
        if not few:
            return False
        met = MetPlaces(self._operations, self._secret)
        for key, value, headers in few:
            pairs = [(name, _bytes(of_header)) for name, of_header in headers or ()]
            met.take(_bytes(key), _bytes(value), pairs)
        if met_places.lacking(self._operations, met.found):
            met.found |= found_in(rows, self._operations, self._secret, rows_max)
        met_places.check(self._operations, met.found, met.names)
        self.note()
        return True

    def note(self) -> None:
        """Note that the places were there."""
        self._files.write(self._path, self._text)
        self.is_done = True


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)


_KEPT: Final = (
    "subscribe",
    "subscribePattern",
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestampStrategy",
)
"""Options of a stream that a batch has, too, beside those of the client."""


def records_ahead(
    spark: SparkSession, kafka: Kafka, options: Mapping[str, str], place: Place
) -> DataFrame:
    """Return the records behind the last committed batch of a query, up to the end of its topics.

    Args:
        spark: of the job.
        kafka: the cluster.
        options: of the query's source, as of the `reader_options` of a job.
        place: of the query.

    Raises PipelineError.
    """
    given = {
        name: value for name, value in options.items() if name in _KEPT or name.startswith("kafka.")
    }
    position = job_directory.committed_progress_of(place.files, place.checkpoint)
    if position:
        assigned: dict[str, list[int]] = {}
        for where in sorted(position):
            assigned.setdefault(where.topic, []).append(where.partition)
        given = {name: value for name, value in given.items() if name not in _KEPT}
        given |= {"assign": json.dumps(assigned), "startingOffsets": offsets.to_json(position)}
    given |= {"includeHeaders": "true", "failOnDataLoss": "false"}
    return sources.read_topics(spark, given, source=kafka.source)
