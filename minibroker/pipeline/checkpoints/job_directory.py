"""The files that a job leaves beside its results: its identity and its progress.

    DIR/_minibroker/job.json     what made DIR, so that no other job writes into it
    DIR/_minibroker/checkpoint   Spark's: `offsets/N` is written before batch N, `commits/N` after

Everything here is read before anything is written.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from minibroker.pipeline import offsets
from minibroker.pipeline.errors import PipelineError, damage
from minibroker.pipeline.files.paths import JOB_DIRECTORY, join

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from minibroker.pipeline.files.file_system import FileSystem

_JOB_FILE: Final = "job.json"
_NAME: Final = "name"
"""Part of an identity under which brokers know what a job has written."""
DECISIONS: Final = "decoded"
"""Directory of decisions about batches, see `archive.decoded_writer`."""
_OFFSETS_LINE: Final = 2
"""Line of a file in `offsets/`: version, settings, then one line for each source."""


def read_job(files: FileSystem, directory: str) -> Mapping[str, str]:
    """Return the identity of the job that wrote `directory`; empty if no job wrote it yet.

    Raises:
        PipelineError: the directory has files that no job of minibroker has written.
    """
    names = [name for name in files.names(directory) if name != JOB_DIRECTORY]
    job = found_job(files, directory)
    if names and not job:
        raise PipelineError(
            f"{directory} has files that no job of minibroker has written ({names[0]}): "
            "give a new or an empty directory"
        )
    return job


def claim_of(
    files: FileSystem, directory: str, last: int | None, *, in_result: bool
) -> Mapping[str, str]:
    """Return the identity of the job that `directory` belongs to; empty if it belongs to none yet.

    A run that ended before anything was written, for a wrong setting for instance, claims nothing:
    the next run may be another one.

    Args:
        directory: with the identity.
        last: number of the last batch that counts as written; None: none does.
        in_result: whether the directory is the result of the job, where its files claim it, too.

    Raises:
        PipelineError: the identity there is damaged.
    """
    job = read_job(files, directory)
    is_written = last is not None or (
        in_result
        and (
            any(name != JOB_DIRECTORY for name in files.names(directory))
            or bool(files.names(join(directory, JOB_DIRECTORY, DECISIONS)))
        )
    )
    return job if is_written else {}


def found_job(files: FileSystem, directory: str) -> Mapping[str, str]:
    """Return the identity of the job that wrote `directory`; empty if no job wrote it.

    Raises PipelineError if the file is damaged.
    """
    return read_texts(files, join(directory, JOB_DIRECTORY, _JOB_FILE))


def read_texts(files: FileSystem, path: str) -> dict[str, str]:
    """Return the names and texts in a file of JSON; empty if there is no such file.

    Raises PipelineError if the file is damaged.
    """
    text = files.read(path)
    if text is None:
        return {}
    try:
        texts = json.loads(text)
    except json.JSONDecodeError as error:
        raise damage(path, error) from error
    return {str(name): str(value) for name, value in texts.items()}


def write_job(
    files: FileSystem,
    directory: str,
    job: Mapping[str, str],
    claim: Mapping[str, str] | None = None,
) -> None:
    """Write the identity of the job into `directory`; what is there already stays.

    An earlier version may have written less of it: the rest is added.

    Args:
        claim: of `claim_of`. Where it is empty, only the job's own name stays; None: all stays.
    """
    stored_job = read_job(files, directory)
    if claim is not None and not claim:
        stored_job = {_NAME: stored_job[_NAME]} if _NAME in stored_job else {}
    if not set(job) <= set(stored_job):
        path = join(directory, JOB_DIRECTORY, _JOB_FILE)
        files.write(path, json.dumps({**job, **stored_job}, indent=2) + "\n")


def check_job(
    directory: str,
    owner: Mapping[str, str],
    job: Mapping[str, str],
    *,
    newer: Container[str] = (),
) -> None:
    """Raise PipelineError if another job, or this job with other arguments, wrote `directory`.

    Args:
        directory: for the message.
        owner: the identity there; empty: no job wrote it yet.
        job: the identity of this run.
        newer: names that earlier versions did not write; where they are missing, nothing is known.
    """
    for key, value in job.items():
        if key in newer and key not in owner:
            continue
        if owner and owner.get(key) != value:
            raise PipelineError(
                f"{directory} belongs to a job with {key} {owner.get(key, 'unknown')!r} and this "
                f"one has {key} {value!r}: give another directory"
            )


def progress_of(files: FileSystem, checkpoint: str) -> offsets.Offsets | None:
    """Return the end of the last batch that was begun, None if no batch was begun.

    Raises:
        PipelineError: the checkpoint does not belong to a reader of topics.
    """
    number = last_begun(files, checkpoint)
    return None if number is None else end_of_batch(files, checkpoint, number)


def committed_progress_of(files: FileSystem, checkpoint: str) -> offsets.Offsets | None:
    """Return the end of the last committed batch, None if no batch is committed.

    Raises:
        PipelineError: the checkpoint does not belong to a reader of topics.
    """
    number = last_committed(files, checkpoint)
    return None if number is None else end_of_batch(files, checkpoint, number)


def end_of_batch(files: FileSystem, checkpoint: str, number: int) -> offsets.Offsets:
    """Return the end of a batch that was begun. Raises PipelineError if it is no reader's."""
    path = join(checkpoint, "offsets", str(number))
    lines = (files.read(path) or "").splitlines()
    if len(lines) <= _OFFSETS_LINE:
        raise PipelineError(f"{path} is cut short: begin anew in another directory")
    return offsets.from_json(lines[_OFFSETS_LINE], origin=path)


def batch_time_ms(files: FileSystem, checkpoint: str, number: int) -> int:
    """Return when Spark planned a batch that was begun, in ms since 1970.

    A batch that is repeated after a kill has the time of its first attempt: what is judged by it
    stays the same. Raises PipelineError if the checkpoint does not say.
    """
    path = join(checkpoint, "offsets", str(number))
    lines = (files.read(path) or "").splitlines()
    try:
        return int(json.loads(lines[_OFFSETS_LINE - 1])["batchTimestampMs"])
    except (IndexError, ValueError, KeyError, TypeError) as error:
        raise PipelineError(
            f"{path} has no time of its batch ({error}): begin anew in another directory"
        ) from error


def replace_progress(files: FileSystem, checkpoint: str, position: str) -> None:
    """Replace the end of the last batch, which must be committed: the next batch begins there.

    Args:
        checkpoint: of a query of one source that does not run.
        position: JSON of offsets, see `offsets.to_json`.
    """
    directory = join(checkpoint, "offsets")
    path = join(directory, str(_last_batch(files, directory)))
    lines = (files.read(path) or "").splitlines()
    lines[_OFFSETS_LINE] = position
    files.write(path, "\n".join(lines))


def is_committed(files: FileSystem, checkpoint: str) -> bool:
    """Return whether the last batch that was begun is committed."""
    last_start, last_commit = (
        _last_batch(files, join(checkpoint, name)) for name in ("offsets", "commits")
    )
    return last_start == last_commit


def last_begun(files: FileSystem, checkpoint: str) -> int | None:
    """Return the number of the last batch that was begun, None if no batch was begun."""
    return _last_batch(files, join(checkpoint, "offsets"))


def last_committed(files: FileSystem, checkpoint: str) -> int | None:
    """Return the number of the last committed batch, None if no batch is committed."""
    return _last_batch(files, join(checkpoint, "commits"))


def _last_batch(files: FileSystem, directory: str) -> int | None:
    numbers = (int(name) for name in files.names(directory) if name.isdecimal())
    return max(numbers, default=None)


def check_topics(directory: str, progress: offsets.Offsets | None, topics: Iterable[str]) -> None:
    """Raise PipelineError if the progress in `directory` is about other topics."""
    others = sorted({partition.topic for partition in progress or {}} - set(topics))
    if others:
        raise PipelineError(
            f"{directory} holds the progress of topic {', '.join(others)}, which this run does "
            "not read: give it, too, or another directory"
        )


def check_not_ahead(
    directory: str,
    progress: offsets.Offsets | None,
    ends: Mapping[str, Mapping[int, int]],
) -> None:
    """Raise PipelineError if the progress in `directory` is greater than the end of a topic."""
    for (topic, partition), offset in sorted((progress or {}).items()):
        end = ends.get(topic, {}).get(partition)
        if end is None or offset > end:
            has = "is not there" if end is None else f"ends at offset {end}"
            raise PipelineError(
                f"{directory} has {topic}-{partition} up to offset {offset}, but this partition "
                f"{has}: it is another topic of that name; give another directory"
            )
