"""The line of an exchange."""

from __future__ import annotations

from minibroker.trace.line import clock_text, to_line
from tests.support.trace_frames import EXCHANGE


def test_a_line_has_time_api_client_subject_and_duration() -> None:
    assert to_line(EXCHANGE) == (
        "22:13:20.123 Produce v9 shop → 127.0.0.1:9092: orders-0: ok, 3.2 ms"
    )


def test_a_line_has_the_error_and_the_fault() -> None:
    line = to_line(EXCHANGE._replace(error="NOT_LEADER_OR_FOLLOWER", fault="error\n", subject=""))
    assert line.endswith("→ 127.0.0.1:9092: NOT_LEADER_OR_FOLLOWER, 3.2 ms, fault: error\\n")
    assert to_line(EXCHANGE._replace(answer_bytes=None)).endswith(": orders-0: no answer")


def test_a_client_without_an_id_has_its_address() -> None:
    assert " 127.0.0.1:50000 → " in to_line(EXCHANGE._replace(client_id=None))
    long = to_line(EXCHANGE._replace(client_id="\n" + "x" * 32_000))
    assert len(long) < 160
    assert long.isprintable()


def test_a_time_of_no_calendar_is_a_dash() -> None:
    assert clock_text(1e300) == "-"
