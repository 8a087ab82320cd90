"""The operations of a job that may have run before: its moments, its secret and its identity.

check_operations: before anything is written, may this run go on with what is there?
begin_operations: the operations of the first run, the secret, and what goes into the job's identity
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from minibroker.pipeline.operations import mask_secret
from minibroker.pipeline.operations.rows import (
    RowOperations,
    check_same,
    identity_of,
    missed,
    settled,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.pipeline.files.file_system import FileSystem
    from minibroker.pipeline.spark.progress import Outcome


class Settled(NamedTuple):
    """The operations of a run, ready for its rows."""

    operations: RowOperations
    """With the moments of the first run."""
    secret: bytes
    """The secret of the hashes; empty if no rule needs one."""
    identity: Mapping[str, str]
    """The part of the job's identity that is about the operations."""

    def told(self, outcome: Outcome) -> Outcome:
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
    operations = settled(operations, job)
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
) -> Settled:
    """Return what a run needs; a secret is made if none was given. Arguments as of
    `check_operations`.

    Raises:
        PipelineError: see `check_operations`; or the secret cannot be kept.
    """
    operations = check_operations(operations, directory, job, in_result=in_result)
    secret = mask_secret.secret_of_job(operations, os.environ, (files, directory))
    identity = identity_of(operations, secret or None)
    check_same(directory, job, identity)
    return Settled(operations, secret, identity)
