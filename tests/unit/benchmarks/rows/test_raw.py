"""The raw client counts and checks answers; others understand its frames."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from aiokafka.record.default_records import DefaultRecordBatch

from benchmarks import wire
from benchmarks.metrics import KFAKE, METRICS, SUBJECT
from benchmarks.peers import all_peers
from benchmarks.plan import FULL, QUICK
from benchmarks.results import Results
from benchmarks.rows import fixture, scrapes
from benchmarks.rows.latency import percentile
from benchmarks.rows.load import parse_assigned, parse_consumer, parse_producer
from benchmarks.rows.quotas import (
    WINDOW_S,
    Sample,
    complete,
    let_through,
    parse_detailed,
    parse_progress,
    rate_after_first_window,
)
from benchmarks.rows.raw import RawClient
from benchmarks.rows.session import RowError
from minibroker.kafka.protocol.header import parse_request_header
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from minibroker.kafka.protocol.primitives import Reader
from tests.support.message_bytes import body_of

if TYPE_CHECKING:
    from pathlib import Path


TOPIC = "bench-raw"
BATCH = wire.one_record_batch(b"v" * 100)


class Answering(threading.Thread):
    """A listener that answers Produce v9 frames of one size; `wrong_at` numbers a bad answer."""

    def __init__(self, wrong_at: int = -1) -> None:
        super().__init__(daemon=True)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._wrong_at = wrong_at

    def run(self) -> None:
        peer, _ = self._server.accept()
        frame_bytes = len(wire.produce_frame(TOPIC, BATCH))
        pending = b""
        offset = 0
        with self._server, peer:
            while part := peer.recv(1 << 16):
                pending += part
                while len(pending) >= frame_bytes:
                    peer.sendall(self._answer(pending[8:12], offset))
                    pending = pending[frame_bytes:]
                    offset += 1

    def _answer(self, correlation_id: bytes, offset: int) -> bytes:
        error = 7 if offset == self._wrong_at else 0
        name = TOPIC.encode()
        body = (
            b"\0\2" + bytes([len(name) + 1]) + name + b"\2" + struct.pack(">ihq", 0, error, offset)
        )
        body += struct.pack(">qq", -1, 0) + b"\1\0\0\0" + struct.pack(">i", 0) + b"\0"
        return struct.pack(">i", len(body) + 4) + correlation_id + body


@pytest.fixture
def answering() -> Iterator[Answering]:
    server = Answering()
    server.start()
    yield server
    server.join(10)


@pytest.mark.parametrize("in_flight", [1, 5, 50])
def test_a_burst_is_counted_and_checked(answering: Answering, in_flight: int) -> None:
    connection = wire.Connection(answering.port)
    client = RawClient(connection, TOPIC, BATCH)
    assert client.run(in_flight, 0.02).requests_per_s > 0
    assert client.run(in_flight, 0.02).requests_per_s > 0  # offsets go on where they were
    connection.close()


def test_a_wrong_answer_is_noticed() -> None:
    server = Answering(wrong_at=20)
    server.start()
    connection = wire.Connection(server.port)
    client = RawClient(connection, TOPIC, BATCH)
    with pytest.raises(RowError, match=r"answer 19 is \(\d+, 19, 7, 20\)"):
        client.run(50, 0.01)
    connection.close()
    server.join(10)


def test_each_of_several_partitions_is_asked_and_read() -> None:
    for count in (1, 6, 12, 100):
        request = wire.produce_frame(TOPIC, BATCH, partitions=count)
        start = 4 + parse_request_header(memoryview(request)[4:])[-1]
        (topic,) = ProduceRequest.read(Reader(request, start), 9).topic_data
        assert [data.index for data in topic.partition_data] == list(range(count))
        results = [
            PartitionProduceResponse(index=index, base_offset=10 + index) for index in range(count)
        ]
        answer = TopicProduceResponse(name=TOPIC, partition_responses=results)
        body = b"\0" + body_of(ProduceResponse(responses=[answer]), 9)
        expected = [(0, 10 + index) for index in range(count)]
        assert wire.produce_answers(body, TOPIC, count) == expected


def test_the_batch_is_valid_for_another_reader() -> None:
    batch = DefaultRecordBatch(bytearray(BATCH))
    assert batch.validate_crc()
    (record,) = list(batch)
    assert (record.offset, record.key, record.value) == (0, None, b"v" * 100)


def test_a_frame_begins_with_its_own_size() -> None:
    frame = wire.produce_frame(TOPIC, BATCH)
    (size_bytes, key, version) = struct.unpack_from(">ihh", frame)
    assert (size_bytes, key, version) == (len(frame) - 4, 0, 9)


# Parsing of the load tools' output.


def test_producer_total_is_the_line_with_percentiles() -> None:
    output = (
        "901 records sent, 180.2 records/sec (17.19 MB/sec), 9.9 ms avg latency, 44.0 ms max\n"
        "5000 records sent, 1234.5 records/sec (11.77 MB/sec), 9.0 ms avg latency, "
        "70.00 ms max latency, 3 ms 50th, 9 ms 95th, 10 ms 99th, 12 ms 99.9th.\n"
    )
    assert parse_producer(output) == 1234.5


def test_consumer_rate_is_the_column_of_that_name() -> None:
    output = (
        "some warning, with a comma\n"
        "start.time, end.time, MB.sec, fetch.time.ms, fetch.MB.sec\n"
        "2026-11-21 01:00:00:000, 2026-11-21 01:00:01:000, 1.5, 900, 2.25\n"
    )
    assert parse_consumer(output) == 2.25


def test_assigned_rate_is_in_mebibytes() -> None:
    assert parse_assigned("read 2097152 bytes in 500000000 ns\n") == 4.0


@pytest.mark.parametrize("parse", [parse_producer, parse_consumer, parse_assigned])
def test_output_without_a_result_is_an_error_with_its_end(parse: object) -> None:
    assert callable(parse)
    with pytest.raises(RowError, match="no broker there"):
        parse("Exception: no broker there")


def test_percentile() -> None:
    times = [float(value) for value in range(100, 0, -1)]
    assert percentile(times, 0.50) == 51.0
    assert percentile(times, 0.99) == 100.0
    assert percentile([7.0], 0.99) == 7.0


# The row runs, and only where there is a fixture.


def test_it_measures_minibroker_alone(tmp_path: Path) -> None:
    results = Results([SUBJECT, KFAKE])
    for peer in all_peers():
        if peer.name in results.brokers:
            fixture.measure(peer, tmp_path, results, QUICK._replace(fixtures=2))
    for metric in METRICS:
        if metric.row == "fixture":
            values = results.values(metric.name)
            assert list(values) == [SUBJECT]
            assert values[SUBJECT] > 0
    assert results.notes[KFAKE]["fixture"].startswith("not to be had")


# Figures from a throttled client's progress.


MB = 1_000_000


def cycle(limit_mb: float, seconds: int) -> list[Sample]:
    """A burst of a whole window's bytes at the begin of each window, then nothing."""
    step_s = 0.1
    samples = []
    for step in range(int(seconds / step_s)):
        at_s = step * step_s
        bursts = int(at_s // WINDOW_S) + 1
        samples.append(Sample(100 + at_s, bursts * limit_mb * WINDOW_S * MB if step else 0.0))
    return samples


def test_the_rate_over_whole_windows_is_the_limit_wherever_the_bursts_fall() -> None:
    samples = cycle(2.0, 30)
    assert rate_after_first_window(samples) == pytest.approx(2.0)
    assert let_through(samples, 20) == pytest.approx(44.0)


def test_a_rate_needs_two_windows() -> None:
    with pytest.raises(RowError, match="less than two windows"):
        rate_after_first_window(cycle(2.0, 20))


def test_a_run_begins_with_nothing_and_ends_with_what_came_last() -> None:
    whole = complete([Sample(5.0, 10.0), Sample(6.0, 30.0)], 20)
    assert whole[0] == (4.9, 0.0)
    assert whole[-1] == (24.9, 30.0)
    assert complete(whole, 20) == whole


def test_progress_of_the_assigned_consumer() -> None:
    output = "at 100 0\nwarning\nat 1100000000 2000\nread 5 bytes in 6 ns\n"
    assert parse_progress(output) == [(1e-7, 0.0), (1.1, 2000.0)]


def test_progress_of_consumer_performance() -> None:
    output = (
        "time, threadId, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec\n"
        "010203500, 0, 0.5000, 5.0, 100, 1000.0, 0, 0, 0, 0\n"
        "235959000, 0, 2.0000, 5.0, 100, 1000.0, 0, 0, 0, 0\n"
        "a line, with, commas, in it\n"
    )
    assert parse_detailed(output) == [(3723.5, 524288.0), (86399.0, 2097152.0)]


# Figures from a round's blocks; and the row runs against a broker.


NAMES = {metric.name for metric in METRICS if metric.row == "scrapes"}


def value(results: Results, metric: str) -> float:
    return results.values(metric)[SUBJECT]


def test_costs_are_those_of_a_round_whatever_the_machine_does_between_rounds() -> None:
    moods = [1.0, 50.0, 3.0, 9.0, 1.5, 7.0, 20.0]
    results = Results([SUBJECT])
    scrapes.report(
        {
            "scrapes_alone": moods,
            "scrapes_live": [mood * 1.01 for mood in moods],
            "scrapes_during": [mood * 1.05 for mood in moods],
        },
        SUBJECT,
        results,
    )
    assert value(results, "scrapes_control") == pytest.approx(1)
    assert value(results, "scrapes_cost") == pytest.approx(5)
    assert value(results, "scrapes_cost_least") == pytest.approx(5)
    assert value(results, "scrapes_cost_most") == pytest.approx(5)
    assert value(results, "scrapes_alone") == 7.0
    for metric in METRICS:
        if metric.row == "scrapes" and metric.must:
            assert metric.verdict(results.values(metric.name)) == "must"


def test_a_cost_that_may_be_above_the_bar_is_short_of_it() -> None:
    results = Results([SUBJECT])
    during = [1.05, 1.2, 1.05, 1.05, 0.9, 1.0]
    p99s_ms = {"scrapes_alone": [1.0] * 6, "scrapes_live": [1.0] * 6, "scrapes_during": during}
    scrapes.report(p99s_ms, SUBJECT, results)
    verdicts = {metric.name: metric.verdict(results.values(metric.name)) for metric in METRICS}
    assert (verdicts["scrapes_cost"], verdicts["scrapes_cost_most"]) == ("must", "SHORT")


@pytest.mark.parametrize(
    ("rounds", "scatter", "is_enough"),
    [(49, 0.0, False), (50, 0.02, True), (50, 0.2, False), (149, 0.2, False), (150, 0.2, True)],
)
def test_rounds_go_on_until_the_interval_is_narrow_or_time_is_up(
    rounds: int, scatter: float, is_enough: bool
) -> None:
    during = [1.0 + scatter * (number % 2 * 2 - 1) for number in range(rounds)]
    p99s_ms = {"scrapes_alone": [1.0] * rounds, "scrapes_during": during}
    assert scrapes.is_enough(p99s_ms, FULL) == is_enough


def test_it_measures_minibroker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrapes, "BLOCK_REQUESTS", 100)
    monkeypatch.setattr(scrapes, "BLOCK_SCRAPES", 2)
    monkeypatch.setattr(scrapes, "TOPICS", 2)
    results = Results([SUBJECT])
    peer = next(peer for peer in all_peers() if peer.name == SUBJECT)
    scrapes.measure(peer, tmp_path, results, QUICK._replace(scrapes=4, scrapes_most=4))
    assert {name for name in NAMES if results.values(name)} == NAMES
    assert value(results, "scrapes_alone") > 0
