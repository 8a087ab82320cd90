"""Files beside the segments: leader epochs, topic id, leftovers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.check import broken_things

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.tools.conftest import Said


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("0\n1\n0 0\n", "offset 12 belongs to epoch 0, its batch says epoch 1"),
        ("0\n2\n0 0\n1 13\n", "offset 12 belongs to epoch 0, its batch says epoch 1"),
        ("0\n3\n0 0\n2 5\n1 12\n", "does not follow epoch 2"),
        ("0\n3\n0 0\n1 12\n2 99\n", "the log ends at 23 [epochs-end]"),
        ("0\n7\n0 0\n", "expected version 0 and 7 entries"),
        ("0\n1\nzero 0\n", "not a leader epoch checkpoint"),
    ],
)
def test_leader_epochs(data: Path, content: str, words: str) -> None:
    (data / "t-0" / "leader-epoch-checkpoint").write_text(content)
    assert words in "\n".join(broken_things(data))


def test_a_topic_id_that_is_none(data: Path) -> None:
    (data / "t-0" / "partition.metadata").write_text("version: 1\n")
    assert "[metadata]" in "\n".join(broken_things(data))


def test_leftovers_are_notes(check: Callable[..., Said], data: Path) -> None:
    for name in ("00000000000000000000.log.deleted", "00000000000000000000.log.cleaned"):
        (data / "t-0" / name).touch()
    (data / "t-0" / "00000000000000000005.index").touch()
    said = check("--strict", data)
    assert said.code == 0
    assert said.output.count("[leftover]") == 2
    assert "00000000000000000005.index: no .log beside it" in said.output


def test_an_empty_partition(check: Callable[..., Said], data: Path) -> None:
    (data / "empty-3").mkdir()
    said = check(data)
    assert said.code == 0
    assert "empty-3: no segment: an empty log [no-segment]" in said.output
    metadata = "version: 0\ntopic_id: " + "B" * 21 + "A"
    (data / "empty-3" / "partition.metadata").write_text(metadata)
    assert "0 broken, 0 notes" in check(data).output
