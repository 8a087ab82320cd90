"""Findings: said at once, counted, not too many of a kind."""

from __future__ import annotations

import io
import json

from minibroker.tools.findings import SAID_MAX, Findings


def test_text_names_file_position_and_rule() -> None:
    out = io.StringIO()
    findings = Findings(out)
    findings.broken("crc", "a.log", 12, "the CRC is wrong")
    findings.note("leftover", "b", "on its way out")
    findings.summary(2, 3)
    assert out.getvalue().splitlines() == [
        "broken: a.log at position 12: the CRC is wrong [crc]",
        "note: b: on its way out [leftover]",
        "2 partitions, 3 segments: 1 broken, 1 notes",
    ]


def test_json_is_one_object_a_line() -> None:
    out = io.StringIO()
    findings = Findings(out, is_json=True)
    findings.broken("crc", "a.log", 12, "wrong")
    findings.summary(1, 1)
    first, last = map(json.loads, out.getvalue().splitlines())
    assert first == {
        "weight": "broken",
        "rule": "crc",
        "path": "a.log",
        "position": 12,
        "what": "wrong",
    }
    assert last["broken"] == 1


def test_of_one_rule_and_file_only_so_many_are_said() -> None:
    out = io.StringIO()
    findings = Findings(out)
    for number in range(SAID_MAX + 5):
        findings.broken("order", "i", number, "…")
    findings.close_file("i")
    assert findings.broken_count == SAID_MAX + 5
    assert len(out.getvalue().splitlines()) == SAID_MAX + 1
    assert out.getvalue().endswith("… and 5 more of [order] in i\n")


def test_excused_damage_is_a_note() -> None:
    out = io.StringIO()
    findings = Findings(out, is_quiet=True)
    findings.excuses = True
    findings.broken("batch", "a", 0, "torn")
    assert (findings.broken_count, findings.note_count) == (0, 1)
    assert out.getvalue() == ""
