"""Rows that a command line chooses; requests leave when they are due, answers find theirs."""

from __future__ import annotations

import gzip
import math
import re
import socket
import struct
import threading
from typing import TYPE_CHECKING

import pytest

from benchmarks import hostile, open_loop
from benchmarks.choices import Choices, row_parser
from benchmarks.importtime import by_package, parse
from benchmarks.open_loop import Stream, http_size, kafka_size, run, spread
from benchmarks.profile_broker import summary
from benchmarks.proxy import (
    WARM_BEATS,
    BeatTurn,
    LoadTurn,
    Pair,
    address_of,
    beat_lines,
    beat_times_us,
    load_lines,
)
from benchmarks.secured import KAFKA, MINIBROKER, Line
from benchmarks.secured_clients import PASSWORD, USER, LoginError, ScramLogin
from benchmarks.wire import WireError
from minibroker.kafka.records.batch import read_header
from minibroker.testing import Broker

if TYPE_CHECKING:
    from collections.abc import Iterator


REQUEST = b"ask!"
ANSWER = b"\0\0\0\3yes"
HTTP = b"HTTP/1.1 200 \r\nContent-Type: text/plain\r\nContent-Length: 5\r\nServer: x\r\n\r\nhello"


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A client's and a broker's."""
    pair = socket.socketpair()
    yield pair
    for end in pair:
        end.close()


def answer(peer: socket.socket, count: int) -> None:
    """Each request by itself, in pieces."""
    for _ in range(count):
        assert peer.recv(len(REQUEST), socket.MSG_WAITALL) == REQUEST
        peer.sendall(ANSWER[:5])
        peer.sendall(ANSWER[5:])


def test_every_request_is_sent_and_its_answer_kept(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    stream = Stream(ends[0], REQUEST, kafka_size)
    broker = threading.Thread(target=answer, args=(ends[1], 60))
    broker.start()
    for _ in range(2):
        stream.plan(spread(30, 3_000, seed=1))
        run([stream])
        assert stream.answers == [ANSWER] * 30
        assert len(stream.taken_s) == 30
        assert all(0 < duration_s < 10 for duration_s in stream.taken_s)
    broker.join()


def test_a_request_leaves_when_it_is_due_whether_others_are_answered_or_not(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    open_stream = Stream(ends[0], REQUEST, kafka_size)
    open_stream.plan([0.0, 0.5, 1.0])
    open_stream.send_due(0.6)
    assert ends[1].recv(100) == REQUEST * 2
    assert open_stream.next_due_s == 1.0
    assert not open_stream.is_done


def test_one_at_a_time_waits_for_its_answer(ends: tuple[socket.socket, socket.socket]) -> None:
    stream = Stream(ends[0], REQUEST, kafka_size, in_flight=1)
    stream.plan([0.0, 0.5])
    stream.send_due(0.6)
    assert ends[1].recv(100) == REQUEST
    assert stream.next_due_s == math.inf
    ends[1].sendall(ANSWER)
    stream.receive()
    assert stream.next_due_s == 0.5


def test_answers_that_come_together_are_told_apart(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    stream = Stream(ends[0], REQUEST, kafka_size)
    stream.plan([0.0, 0.0, 0.0])
    stream.send_due(0.0)
    ends[1].sendall(ANSWER * 2 + ANSWER[:3])
    stream.receive()
    assert stream.answers == [ANSWER] * 2
    ends[1].sendall(ANSWER[3:])
    stream.receive()
    assert stream.is_done


def test_a_client_that_closes_or_is_silent_ends_the_run(
    ends: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Stream(ends[0], REQUEST, kafka_size)
    stream.plan([0.0])
    monkeypatch.setattr(open_loop, "PATIENCE_S", 0.01)
    with pytest.raises(WireError, match="no answer within"):
        run([stream])
    assert ends[1].recv(100) == REQUEST
    ends[1].close()
    with pytest.raises(WireError, match="closed"):
        run([stream])


def test_times_are_spread_one_to_a_period_and_the_same_for_a_seed() -> None:
    due_s = spread(500, 100, seed=7)
    assert [int(moment_s * 100) for moment_s in due_s] == list(range(500))
    assert due_s == spread(500, 100, seed=7)
    assert due_s != spread(500, 100, seed=8)


@pytest.mark.parametrize(
    ("size_of", "whole", "head_bytes"), [(kafka_size, ANSWER, 4), (http_size, HTTP, len(HTTP) - 5)]
)
def test_a_size_is_known_as_soon_as_the_head_is_there(
    size_of: object, whole: bytes, head_bytes: int
) -> None:
    assert callable(size_of)
    for count in range(len(whole) + 3):
        expected = len(whole) if count >= head_bytes else 0
        assert size_of(bytearray(whole + b"...")[:count]) == expected


# Hostile requests are what they claim to be.


def test_a_small_batch_claims_many_records_at_one_offset() -> None:
    batch = hostile.unfolding_batch(130_000)
    assert len(batch) < 1_500
    header = read_header(batch)
    assert (header.count, header.last_offset_delta) == (130_000, 129_999)
    assert len(gzip.decompress(batch[61:])) == 130_000 * 7


def test_every_frame_has_its_size_in_front() -> None:
    for attack in hostile.attacks():
        frames = attack.frames
        while frames:
            (size,) = struct.unpack_from(">i", frames)
            assert 0 < size <= len(frames) - 4, attack.label
            frames = frames[4 + size :]


# The lines of `benchmarks.secured`, and its client that logs in.


def test_a_line_says_whether_its_bar_is_met() -> None:
    values = {MINIBROKER: 120.0, KAFKA: 100.0}
    assert Line("logins", values, 1.2, 1.0, True).render() == (
        "| logins | 120 | 100 | 1.20 | ≥ 1 | yes |"
    )
    assert Line("p99, ms", {MINIBROKER: 3.0}, 3.0, 2.0, False, " of alone").render() == (
        "| p99, ms | 3.00 | - | 3.00 of alone | ≤ 2 | NO |"
    )
    assert Line("alone", values, None, 0.0, True).render() == "| alone | 120 | 100 | - |  |  |"


def test_the_client_logs_in() -> None:
    with Broker(security="SASL_PLAINTEXT", users={USER: PASSWORD}) as broker:
        ScramLogin(int(broker.bootstrap.rpartition(":")[2])).run()


def test_the_client_says_that_it_was_refused() -> None:
    with (
        Broker(security="SASL_PLAINTEXT", users={USER: "another"}) as broker,
        pytest.raises(LoginError, match=re.escape("error 58")),
    ):
        ScramLogin(int(broker.bootstrap.rpartition(":")[2])).run()


# The turns of `benchmarks.proxy`.


def test_the_cost_of_a_proxy_is_that_of_the_median_turn() -> None:
    turns = [
        BeatTurn(Pair(70.0, 110.0), Pair(100.0, 100.0 + more), 20.0) for more in (90.0, 70.0, 900.0)
    ]
    lines = [line.render() for line in beat_lines(turns)]
    assert lines == [
        "| Heartbeat, p50, µs | 70 | 110 |  |  |  |",
        "| Heartbeat, p99, µs | 100 | 190 | +90 | ≤ +100 | yes |",
        "| CPU of the proxy for a Heartbeat, µs | - | 20.00 |  |  |  |",
    ]
    loads = [LoadTurn(Pair(direct, 40_000.0), 2.0) for direct in (40_000.0, 50_000.0, 50_000.0)]
    (rate, _) = load_lines(loads)
    assert rate.render() == (
        "| ProducerPerformance, 1 KB, records/s | 50,000 | 40,000 | 0.80x | ≥ 0.9x | NO |"
    )


def test_beats_are_answered_one_after_the_other() -> None:
    with Broker() as broker:
        times_us = beat_times_us(broker.bootstrap, 20)
        assert len(times_us) == 20
        assert times_us == sorted(times_us)
        beats = [request for request in broker.requests if request.api == "Heartbeat"]
        assert len(beats) == 20 + WARM_BEATS


def test_the_address_of_a_proxy_is_in_its_first_line() -> None:
    assert address_of("") is None
    line = "minibroker proxy listening on 127.0.0.1:9192, to 127.0.0.1:9092\n"
    assert address_of(line) == "127.0.0.1:9192"


# The start-up budget read out of `-X importtime`.


IMPORTS = """\
import time: self [us] | cumulative | imported package
import time:       300 |        300 |     uvloop.loop
import time:       200 |        500 |   uvloop
some line of the broker's own
import time:        50 |         50 |   minibroker.broker.server.listener
import time:        70 |        620 | minibroker.broker.app
"""


def test_importtime_lines_are_read_and_others_left() -> None:
    imports = parse(IMPORTS)
    assert [module.module for module in imports] == [
        "uvloop.loop",
        "uvloop",
        "minibroker.broker.server.listener",
        "minibroker.broker.app",
    ]
    assert imports[0].depth == 2
    assert by_package(imports) == {
        "uvloop": 500,
        "minibroker.broker.server": 50,
        "minibroker.broker.app": 70,
    }


# Sampled stacks, as printed.


def test_summary_of_stacks() -> None:
    stacks = ["3 a.py:main:1;b.py:work:7", "1 a.py:main:2;b.py:wait:9;b.py:work:8"]
    text = summary(stacks, top=5)
    assert "4 samples" in text
    own, inclusive, lines = text.split("\n\n")[1:]
    assert "100.0%  b.py:work" in own
    assert "25.0%  b.py:wait" in inclusive
    assert "main" not in inclusive
    assert "75.0%  b.py:work:7" in lines


ROWS = ("start", "raw", "load")


def test_no_row_is_all_rows() -> None:
    options = row_parser("benchmarks.thing", ROWS).parse_args([])
    assert (options.rows, options.quick) == (list(ROWS), False)


def test_rows_stand_as_they_are_chosen() -> None:
    options = row_parser("benchmarks.thing", ROWS).parse_args(["load", "raw", "--quick"])
    assert (options.rows, options.quick) == (["load", "raw"], True)


def test_an_unknown_row_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        row_parser("benchmarks.thing", ROWS).parse_args(["raw", "lode"])
    assert "'lode' is none of start, raw, load" in capsys.readouterr().err


def test_names_with_commas_come_in_the_order_of_the_list() -> None:
    assert Choices(ROWS)("load,start") == ["start", "load"]
