"""The page of lag: lines over time, bounded, and the table of the last look."""

from __future__ import annotations

import re
from itertools import pairwise

from minibroker.pipeline.kafka.reader_lag import PartitionLag, ReaderLag
from minibroker.pipeline.verbs.lag.page import POINTS_MAX, History, page
from minibroker.pipeline.verbs.lag.text import Look

NOON_MS = 1_790_000_000_000
HOSTILE = "<script>&"


def look(second: int, **lags: int) -> Look:
    """Return a look in which each of these readers is so far behind."""
    readers = [
        ReaderLag(name, "stable", (PartitionLag("orders", 0, 1000 - lag, 1000),))
        for name, lag in lags.items()
    ]
    return Look(NOON_MS + second * 1000, readers, {readers[0].partitions[0]: NOON_MS})


def page_html(*looks: Look, has_age: bool = False) -> str:
    history = History()
    for one_look in looks:
        history.add(one_look)
    return page(history, brokers="127.0.0.1:9092", has_age=has_age)


def test_lag_over_time_is_a_line_for_each_reader_that_was_behind() -> None:
    html = page_html(look(0, billing=0, search=100), look(5, billing=50, search=0))
    points = re.findall(r'<polyline[^>]* points="([^"]*)"', html)
    assert points == ["0.0,0.0 1000.0,140.0", "0.0,140.0 1000.0,70.0"]
    assert re.findall(r"━ <b>(.*?)</b>", html) == ["search", "billing"], "most behind first"
    assert re.findall(r'class="tick"[^>]*>([^<]*)<', html) == ["2026-09-21 14:13:20", "14:13:25"]


def test_one_look_has_no_line_and_a_table() -> None:
    html = page_html(look(65, billing=1234), has_age=True)
    assert "<polyline" not in html
    assert "billing, orders" in html
    assert "1,234 behind" in html
    assert "<td>1,234</td><td>1 min 5 s</td>" in html
    assert "Oldest unread" not in page_html(look(0, billing=1))


def test_nobody_behind_has_no_bars() -> None:
    html = page_html(look(0, billing=0))
    assert "Lag now" not in html
    empty = History()
    empty.add(Look(NOON_MS, [], {}))
    assert "No group has committed an offset here." in page(empty, brokers="h", has_age=False)


def test_six_lines_are_drawn_at_most() -> None:
    many = {f"reader{number}": number + 1 for number in range(30)}
    html = page_html(look(0, **many), look(1, **many))
    assert html.count("<polyline") == 6
    assert re.findall(r"━ <b>(.*?)</b>", html)[0] == "reader29"


def test_a_long_watch_is_thinned_out_evenly() -> None:
    history = History()
    for second in range(POINTS_MAX * 5):
        history.add(look(second, billing=second))
    seconds = [(point.at_ms - NOON_MS) // 1000 for point in history.points]
    assert len(seconds) <= POINTS_MAX
    steps = {later - earlier for earlier, later in pairwise(seconds)}
    assert (seconds[0], steps) == (0, {8})
    assert history.last == look(POINTS_MAX * 5 - 1, billing=POINTS_MAX * 5 - 1)


def test_names_of_readers_are_no_markup() -> None:
    html = page_html(look(0, **{HOSTILE: 5}), look(1, **{HOSTILE: 6}))
    assert "<script" not in html
    assert "&lt;script&gt;" in html
