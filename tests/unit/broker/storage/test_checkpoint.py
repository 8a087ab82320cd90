"""Offset checkpoints: text, both ways, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.log_directory import (
    decode_offsets,
    encode_offsets,
    read_offsets,
)
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.ids import TopicPartition

if TYPE_CHECKING:
    from pathlib import Path

OFFSETS = {TopicPartition("payments", 0): 1500, TopicPartition("a.b_c-d", 12): 0}


def test_the_bytes_are_kafka_s() -> None:
    assert encode_offsets(OFFSETS) == b"0\n2\npayments 0 1500\na.b_c-d 12 0\n"
    assert encode_offsets({}) == b"0\n0\n"


def test_a_written_file_is_read_back(tmp_path: Path) -> None:
    path = str(tmp_path / "checkpoint")
    assert read_offsets(REAL_FILES, path) == {}
    REAL_FILES.write_atomically(path, encode_offsets(OFFSETS))
    assert read_offsets(REAL_FILES, path) == OFFSETS


def test_an_empty_file_holds_nothing() -> None:
    assert decode_offsets(b"", "path") == {}


@pytest.mark.parametrize(
    "content",
    [b"1\n0\n", b"0\n2\nt 0 5\n", b"0\n1\nt 0\n", b"0\n1\nt x 5\n", b"0\n", b"0\n1\n\xff 0 0 0\n"],
)
def test_a_damaged_file_is_named(content: bytes) -> None:
    with pytest.raises(CorruptionError, match="the/path"):
        decode_offsets(content, "the/path")
