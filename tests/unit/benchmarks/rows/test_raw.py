"""The raw client counts and checks answers; others understand its frames."""

import socket
import struct
import threading
from collections.abc import Iterator

import pytest
from aiokafka.record.default_records import DefaultRecordBatch

from benchmarks import wire
from benchmarks.rows.raw import RawClient
from benchmarks.rows.session import RowError
from minibroker.kafka.protocol.header import parse_request_header
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from minibroker.kafka.protocol.primitives import Reader, Writer

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
        writer = Writer()
        ProduceResponse(responses=[answer]).write(writer, 9)
        body = b"\0" + writer.to_bytes()
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
