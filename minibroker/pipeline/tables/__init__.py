"""Tables that an archive writes and a replay reads: Iceberg, Delta, Parquet, and plain files.

`table` is the interface, `choice` chooses by the format.
"""

from __future__ import annotations

from typing import Final

TABLE_FORMATS: Final = ("iceberg", "delta")
"""Formats of archives that are tables; `options.shared.FILE_FORMATS` are files."""
