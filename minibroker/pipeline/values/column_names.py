"""Names of columns and fields in expressions: of Spark, of Delta tables, and of masks."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Return a name as an expression has it, whatever its characters are."""
    return "`" + name.replace("`", "``") + "`"
