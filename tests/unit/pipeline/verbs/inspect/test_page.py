"""The page: sound, closed in itself, and without what a topic's data could bring in."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from minibroker.pipeline.verbs.inspect.facts import (
    CodecFacts,
    Defect,
    FrequentKey,
    GroupLag,
    Inspection,
    PartitionFacts,
    ProducerFacts,
    Slice,
    TopicFacts,
)
from minibroker.pipeline.verbs.inspect.page import page

NOON_MS = 1_790_000_000_000
HOSTILE = '<script src="https://example.org/x.js">&'
FULL = TopicFacts(
    "orders",
    (
        PartitionFacts(0, 900, 9_000, 0, 899, NOON_MS, NOON_MS + 60_000, 0, 5, 4),
        PartitionFacts(1, 100, 1_000, 0, 99, NOON_MS, NOON_MS + 60_000, 0, 0, 3),
    ),
    keys=7,
    median_bytes=12,
    slice_ms=1000,
    slices=(Slice(NOON_MS, 10, 100), Slice(NOON_MS + 59_000, 990, 9_900)),
    sizes=((-1, 5), (3, 995)),
    frequent_keys=(FrequentKey(HOSTILE, 800, 0), FrequentKey("k" * 99, 10, None)),
    codecs=(CodecFacts("lz4", 2, 10, 1000, 5_000, 10_000),),
    producers=tuple(ProducerFacts(0, number, 1, 1, 1, number, 0) for number in range(60)),
    defects=(Defect(0, "0.log", 7, 8, HOSTILE),),
    groups=(GroupLag(HOSTILE, "stable", 40, 2, 0), GroupLag("done", "empty", 0, 2, 0)),
)
VOID = {"meta", "rect", "line"}


class Outline(HTMLParser):
    """The tags of a page; fails for a closing tag that is not open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID or tag == "rect":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture
def html() -> str:
    return page(Inspection("127.0.0.1:9092", NOON_MS, True, (FULL,)))


def test_every_tag_is_closed_and_every_plot_is_there(html: str) -> None:
    outline = Outline(html)
    assert outline.tags.count("svg") == outline.tags.count("figure") == 5
    assert outline.tags.count("table") == 4
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", html)
    assert captions == [
        "Records in each partition",
        "Records per second, in steps of 1 s",
        "Records by size, each step twice as large",
        "Most frequent keys",
        "Lag of groups",
    ]


def test_nothing_is_loaded_from_anywhere(html: str) -> None:
    outline = Outline(html)
    assert {"script", "link", "img", "iframe"}.isdisjoint(outline.tags)
    assert "url(" not in html
    assert "@import" not in html
    assert not re.search(r"\b(src|href)=", html.replace("src=&#34;", ""))


def test_contents_of_topics_are_escaped(html: str) -> None:
    assert "<script" not in html
    assert any(HOSTILE in text for text in Outline(html).texts)


def test_it_names_remarkable_facts(html: str) -> None:
    assert '<li class="warn">Skewed: partition 0 holds 90 % of the records' in html
    assert "- - fair share 500" in html
    assert '<td class="words">stable</td>' in html
    assert "Idempotent producers (50 of 60)" in html
    assert '<meta name="viewport"' in html
    assert html.startswith("<!DOCTYPE html>")


def test_slices_without_records_are_drawn_as_gaps(html: str) -> None:
    plot = html[html.index("Records per second") :]
    assert plot[: plot.index("</figure>")].count("<rect") == 60


def test_several_topics_have_headings_and_no_topic_is_said() -> None:
    two = page(Inspection("dir", 0, False, (FULL, FULL._replace(topic="<b>"))))
    assert re.findall("<h2>(.*?)</h2>", two) == ["orders", "&lt;b&gt;"]
    assert "There are no topics." in page(Inspection("dir", 0, True, ()))


def test_an_empty_topic_has_a_table_and_no_plots() -> None:
    html = page(Inspection("dir", 0, False, (TopicFacts("t", (PartitionFacts(0),)),)))
    assert "It holds no records." in html
    assert "<svg" not in html
    assert Outline(html).tags.count("table") == 1


def test_sizes_stand_at_the_edges_of_their_columns() -> None:
    sized = page(Inspection("d", 0, False, (FULL._replace(sizes=((6, 300), (9, 20))),)))
    plot = sized[sized.index("Records by size") :]
    assert re.findall(r'x="([^"]*)%"[^>]*>([^<]*B)<', plot[: plot.index("</figure>")]) == [
        ("0.000", "64 B"),
        ("25.000", "128 B"),
        ("50.000", "256 B"),
        ("75.000", "512 B"),
        ("100.000", "1 KiB"),
    ]


def test_keys_that_come_once_are_not_drawn() -> None:
    once = FULL._replace(frequent_keys=(FrequentKey("a", 1, 0),))
    assert "Most frequent keys" not in page(Inspection("dir", 0, False, (once,)))


def test_many_partitions_are_numbered_in_part() -> None:
    many = FULL._replace(partitions=tuple(PartitionFacts(n, 5, 5, 0, 4) for n in range(100)))
    html = page(Inspection("dir", 0, False, (many,)))
    plot = html[html.index("Records in each partition") : html.index("</figure>")]
    assert plot.count('class="tick"') == 15


def test_moments_in_a_table_have_no_milliseconds() -> None:
    facts = PartitionFacts(0, 900, 9_000, 0, 899, NOON_MS + 7, NOON_MS + 60_007)
    html = page(Inspection("dir", 0, False, (FULL._replace(partitions=(facts,)),)))
    assert "<td>2026-09-21 14:13:20</td><td>2026-09-21 14:14:20</td>" in html


def test_days_are_told_as_days() -> None:
    day_ms = 86_400_000
    slices = tuple(Slice(number * day_ms, 1, 1) for number in range(9))
    html = page(Inspection("d", 0, False, (FULL._replace(slice_ms=day_ms, slices=slices),)))
    plot = html[html.index("Records per second, in steps of 1 d") :]
    assert re.findall(r'class="tick"[^>]*>([^<]*)<', plot[: plot.index("</figure>")]) == [
        "1970-01-01",
        "1970-01-05",
        "1970-01-09",
    ]
