"""The query that writes a directory, and its last batch there.

Spark's id of the query stands in its checkpoint. It is the first part of the identity of a batch. A
new checkpoint makes a new query, whose batches have the numbers of the first query's, and other
records. An old copy of the checkpoint has the same id, and its next batches have numbers that were
written before, too. So the directory remembers the last batch that was begun, and where it ends:

    DIR/_minibroker/query        id of the query
    DIR/_minibroker/begun.json   number of the batch, and a digest of the offsets where it ends
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Final

from minibroker.pipeline import offsets
from minibroker.pipeline.checkpoints import job_directory
from minibroker.pipeline.errors import PipelineError, damage
from minibroker.pipeline.files.paths import JOB_DIRECTORY, join

if TYPE_CHECKING:
    from minibroker.pipeline.files.file_system import FileSystem

_BATCH_FILE: Final = "begun.json"


def begin_batch(
    files: FileSystem, directory: str, progress: FileSystem, checkpoint: str, number: int
) -> str:
    """Remember that a batch is written into `directory`, and return the id of its query.

    Args:
        checkpoint: of the query; Spark has noted there where the batch ends.

    Raises:
        PipelineError: another query writes the directory, or the checkpoint is older than it.
    """
    query = query_of(progress, checkpoint)
    check_owner(files, directory, query)
    end = offsets.to_json(job_directory.end_of_batch(progress, checkpoint, number))
    batch = (number, hashlib.sha256(end.encode()).hexdigest())
    path = join(directory, JOB_DIRECTORY, _BATCH_FILE)
    last = _last_batch(files, path)
    if last is not None and (last[0] > number or (last[0] == number and last != batch)):
        raise PipelineError(
            f"{checkpoint} is older than {directory}: the next batch is {number}, and batch "
            f"{last[0]} was written with other records, so new ones would be taken for written: "
            "put the newer checkpoint back, or give a new directory"
        )
    if last != batch:
        files.write(path, json.dumps(batch) + "\n")
    return query


def _last_batch(files: FileSystem, path: str) -> tuple[int, str] | None:
    """Return number and digest of the last batch, None before the first one."""
    text = files.read(path)
    if text is None:
        return None
    try:
        number, digest = json.loads(text)
        return int(number), str(digest)
    except (ValueError, TypeError) as error:
        raise damage(path, error) from error


def is_begun(files: FileSystem, checkpoint: str) -> bool:
    """Return whether a query was started with this checkpoint."""
    return files.read(join(checkpoint, "metadata")) is not None


def query_of(files: FileSystem, checkpoint: str) -> str:
    """Return the id of the query, which Spark makes with a new checkpoint.

    Raises PipelineError if the checkpoint is damaged.
    """
    path = join(checkpoint, "metadata")
    try:
        return str(json.loads(files.read(path) or "")["id"])
    except (ValueError, KeyError, TypeError) as error:
        raise damage(path, error) from error


def check_owner(files: FileSystem, directory: str, query: str) -> None:
    """Remember the query that writes `directory`; raise PipelineError if it is another one.

    A new checkpoint would write every record a second time, under new numbers of batches.
    """
    path = join(directory, JOB_DIRECTORY, "query")
    owner = files.read(path)
    if owner is None:
        files.write(path, query)
    elif owner.strip() != query:
        raise PipelineError(
            f"{directory} was written with another checkpoint than the one that is there now: "
            "every record would come twice; give a new directory"
        )
