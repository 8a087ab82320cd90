"""The page of a conversation."""

from __future__ import annotations

import json
import re

import pytest

from minibroker.trace import page as page_module
from minibroker.trace.decode import decode
from minibroker.trace.page import TEXT_LINES_MAX, ConversationPage
from tests.support.trace_frames import EXCHANGE, recorded_frames

HOSTILE = "</script><img src=x onerror=alert(1)>"


def page_of(*exchanges: object, title: str = "talk") -> str:
    """Return the page of exchanges."""
    page = ConversationPage(title)
    for exchange in exchanges:
        page.add(exchange)  # type: ignore[arg-type]
    return page.render()


def rows_of(text: str) -> list[list[object]]:
    """Return the rows that the page's script reads."""
    match = re.search(r'<script type="application/json" id="talk-data">(.*?)</script>', text, re.S)
    assert match is not None
    rows: list[list[object]] = json.loads(match[1])
    return rows


def test_a_page_has_the_figures_and_the_conversation() -> None:
    exchanges = [decode(frames, {}) for frames in recorded_frames()[:40]]
    text = page_of(*exchanges)
    assert "<dt>Requests</dt><dd>40</dd>" in text
    connections = len({exchange.connection for exchange in exchanges})
    assert f"<dt>Connections</dt><dd>{connections}</dd>" in text
    rows = rows_of(text)
    assert [row[4] for row in rows] == [exchange.api for exchange in exchanges]
    assert str(rows[0][-1]).startswith("22:13:20.001 ApiVersions v3 #1")
    assert "<td>Metadata</td>" in text


def test_a_page_fetches_nothing() -> None:
    text = page_of(EXCHANGE)
    assert "default-src 'none'" in text
    assert not re.search(r"""(src|href)=["']?(?!#)""", text.partition("<body>")[2])


def test_foreign_names_are_text() -> None:
    exchange = EXCHANGE._replace(
        client_id=HOSTILE,
        subject=HOSTILE,
        error=HOSTILE,
        fault=HOSTILE,
        broker=HOSTILE,
        api=HOSTILE,
    )
    text = page_of(exchange, title=HOSTILE)
    assert "<img" not in text
    assert rows_of(text)[0][7] == HOSTILE


def test_an_empty_conversation_is_a_page() -> None:
    assert "No client sent a request." in page_of()


def test_exchanges_and_their_texts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "EXCHANGES_MAX", 5)
    monkeypatch.setattr(page_module, "TEXT_CHARACTERS_MAX", 300)
    exchanges = [EXCHANGE._replace(number=number) for number in range(1, 9)]
    text = page_of(*exchanges)
    rows = rows_of(text)
    assert len(rows) == 5
    assert [row[-1] is not None for row in rows] == [True, True, False, False, False]
    assert "Of 8 requests these are the first 5" in text
    assert "<dt>Requests</dt><dd>8</dd>" in text
    assert "The first 2 requests have all their fields here." in text


def test_a_long_text_is_cut() -> None:
    frames = next(frames for frames in recorded_frames() if len(frames.answer or b"") > 400)
    (row,) = rows_of(page_of(decode(frames, {})))
    assert str(row[-1]).count("\n") <= TEXT_LINES_MAX
