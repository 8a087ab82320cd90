"""Paths of a job, which may be URLs. Pure, but for the directory that this process is in."""

from __future__ import annotations

import re
from pathlib import Path, PurePath
from typing import Final

JOB_DIRECTORY: Final = "_minibroker"
"""Name of the directory beside a job's results; Spark and other readers skip names with `_`."""

_REMOTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


def is_remote(path: str) -> bool:
    """Return whether `path` is a URL (`s3a://…`, `hdfs:/…`) and not a local path."""
    return bool(_REMOTE.match(path)) and not path.startswith("file:/")


def is_on_this_machine(master: str) -> bool:
    """Return whether every worker of `master` runs here, so that a loopback address works."""
    return master.startswith("local")


def has_scheme(path: str) -> bool:
    """Return whether `path` is a URL, `file:/…` too."""
    return bool(_REMOTE.match(path))


def absolute(path: str) -> str:
    """Return a local path as an absolute one: Spark's JVM may run in another directory."""
    return path if _REMOTE.match(path) else str(Path(path).absolute())


def join(directory: str, *names: str) -> str:
    """Return a path below `directory`, which may be a URL."""
    if _REMOTE.match(directory):
        return "/".join((directory.rstrip("/"), *names))
    return str(PurePath(directory, *names))
