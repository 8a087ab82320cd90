"""The query that writes a directory: Spark's id of it, which stands in its checkpoint.

It is the first part of the identity of a batch. A new checkpoint makes a new query, whose batches
have the numbers of the first query's, and other records.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.plan import JOB_DIRECTORY, join

if TYPE_CHECKING:
    from minibroker.pipeline.files import FileSystem


def query_of(files: FileSystem, checkpoint: str) -> str:
    """Return the id of the query, which Spark makes with a new checkpoint.

    Raises PipelineError if the checkpoint is damaged.
    """
    path = join(checkpoint, "metadata")
    try:
        return str(json.loads(files.read(path) or "")["id"])
    except (ValueError, KeyError, TypeError) as error:
        raise PipelineError(
            f"{path} is damaged ({error}): begin anew in another directory"
        ) from error


def check_owner(files: FileSystem, directory: str, query: str) -> None:
    """Remember the query that writes `directory`; raise PipelineError if it is another one.

    A new checkpoint would write every record a second time, under new numbers of batches.
    """
    path = join(directory, JOB_DIRECTORY, "query")
    found = files.read(path)
    if found is None:
        files.write(path, query)
    elif found.strip() != query:
        raise PipelineError(
            f"{directory} was written with another checkpoint than the one that is there now: "
            "every record would come twice; give a new directory"
        )
