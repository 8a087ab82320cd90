"""A conversation in a page: every value for the script, and lines for readers without one."""

from __future__ import annotations

import json
import re
from html import unescape

from minibroker.kafka.protocol.messages.produce import ProduceRequest
from minibroker.pages.conversation import conversation
from minibroker.trace.exchange import Exchange

HOSTILE = "</script><script>&\u2028\x00"
EXCHANGE = Exchange(
    number=7,
    connection=2,
    client_address="127.0.0.1:5000",
    broker="127.0.0.1:9092",
    api="Produce",
    version=9,
    correlation_id=3,
    client_id="shop",
    at_ms=1_790_000_000_000.25,
    duration_ms=1.5,
    request_bytes=120,
    answer_bytes=51,
    subject="orders-0 → orders-0 @7",
    error="NOT_LEADER_OR_FOLLOWER",
    fault="delay 50 ms",
)


def data_of(markup: str) -> list[list[object]]:
    (text,) = re.findall(r'id="talk-data">(.*?)</script>', markup, re.DOTALL)
    rows: list[list[object]] = json.loads(text)
    return rows


def lines_of(markup: str) -> list[str]:
    (text,) = re.findall(r"<noscript><pre[^>]*>(.*?)</pre></noscript>", markup, re.DOTALL)
    return unescape(text).splitlines()


def test_every_value_of_an_exchange_is_there_for_the_script() -> None:
    (row,) = data_of(conversation([EXCHANGE], {7: "all fields"}))
    assert row == [*EXCHANGE[:15], None, "all fields"]


def test_an_exchange_without_an_answer_has_neither_duration_nor_size() -> None:
    silent = EXCHANGE._replace(duration_ms=None, answer_bytes=None)
    one_way = silent._replace(request=ProduceRequest(acks=0))
    rows = data_of(conversation([silent, one_way]))
    assert [(row[9], row[11], row[15], row[16]) for row in rows] == [
        (None, None, "no answer", None),
        (None, None, "no answer asked for", None),
    ]


def test_a_hostile_text_ends_no_element() -> None:
    hostile = EXCHANGE._replace(client_id=HOSTILE, subject=HOSTILE, fault=HOSTILE, api=HOSTILE)
    markup = conversation([hostile], {7: HOSTILE})
    assert markup.count("<script") == markup.count("</script>") == 1
    (row,) = data_of(markup)
    assert [row[index] for index in (4, 7, 12, 14, 16)] == [HOSTILE] * 5


def test_without_scripts_each_exchange_is_a_line() -> None:
    unanswered = EXCHANGE._replace(duration_ms=None, client_id=None, error=None, fault=None)
    assert lines_of(conversation([EXCHANGE, unanswered])) == [
        "Produce v9  shop to 127.0.0.1:9092  orders-0 → orders-0 @7  NOT_LEADER_OR_FOLLOWER"
        "  [delay 50 ms]  1.5 ms",
        "Produce v9  127.0.0.1:5000 to 127.0.0.1:9092  orders-0 → orders-0 @7  no answer",
    ]


def test_the_lines_are_the_last_ones() -> None:
    many = [EXCHANGE._replace(number=number, subject=f"t-{number}") for number in range(2_001)]
    markup = conversation(many)
    assert len(data_of(markup)) == 2_001
    assert len(lines_of(markup)) == 2_000
    assert "t-1 " in lines_of(markup)[0]


def test_no_exchange_is_a_sentence() -> None:
    assert conversation([]).strip() == '<p class="soft">No client sent a request.</p>'
