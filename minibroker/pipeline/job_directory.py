"""What a job leaves beside its results: which job it was, and how far it is.

    DIR/_minibroker/job.json     what made DIR, so that no other job writes into it
    DIR/_minibroker/checkpoint   Spark's: `offsets/N` is written before batch N, `commits/N` after

Everything here is read before anything is written.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from minibroker.pipeline import offsets
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.plan import JOB_DIRECTORY, join

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from minibroker.pipeline.files import Files

_JOB_FILE: Final = "job.json"
_OFFSETS_LINE: Final = 2
"""Of a file in `offsets/`: behind the version and the settings, one line a source."""


def read_job(files: Files, directory: str) -> Mapping[str, str]:
    """What wrote `directory`; empty: nobody yet.

    Raises:
        PipelineError: there are files that no job of ours has written.
    """
    names = [name for name in files.names(directory) if name != JOB_DIRECTORY]
    text = files.read(join(directory, JOB_DIRECTORY, _JOB_FILE))
    if text is None:
        if names:
            raise PipelineError(
                f"{directory} has files that no job of this kind has written ({names[0]}): "
                "give a new or an empty directory"
            )
        return {}
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise PipelineError(
            f"{join(directory, JOB_DIRECTORY, _JOB_FILE)} is damaged ({error}): "
            "begin anew in another directory"
        ) from error
    return {str(key): str(value) for key, value in found.items()}


def write_job(files: Files, directory: str, job: Mapping[str, str]) -> None:
    """Say what writes `directory`, unless it is said already."""
    path = join(directory, JOB_DIRECTORY, _JOB_FILE)
    if files.read(path) is None:
        files.write(path, json.dumps(dict(job), indent=2) + "\n")


def check_job(directory: str, found: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    """Raise PipelineError when another job, or the same with other words, wrote `directory`."""
    for key, value in wanted.items():
        if found and found.get(key) != value:
            raise PipelineError(
                f"{directory} belongs to a job with {key} {found.get(key, 'unknown')!r} and this "
                f"one has {key} {value!r}: give another directory"
            )


def progress_of(files: Files, checkpoint: str) -> offsets.Offsets | None:
    """Where the last batch that was begun ends; None: no batch was.

    Raises:
        PipelineError: the checkpoint is no one of a topic's reader.
    """
    directory = join(checkpoint, "offsets")
    number = _last_batch(files, directory)
    if number is None:
        return None
    path = join(directory, str(number))
    lines = (files.read(path) or "").splitlines()
    if len(lines) <= _OFFSETS_LINE:
        raise PipelineError(f"{path} is cut short: begin anew in another directory")
    return offsets.from_json(lines[_OFFSETS_LINE], where=path)


def is_committed(files: Files, checkpoint: str) -> bool:
    """Whether the last batch that was begun is done, too."""
    begun, done = (_last_batch(files, join(checkpoint, what)) for what in ("offsets", "commits"))
    return begun == done


def last_committed(files: Files, checkpoint: str) -> int | None:
    """Return the number of the last batch that is done; None: none is."""
    return _last_batch(files, join(checkpoint, "commits"))


def _last_batch(files: Files, directory: str) -> int | None:
    numbers = (int(name) for name in files.names(directory) if name.isdecimal())
    return max(numbers, default=None)


def check_topics(directory: str, reached: offsets.Offsets | None, topics: Iterable[str]) -> None:
    """Raise PipelineError when the progress in `directory` is that of topics not asked for."""
    others = sorted({one.topic for one in reached or {}} - set(topics))
    if others:
        raise PipelineError(
            f"{directory} holds the progress of topic {', '.join(others)}, which this run does "
            "not read: give it, too, or another directory"
        )


def check_not_ahead(
    directory: str,
    reached: offsets.Offsets | None,
    ends: Mapping[str, Mapping[int, int]],
) -> None:
    """Raise PipelineError when the progress in `directory` lies behind the end of a topic."""
    for (topic, partition), offset in sorted((reached or {}).items()):
        end = ends.get(topic, {}).get(partition)
        if end is None or offset > end:
            has = "is not there" if end is None else f"ends at offset {end}"
            raise PipelineError(
                f"{directory} has {topic}-{partition} up to offset {offset}, but this partition "
                f"{has}: it is another topic of that name; give another directory"
            )
