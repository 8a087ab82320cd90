"""A copy of a rollup's checkpoint in which one more batch closes every window that is open.

Spark emits a window when the watermark passes its end, and `offsets/N` holds the watermark of batch
N. The copy gets one more file there. It has the offsets of the last committed batch, so that the
new batch reads no record, and a watermark later than any time. Spark finds a batch that was begun
and not committed, runs it, and emits every window of the state. The checkpoint itself does not
change.

    checkpoint/offsets/N   commits/N   state/…  ──copy──►  the same, and offsets/N+1
"""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from minibroker.pipeline.checkpoints import job_directory
from minibroker.pipeline.files.paths import join

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.pipeline.files.file_system import FileSystem

NAME: Final = "provisional"
"""Name of the copy within the checkpoint."""

_BEHIND_ALL_TIMES_MS: Final = 400_000_000_000_000
"""A time in the year 14645. Spark's last time is in 9999; in microseconds this fits 64 bits."""
_METADATA_LINE: Final = 1
_STATE_FILE: Final = re.compile(r"\.?(\d+)\.(delta|snapshot)(\.crc)?")


def make(files: FileSystem, checkpoint: str) -> str | None:
    """Make the copy and return its directory, or None if no batch is committed yet.

    Raises:
        PipelineError: the checkpoint cannot be copied.
    """
    remove(files, checkpoint)
    committed = job_directory.last_committed(files, checkpoint)
    if committed is None:
        return None
    copy = join(checkpoint, NAME)
    files.copy_tree(
        checkpoint,
        copy,
        lambda directory, names: not_needed(directory, names, committed),
    )
    lines = (files.read(join(copy, "offsets", str(committed))) or "").splitlines()
    metadata: dict[str, Any] = json.loads(lines[_METADATA_LINE])
    metadata["batchWatermarkMs"] = _BEHIND_ALL_TIMES_MS
    lines[_METADATA_LINE] = json.dumps(metadata)
    files.write(join(copy, "offsets", str(committed + 1)), "\n".join(lines))
    return copy


def remove(files: FileSystem, checkpoint: str) -> None:
    """Remove the copy, if there is one."""
    files.remove(join(checkpoint, NAME))


def not_needed(directory: str, names: Sequence[str], committed: int) -> list[str]:
    """Return the `names` that the batch behind `committed` does not read.

    Args:
        directory: where they are, from the checkpoint on; "." is the checkpoint.
        names: of files and directories.
        committed: number of the last committed batch; its state has the version behind it.
    """
    parts = PurePosixPath(directory).parts
    if not parts:
        return [name for name in names if name == NAME]
    if parts in (("offsets",), ("commits",)):
        return [name for name in names if name.strip(".").removesuffix(".crc") != str(committed)]
    if parts[0] != "state":
        return []
    unfinished = [name for name in names if name.endswith(".tmp")]
    state_files = {name: match for name in names if (match := _STATE_FILE.fullmatch(name))}
    versions = [
        int(match[1])
        for match in state_files.values()
        if match[2] == "snapshot" and int(match[1]) <= committed + 1
    ]
    newest = max(versions, default=0)
    others = [
        name for name, match in state_files.items() if not newest <= int(match[1]) <= committed + 1
    ]
    return [*unfinished, *others]
