"""The picture of a short conversation."""

from __future__ import annotations

from xml.etree import ElementTree

from minibroker.kafka.protocol.messages.produce import ProduceRequest
from minibroker.trace.decode import decode
from minibroker.trace.exchange import Exchange
from minibroker.trace.picture import EXCHANGES_MAX, LABEL_CHARACTERS, LANES_MAX, arrows_of, picture
from tests.support.trace_frames import EXCHANGE, recorded_frames

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</text><script>alert(1)</script>\x00\x1b\n\ud800"


def exchange(number: int, at_ms: float, duration_ms: float | None = 1.0) -> Exchange:
    answer_bytes = None if duration_ms is None else 10
    return EXCHANGE._replace(
        number=number, at_ms=at_ms, duration_ms=duration_ms, answer_bytes=answer_bytes
    )


def drawn(*exchanges: Exchange) -> ElementTree.Element:
    return ElementTree.fromstring(picture(exchanges, "talk"))


def texts_of(root: ElementTree.Element) -> list[str]:
    """Return the labels of the rows."""
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


def count(root: ElementTree.Element, kind: str) -> int:
    """Return the number of elements with a class."""
    return sum(kind in element.get("class", "").split() for element in root.iter())


def test_an_answer_shares_a_row_if_nothing_is_between() -> None:
    first, second = exchange(1, 0.0, 5.0), exchange(2, 1.0, 1.0)
    rows = [
        (row.exchange.number, row.has_request, row.has_answer) for row in arrows_of([first, second])
    ]
    assert rows == [(1, True, False), (2, True, True), (1, False, True)]


def test_a_row_says_the_request_the_answer_or_both() -> None:
    waiting = exchange(1, 0.0, 5.0)._replace(
        subject="orders-0 → orders-0 @7", error="NOT_COORDINATOR"
    )
    root = drawn(waiting, exchange(2, 1.0, 1.0)._replace(subject="a → b"))
    assert [text for text in texts_of(root) if text.startswith("+")] == [
        "+0 ms Produce v9 orders-0",
        "+1 ms Produce v9 a → b",
        "+5 ms answer to Produce NOT_COORDINATOR orders-0 @7",
    ]
    assert count(root, "bar") == 1
    assert count(root, "tip") == 4


def test_errors_faults_and_silence_are_marked() -> None:
    root = drawn(
        exchange(1, 0.0)._replace(error="NOT_COORDINATOR"),
        exchange(2, 10.0)._replace(fault="delay"),
        exchange(3, 20.0, None),
        exchange(4, 30.0, None)._replace(request=ProduceRequest(acks=0)),
    )
    notes = [text.text for text in root.iter(f"{SVG}tspan") if "note" in text.get("class", "")]
    assert notes == ["NOT_COORDINATOR", "⚡ delay", "no answer"]
    assert count(root, "wrong") == 3  # its line, its tip and its name
    assert count(root, "bar") == 1


def test_foreign_text_is_text_and_short() -> None:
    hostile = EXCHANGE._replace(
        api=HOSTILE,
        client_id=HOSTILE,
        broker=HOSTILE,
        error=HOSTILE,
        fault=HOSTILE,
        subject=HOSTILE * 99,
    )
    root = ElementTree.fromstring(picture([hostile], HOSTILE))
    assert not list(root.iter(f"{SVG}script"))
    long = drawn(EXCHANGE._replace(subject="x" * 9_999))
    assert max(map(len, texts_of(long))) < LABEL_CHARACTERS + 20


def test_random_ids_are_shortened() -> None:
    member = EXCHANGE._replace(subject="member c1-3d254739-50f9-4a3f-9e01-e76eb4b8baed")
    assert texts_of(drawn(member))[-1].endswith("member c1-3d25…")


def test_a_picture_is_bounded() -> None:
    many = [
        exchange(number, number * 10.0)._replace(client_id=f"c{number}", broker=f"b{number % 30}")
        for number in range(1, EXCHANGES_MAX + 50)
    ]
    root = drawn(*many)
    assert count(root, "lane") <= LANES_MAX
    assert sum(text.startswith("+") for text in texts_of(root)) == EXCHANGES_MAX
    assert drawn() is not None


def test_dialogues_of_real_clients_are_drawn() -> None:
    exchanges = [decode(frames, {}) for frames in recorded_frames()[:150]]
    assert count(drawn(*exchanges), "tip") > 200
