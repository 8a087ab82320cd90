"""The fields of a value as a person gives them: the text of a schema, or a file with it."""

from __future__ import annotations

from pathlib import Path

from minibroker.pipeline.errors import PipelineError


def schema_text(text: str, flag: str = "--schema") -> str:
    """Return the content of a schema file, or `text` itself if that is a schema.

    Raises PipelineError.
    """
    if text.lstrip().startswith("{") or " " in text.strip():
        return text.strip()
    return read_text(text, flag).strip()


def read_text(path: str, flag: str) -> str:
    """Return the text of a file that a flag names. Raises PipelineError."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise PipelineError(f"{flag} {path} cannot be read: {reason}") from error
