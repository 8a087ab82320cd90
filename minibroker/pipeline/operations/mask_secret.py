"""The secret of the hashes of `--mask`: from a file, from the environment, or made for the job.

1. `--mask-secret-file FILE`, without the line end at its end.
2. The variable `MINIBROKER_MASK_SECRET`.
3. A random one, kept beside the job's progress and readable by its owner alone, so that the next
   run and a repeated batch hash the same.

The third way is refused where the progress is a part of the result (an archive): whoever got the
result would have the secret, and could try names and addresses until one has the same hash.

The secret goes to the tasks within Spark's own messages, and into no option, plan or log.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import local
from minibroker.pipeline.files.paths import JOB_DIRECTORY, is_remote, join

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.pipeline.files.file_system import FileSystem
    from minibroker.pipeline.operations.rows import RowOperations

VARIABLE: Final = "MINIBROKER_MASK_SECRET"
LEAST_BYTES: Final = 16
MOST_BYTES: Final = 4096
FILE: Final = "mask-secret"
_MADE_BYTES: Final = 32


def given_secret(operations: RowOperations, environment: Mapping[str, str]) -> bytes | None:
    """Return the secret that a person gave, None if nobody did or no rule needs one.

    Raises:
        PipelineError: the file cannot be read, or the secret is too short.
    """
    if not operations.needs_secret:
        return None
    if (path := operations.secret_file) is not None:
        try:
            with Path(path).open("rb") as file:
                secret = file.read(MOST_BYTES + 1).rstrip(b"\r\n")
        except OSError as error:
            raise PipelineError(
                f"--mask-secret-file {path} cannot be read: {error.strerror}"
            ) from error
        return _checked(secret, f"--mask-secret-file {path}")
    if (text := environment.get(VARIABLE)) is not None:
        return _checked(text.encode("utf-8", "surrogateescape"), f"the variable {VARIABLE}")
    return None


def check_given(
    operations: RowOperations, environment: Mapping[str, str], *, in_result: str | None
) -> bytes | None:
    """Return the secret that a person gave; raise PipelineError if one is missing.

    Args:
        environment: variables of this process.
        in_result: directory of the result if the job keeps its progress in it, else None.
    """
    secret = given_secret(operations, environment)
    if secret is None and operations.needs_secret and in_result is not None:
        raise PipelineError(
            f"a hash needs a secret, and one beside {in_result} would go with the data: give "
            f"--mask-secret-file FILE or the variable {VARIABLE}, for instance from "
            "`openssl rand -hex 32`"
        )
    return secret


def secret_of_job(
    operations: RowOperations,
    environment: Mapping[str, str],
    place: tuple[FileSystem, str] | None,
) -> bytes:
    """Return the secret for a job's rules; it is made and kept if there is none yet.

    Args:
        operations: of the job, checked by `check_given`.
        environment: variables of this process.
        place: file system and directory of the job's progress; None: the job has none, and the
            secret is one for this run.

    Raises:
        PipelineError: a secret cannot be read or written.
    """
    if not operations.needs_secret:
        return b""
    if (secret := given_secret(operations, environment)) is not None:
        return secret
    new = secrets.token_hex(_MADE_BYTES)
    if place is None:
        return new.encode()
    files, directory = place
    path = join(directory, JOB_DIRECTORY, FILE)
    if files.read(path) is None:
        _keep(files, path, new)
    text = (files.read(path) or "").strip()
    return _checked(text.encode(), path)


def _checked(secret: bytes, origin: str) -> bytes:
    if not LEAST_BYTES <= len(secret) <= MOST_BYTES:
        raise PipelineError(
            f"{origin} has a secret of {len(secret)} bytes: expected {LEAST_BYTES} to {MOST_BYTES}"
            ", for instance from `openssl rand -hex 32`"
        )
    return secret


def _keep(files: FileSystem, path: str, secret: str) -> None:
    """Write the secret in one step, for this user alone; do nothing if another run was faster."""
    if is_remote(path):
        files.create(path, secret)
        return
    target = local(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=target.parent)  # with mode 600
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(secret)
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileExistsError):  # it is read next, whoever wrote it
                os.link(name, target)
        finally:
            Path(name).unlink()
    except OSError as error:
        raise PipelineError(f"{path} cannot be written: {error.strerror}") from error
