"""check-log as a whole: a sound directory, one that was killed, exit codes, JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.tools.conftest import Said

SUMMARY = "1 partitions, 3 segments: 0 broken, 0 notes\n"


def test_a_sound_directory(check: Callable[..., Said], data: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in data.rglob("*")}
    assert check("--deep", data) == (SUMMARY, "", 0)
    assert check("--strict", data / "t-0").output == SUMMARY
    assert {path: path.stat().st_mtime_ns for path in data.rglob("*")} == before


def test_a_torn_end_is_a_note_after_a_crash_only(check: Callable[..., Said], data: Path) -> None:
    last = data / "t-0" / "00000000000000000022.log"
    last.write_bytes(last.read_bytes() + b"torn tail")
    said = check(data)
    assert said.code == 1
    size = last.stat().st_size - 9
    assert f"broken: {last} at position {size}: the file ends inside a batch" in said.output
    (data / ".kafka_cleanshutdown").unlink()
    said = check(data)
    assert said.code == 0
    assert f"note: {last} at position {size}" in said.output
    assert check("--strict", data).code == 1
    assert check("--quiet", data).output.count("\n") == 1


def test_a_torn_middle_is_damage_behind_the_recovery_point_too(
    check: Callable[..., Said], data: Path
) -> None:
    (data / ".kafka_cleanshutdown").unlink()
    first = data / "t-0" / "00000000000000000000.log"
    content = bytearray(first.read_bytes())
    content[150] ^= 1
    first.write_bytes(content)
    said = check("--json", data)
    assert said.code == 1
    found = json.loads(said.output.splitlines()[0])
    assert found["rule"] == "batch"
    assert (found["weight"], found["position"]) == ("broken", 103)
    assert "and every later segment" in found["what"]
