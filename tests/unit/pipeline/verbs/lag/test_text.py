"""Lag as a table and as a line of JSON."""

from __future__ import annotations

import json

from minibroker.pipeline.kafka.reader_lag import PartitionLag, ReaderLag
from minibroker.pipeline.verbs.lag.text import Look, json_line, page, rows_of, shortened

NOW_MS = 1_795_000_000_000


def look(at_ms: int, billing: int, search: int) -> Look:
    orders = (PartitionLag("orders", 0, billing, 1000), PartitionLag("orders", 1, 500, 500))
    return Look(
        at_ms,
        [
            ReaderLag("billing", "stable", orders),
            ReaderLag("search", "empty", (PartitionLag("clicks", 0, search, 90),)),
        ],
        {orders[0]: at_ms - 65_000},
    )


def test_a_page_has_rates_from_the_look_before() -> None:
    first, second = look(NOW_MS, 400, 90), look(NOW_MS + 2000, 600, 80)
    lines = page(second, first, brokers="h:1", columns=100, lines=20, has_age=True).splitlines()
    assert lines[0].startswith("h:1  2026-11-18 ")
    assert lines[0].endswith(" UTC  lag 410 offsets  2 of 2 behind")
    assert lines[2].split() == [
        "reader",
        "state",
        "topic",
        "parts",
        "lag",
        "read/s",
        "to",
        "go",
        "oldest",
    ]
    assert lines[4].split() == [
        "billing",
        "stable",
        "orders",
        "2",
        "400",
        "100",
        "4",
        "s",
        "1",
        "min",
        "5",
        "s",
    ]
    assert lines[5].split() == ["search", "empty", "clicks", "1", "10", "0", "growing", "?"]


def test_the_first_page_has_no_rates() -> None:
    text = page(look(NOW_MS, 400, 90), None, brokers="h", columns=100, lines=20, has_age=False)
    assert text.splitlines()[4].split() == ["billing", "stable", "orders", "2", "600", "-", "-"]


def test_a_page_fits_on_the_terminal() -> None:
    readers = [
        ReaderLag(f"group-{number}" * 9, "empty", (PartitionLag("t" * 249, 0, number, 10**9),))
        for number in range(100)
    ]
    text = page(Look(NOW_MS, readers), None, brokers="h", columns=80, lines=24, has_age=False)
    assert len(text.splitlines()) <= 24
    assert max(map(len, text.splitlines())) <= 80
    assert text.splitlines()[-1].strip() == "and 82 more with less lag"


def test_no_reader_is_said() -> None:
    text = page(Look(NOW_MS, []), None, brokers="h", columns=80, lines=24, has_age=False)
    assert "no group has committed an offset here" in text


def test_a_name_cannot_control_the_terminal() -> None:
    assert shortened("a\x1b[2Jb\n", 40) == "a?[2Jb?"
    assert shortened("a" * 30 + "b" * 30, 11) == "aaaaa…bbbbb"


def test_a_reader_of_two_topics_has_a_row_for_each() -> None:
    reader = ReaderLag("g", "empty", (PartitionLag("a", 0, 1, 2), PartitionLag("b", 0, 1, 9)))
    assert [(row.topic, row.lag) for row in rows_of(Look(NOW_MS, [reader]))] == [("b", 8), ("a", 1)]


def test_a_line_of_json_has_every_partition() -> None:
    answer = json.loads(json_line(look(NOW_MS, 400, 90)))
    assert (answer["lag"], [reader["lag"] for reader in answer["readers"]]) == (600, [600, 0])
    assert answer["readers"][0]["partitions"][0] == {
        "topic": "orders",
        "partition": 0,
        "offset": 400,
        "end": 1000,
        "lag": 600,
        "oldest_ms": NOW_MS - 65_000,
    }
