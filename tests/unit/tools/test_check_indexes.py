"""Both indexes under check-log: each rule with an index that breaks it."""

from __future__ import annotations

from struct import pack
from typing import TYPE_CHECKING

import pytest

from tests.support.check import broken_things
from tests.support.logs import NOW_MS

if TYPE_CHECKING:
    from pathlib import Path

FIRST, LAST = "00000000000000000000", "00000000000000000022"


@pytest.mark.parametrize(
    ("entries", "rule"),
    [
        (pack(">ii", 2, 207), "index-position"),
        (pack(">ii", 2, 90_000), "index-position"),
        (pack(">ii", 1, 206), "index-offset"),
        (pack(">iiii", 2, 206, 2, 309), "index-order"),
        (pack(">iiii", 4, 206, 5, 103), "index-order"),
        (pack(">ii", 500, 206), "index-offset"),
        (pack(">ii", 2, 206) + b"odd", "index-size"),
        (pack(">ii", 2, 206) + bytes(16), "index-order"),
    ],
)
def test_offset_index(data: Path, entries: bytes, rule: str) -> None:
    (data / "t-0" / f"{FIRST}.index").write_bytes(entries)
    assert f"[{rule}]" in "\n".join(broken_things(data))


@pytest.mark.parametrize(
    ("entries", "rule"),
    [
        (pack(">qi", NOW_MS + 1, 2), "timeindex-timestamp"),
        (pack(">qi", NOW_MS + 2, 500), "timeindex-offset"),
        (pack(">qiqi", NOW_MS + 2, 2, NOW_MS + 2, 3), "timeindex-order"),
        (pack(">qi", NOW_MS + 2, 2), "timeindex-largest"),
        (b"", "timeindex-largest"),
        (pack(">qi", NOW_MS + 8, 8) + b"odd", "timeindex-size"),
    ],
)
def test_time_index(data: Path, entries: bytes, rule: str) -> None:
    (data / "t-0" / f"{FIRST}.timeindex").write_bytes(entries)
    assert f"[{rule}]" in "\n".join(broken_things(data))


def test_zeros_behind_the_newest_index_are_what_a_killed_kafka_leaves(data: Path) -> None:
    for suffix in ("index", "timeindex"):
        path = data / "t-0" / f"{LAST}.{suffix}"
        path.write_bytes(path.read_bytes() + bytes(24 * 100))
    assert broken_things(data) == []


def test_an_index_that_is_not_there_is_made_again(data: Path) -> None:
    (data / "t-0" / f"{FIRST}.index").unlink()
    (data / "t-0" / f"{FIRST}.timeindex").unlink()
    assert broken_things(data) == []
