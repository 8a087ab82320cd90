"""Log directories under check-log: owner, checkpoints, one home for every partition."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.check import broken_things

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.tools.conftest import Said


@pytest.mark.parametrize("name", ["recovery-point", "log-start", "replication", "cleaner"])
def test_checkpoints_beyond_the_log_or_damaged(data: Path, name: str) -> None:
    path = data / f"{name}-offset-checkpoint"
    path.write_text("0\n1\nt 0 24\n")
    assert "24 of t-0, the log ends at 23 [checkpoint-offset]" in "\n".join(broken_things(data))
    path.write_text("0\n2\nt 0 3\n")
    assert "1 entries, 2 announced [checkpoint]" in "\n".join(broken_things(data))


def test_two_directories_of_one_broker(data: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(data, other)
    shutil.rmtree(other / "t-0")
    shutil.copytree(data / "t-0", other / "t-1")
    for name in ("recovery-point", "replication"):
        (other / f"{name}-offset-checkpoint").write_text("0\n1\nt 1 23\n")
    assert broken_things(data, other) == []
    (other / "t-1" / "partition.metadata").write_text("version: 0\ntopic_id: " + "B" * 21 + "A")
    shutil.copytree(data / "t-0", other / "t-0")
    text = (other / "meta.properties").read_text().replace("broker.id=0", "broker.id=1")
    (other / "meta.properties").write_text(text)
    found = "\n".join(broken_things(data, other))
    assert f"{other}/t-0: the partition is in {data}/t-0, too [duplicate]" in found
    assert "[topic-id]" in found
    assert "broker 1 of cluster" in found


def test_directories_that_are_no_partitions_are_notes(
    check: Callable[..., Said], data: Path
) -> None:
    (data / "lost+found").mkdir()
    (data / f"t-1.{'0' * 32}-delete").mkdir()
    shutil.copytree(data / "t-0", data / f"t-0.{'0' * 32}-future")
    said = check("--strict", data)
    assert said.code == 0
    assert said.output.count("[directory]") == 3


def test_an_owner_that_cannot_be_read(data: Path) -> None:
    (data / "meta.properties").write_text("version=7\n")
    assert "[owner]" in "\n".join(broken_things(data))
