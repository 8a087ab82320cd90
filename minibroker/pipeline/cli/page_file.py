"""The file of a page: looked at before the job, and written after it."""

from __future__ import annotations

from pathlib import Path

from minibroker.pipeline.errors import PipelineError


def check(path: str | None) -> None:
    """Raise PipelineError if there is no directory for the page; None: no page is wanted."""
    if path is not None and not Path(path).absolute().parent.is_dir():
        raise PipelineError(f"{path} cannot be written: its directory is not there")


def write(path: str, page: str) -> None:
    """Write the page; a reader sees the old one or the new one. Raises PipelineError if it cannot
    be written.
    """
    new = Path(f"{path}.new")
    try:
        new.write_text(page, encoding="utf-8")
        new.replace(path)
    except OSError as error:
        raise PipelineError(f"{Path(path)} cannot be written: {error.strerror}") from error
    finally:
        new.unlink(missing_ok=True)
