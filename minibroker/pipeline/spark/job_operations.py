"""The operations of a job that may have run before: its moments, its secret and its identity.

check_operations: before anything is written, may this run go on with what is there?
begin_operations: the operations of the first run, the secret, and what goes into the job's identity

CheckedPlaces: are the places of masks and selected fields there (`operations.met_places`)?

They are looked for in the first records, before the job claims its directory, makes a topic or
starts a query. A job that passed has a file with its masks, and is not checked again: a later batch
may well be without a place.

    DIR/_minibroker/places.txt     the masks and fields whose places were there
"""

from __future__ import annotations

import json
import os
import threading
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.pipeline import offsets
from minibroker.pipeline.checkpoints import job_directory
from minibroker.pipeline.files.paths import JOB_DIRECTORY, join
from minibroker.pipeline.kafka.source import frames as sources
from minibroker.pipeline.operations import mask_secret, met_places
from minibroker.pipeline.operations.frames import found_in
from minibroker.pipeline.operations.met_places import MetPlaces
from minibroker.pipeline.operations.rows import (
    RowOperations,
    check_same,
    identity_of,
    missed,
    with_first_moments,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from minibroker.pipeline.files.file_system import FileSystem
    from minibroker.pipeline.spark.progress import Outcome
    from minibroker.pipeline.spark.source_topics import Place


class RunOperations(NamedTuple):
    """The operations of a run, ready for its rows."""

    operations: RowOperations
    """With the moments of the first run."""
    secret: bytes
    """The secret of the hashes; empty if no rule needs one."""
    identity: Mapping[str, str]
    """The part of the job's identity that is about the operations."""

    def with_missed(self, outcome: Outcome) -> Outcome:
        """Return the outcome of the run with the rules that found nothing, if it had rows."""
        if not outcome.rows and not outcome.unmaskable_rows:
            return outcome
        return outcome._replace(missed=missed(self.operations, outcome.found_places))


def check_operations(
    operations: RowOperations, directory: str, job: Mapping[str, str], *, in_result: bool
) -> RowOperations:
    """Return the operations with the moments of the first run.

    Args:
        operations: of this run.
        directory: with the identity of the job.
        job: the identity there, empty before the first run.
        in_result: whether the directory is the result of the job, or a part of it.

    Raises:
        PipelineError: the job was begun with other operations, or a secret is missing.
    """
    operations = with_first_moments(operations, job)
    secret = mask_secret.check_given(
        operations, os.environ, in_result=directory if in_result else None
    )
    check_same(directory, job, identity_of(operations, secret))
    return operations


def begin_operations(
    operations: RowOperations,
    files: FileSystem,
    directory: str,
    job: Mapping[str, str],
    *,
    in_result: bool,
) -> RunOperations:
    """Return what a run needs; a secret is made if none was given. Arguments as of
    `check_operations`.

    Raises:
        PipelineError: see `check_operations`; or the secret cannot be kept.
    """
    operations = check_operations(operations, directory, job, in_result=in_result)
    secret = mask_secret.secret_of_job(operations, os.environ, (files, directory))
    identity = identity_of(operations, secret or None)
    check_same(directory, job, identity)
    return RunOperations(operations, secret, identity)


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
        if met_places.lacking(self._operations, met.place_bits):
            met.place_bits |= found_in(rows, self._operations, self._secret, rows_max)
        met_places.check(self._operations, met.place_bits, met.names)
        self.note()
        return True

    def note(self) -> None:
        """Note that the places were there."""
        self._files.write(self._path, self._text)
        self.is_done = True


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)


_OF_BATCH: Final = (
    "subscribe",
    "subscribePattern",
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestampStrategy",
)
"""Options of a stream that a batch has, too, beside those of the client."""


def records_ahead(spark: SparkSession, options: Mapping[str, str], place: Place) -> DataFrame:
    """Return the records behind the last committed batch of a query, up to the end of its topics.

    Args:
        options: of the query's source, as of the `reader_options` of a job.

    Raises PipelineError.
    """
    of_batch = {
        name: value
        for name, value in options.items()
        if name in _OF_BATCH or name.startswith("kafka.")
    }
    position = job_directory.committed_progress_of(place.files, place.checkpoint)
    if position:
        assigned: dict[str, list[int]] = {}
        for partition in sorted(position):
            assigned.setdefault(partition.topic, []).append(partition.partition)
        of_batch = {name: value for name, value in of_batch.items() if name not in _OF_BATCH}
        of_batch |= {"assign": json.dumps(assigned), "startingOffsets": offsets.to_json(position)}
    of_batch |= {"includeHeaders": "true", "failOnDataLoss": "false"}
    return sources.read_topics(spark, of_batch)
