"""partition.metadata: the topic id of a directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.errors import CorruptionError
from minibroker.ids import topic_id_from_text
from minibroker.storage.files import REAL_FILES
from minibroker.storage.partition_metadata import read_metadata, write_metadata

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "version: 0\ntopic_id: E2s7sYeCSCazK2P7yKih0w"
"""As Kafka 3.9.1 wrote it (tests/golden/segments)."""
TOPIC_ID = topic_id_from_text("E2s7sYeCSCazK2P7yKih0w")


def test_the_bytes_are_kafka_s(tmp_path: Path) -> None:
    assert read_metadata(REAL_FILES, str(tmp_path)) is None
    write_metadata(REAL_FILES, str(tmp_path), TOPIC_ID)
    assert (tmp_path / "partition.metadata").read_text() == TEXT
    assert read_metadata(REAL_FILES, str(tmp_path)) == TOPIC_ID


@pytest.mark.parametrize(
    "text",
    [
        "",
        "version: 1\ntopic_id: E2s7sYeCSCazK2P7yKih0w",
        "version: 0\ntopic_id: short",
        "version: 0",
        "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "partition.metadata").write_text(text)
    with pytest.raises(CorruptionError, match=r"partition\.metadata"):
        read_metadata(REAL_FILES, str(tmp_path))
