"""File and directory names, both ways."""

from __future__ import annotations

import pytest

from minibroker.broker.storage import names
from minibroker.kafka.ids import TopicPartition


def test_a_segment_file_has_twenty_digits() -> None:
    assert names.segment_file(203000, names.LOG) == "00000000000000203000.log"
    assert names.base_offset_of("00000000000000203000.timeindex") == 203000
    assert names.base_offset_of("00000000000000203000.log.swap") == 203000


@pytest.mark.parametrize(
    "name", ["leader-epoch-checkpoint", "123.log", "0000000000000020300x.log", ""]
)
def test_other_names_have_no_base_offset(name: str) -> None:
    assert names.base_offset_of(name) is None


def test_directories_are_parsed_with_their_mark() -> None:
    hexes = "0123456789abcdef" * 2
    assert names.parse_directory("my-topic-12") == (TopicPartition("my-topic", 12), "")
    for mark in ("-delete", "-future", "-stray"):
        assert names.parse_directory(f"my-topic-12.{hexes}{mark}") == (("my-topic", 12), mark)


@pytest.mark.parametrize("name", ["topic", "-1", "topic-", "topic-x", "lost+found", "t-1-delete"])
def test_other_directories_are_no_partitions(name: str) -> None:
    assert names.parse_directory(name) is None


def test_a_marked_name_is_never_too_long_and_is_parsed_again() -> None:
    name = names.marked_directory("x" * 249, 7, names.DELETE_DIRECTORY)
    assert len(name) == 255
    parsed = names.parse_directory(name)
    assert parsed is not None
    assert parsed[0].partition == 7
    assert parsed[1] == names.DELETE_DIRECTORY
    assert name != names.marked_directory("x" * 249, 7, names.DELETE_DIRECTORY)
