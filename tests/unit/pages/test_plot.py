"""Plots: sound XML, columns as high as they should be, texts escaped."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from minibroker.pages.plot import Bar, Column, Series, Tick, bars, columns, lines, nice_ceiling


def tree_of(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def test_columns_are_in_proportion_and_stay_inside() -> None:
    drawn = tree_of(
        columns(
            [Column(10, "ten"), Column(5, "five", is_marked=True), Column(0, "none")],
            [Tick(0.0, "begin"), Tick(0.5, "middle"), Tick(1.0, "end")],
            description="what it is",
            show=str,
        )
    )
    heights = [float(column.get("height", "")) for column in drawn.iter("rect")]
    assert heights == [140.0, 70.0, 0.0]
    assert [column.get("class") for column in drawn.iter("rect")] == [None, "mark", None]
    ends = [
        float(column.get("x", "").rstrip("%")) + float(column.get("width", "").rstrip("%"))
        for column in drawn.iter("rect")
    ]
    assert max(ends) < 100
    labels = [(text.text, text.get("text-anchor")) for text in drawn.iter("text")]
    assert labels[-3:] == [("begin", "start"), ("middle", "middle"), ("end", "end")]
    assert labels[:2] == [("5.0", "end"), ("10.0", "end")]
    scale = [text for text in drawn.iter("text") if text.get("class") == "scale"]
    assert [float(text.get("x", "")) < 0 for text in scale] == [True, True], "beside the columns"
    assert drawn.get("aria-label") == "what it is"


def test_a_small_column_is_visible_and_a_line_is_in_its_place() -> None:
    drawn = tree_of(
        columns(
            [Column(1_000_000, "all"), Column(1, "one")],
            [],
            description="",
            show=str,
            line=(500_000, "half"),
        )
    )
    assert [column.get("height") for column in drawn.iter("rect")] == ["140.0", "1.5"]
    [line] = [drawn_line for drawn_line in drawn.iter("line") if drawn_line.get("class") == "fair"]
    assert line.get("y1") == "92.0"
    [words] = [text for text in drawn.iter("text") if text.text == "half"]
    highest = min(float(column.get("y", "")) for column in drawn.iter("rect"))
    assert float(words.get("y", "")) < highest, "never on a column"


def test_bars_are_in_proportion_to_the_longest() -> None:
    drawn = tree_of(bars([Bar(4, "a", "4"), Bar(1, "b", "1", True)], description="d"))
    drawn_bars = [bar for bar in drawn.iter("rect") if bar.get("class") != "track"]
    assert [bar.get("width") for bar in drawn_bars] == ["100.00%", "25.00%"]
    assert drawn.get("height") == "88"


def test_texts_from_topics_are_escaped() -> None:
    hostile = '<script>"&'
    drawn = columns([Column(1, hostile)], [Tick(0.5, hostile)], description=hostile, show=str)
    assert "<script>" not in drawn
    assert tree_of(drawn).get("aria-label") == hostile
    assert "<script>" not in bars([Bar(1, hostile, hostile)], description=hostile)


def test_nothing_is_drawn_of_nothing() -> None:
    assert list(tree_of(columns([], [], description="", show=str)).iter("rect")) == []
    assert list(tree_of(bars([], description="")).iter("rect")) == []


@pytest.mark.parametrize(
    ("value", "top"),
    [
        (1, 1),
        (1.01, 1.2),
        (1.3, 1.6),
        (23_000, 30_000),
        (999, 1000),
        (0.007, 0.008),
        (7, 8),
        (0.1, 0.1),
    ],
)
def test_an_axis_ends_at_a_round_number(value: float, top: float) -> None:
    assert nice_ceiling(value) == pytest.approx(top)


def test_lines_reach_from_edge_to_edge_in_the_units_of_their_drawing() -> None:
    both = [Series("group a", [(5, 0), (7, 100), (9, 50)]), Series("<b>", [(5, 100), (9, 100)])]
    plot = lines(both, [Tick(0.0, "begin")], description="lag", show=str)
    drawn = tree_of(f"<div>{plot}</div>")
    paths = list(drawn.iter("polyline"))
    assert [path.get("points") for path in paths] == [
        "0.0,140.0 500.0,0.0 1000.0,70.0",
        "0.0,0.0 1000.0,0.0",
    ]
    assert [path.get("class") for path in paths] == ["series0", "series1"]
    key = ["".join(item.itertext()) for item in drawn.iter("li")]
    assert key == ["━ group a", "━ <b>"], "two lines need a key"


def test_one_line_needs_no_key_and_may_fill_its_area() -> None:
    series = [Series("a", [(0, 1), (4, 1)])]
    drawn = tree_of(lines(series, [], description="", show=str, is_area=True))
    [area] = drawn.iter("polygon")
    assert area.get("points") == "0.0,140 0.0,0.0 1000.0,0.0 1000.0,140"
    assert list(drawn.iter("li")) == []


def test_a_line_of_no_points_or_of_one_is_drawn() -> None:
    assert (
        list(tree_of(lines([Series("a", [])], [], description="", show=str)).iter("polyline")) == []
    )
    [point] = tree_of(lines([Series("a", [(3, 0)])], [], description="", show=str)).iter("polyline")
    assert point.get("points") == "0.0,140.0"
