"""Damaged frames against a live broker: an answer or the end of the connection, never a standstill.

Good requests of every served API are cut, stretched and overwritten. The client then closes its
side, and the broker must close its own; a new connection must be answered. What once went wrong
stays below as an example.
"""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from minibroker.handlers.registry import supported_versions
from tests.support.batches import Item, batch
from tests.support.codec import codec_of
from tests.support.probe import answers_metadata
from tests.support.wire import WireClient, request_header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.broker import Minibroker

END_SECONDS = 60.0
GROWTH_BYTES_MAX = 80_000_000

TOPIC = "fuzz"
RECORDS = batch(Item(b"value", b"key", None, ((b"h", b"1"),)), b"x" * 40)

PLACE = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}

# One good request an API: what is left out has the protocol's default.
REQUESTS: dict[str, dict[str, Any]] = {
    "produce": {
        "acks": -1,
        "timeout_ms": 100,
        "topic_data": [{"name": TOPIC, "partition_data": [{"index": 0, "records": RECORDS}]}],
    },
    "fetch": {"max_wait_ms": 1, "topics": [{"topic": TOPIC, "partitions": [PLACE]}]},
    "list_offsets": {
        "topics": [{"name": TOPIC, "partitions": [{"partition_index": 0, "timestamp": -1}]}]
    },
    "metadata": {"topics": [{"name": TOPIC}]},
    "api_versions": {"client_software_name": "fuzz", "client_software_version": "1"},
    "init_producer_id": {"transactional_id": None, "transaction_timeout_ms": 1},
    "offset_for_leader_epoch": {
        "topics": [{"topic": TOPIC, "partitions": [{"partition": 0, "leader_epoch": 0}]}]
    },
    "describe_configs": {"resources": [{"resource_type": 2, "resource_name": TOPIC}]},
    "describe_log_dirs": {"topics": [{"topic": TOPIC, "partitions": [0]}]},
    "describe_cluster": {},
    "list_config_resources": {},
    "describe_topic_partitions": {"topics": [{"name": TOPIC}]},
}

BY_ID_FROM = {"produce": 13, "fetch": 13}


SERVED = supported_versions()


def good_frame(api: str, version: int) -> bytes:
    """A request that the broker answers, without its length."""
    codec = codec_of(api)
    fields = dict(REQUESTS[api])
    if version >= BY_ID_FROM.get(api, 1 << 15):
        key = "topic_data" if api == "produce" else "topics"
        named = "name" if api == "produce" else "topic"
        fields[key] = [{k: v for k, v in topic.items() if k != named} for topic in fields[key]]
    if api == "api_versions" and version < 3:
        fields = {}
    head = request_header(codec.api_key, version, 1, "fuzz", codec.is_flexible(version))
    return head + codec.encode_request(version, fields)


def all_frames() -> list[bytes]:
    """Every version that is served of every request above."""
    found = []
    for api in REQUESTS:
        oldest, newest = SERVED[codec_of(api).api_key]
        found += [good_frame(api, version) for version in range(oldest, newest + 1)]
    return found


FRAMES = all_frames()


@st.composite
def damaged_frames(draw: st.DrawFn) -> bytes:
    """A good frame, its length in front, after one to four wounds."""
    body = bytearray(draw(st.sampled_from(FRAMES)))
    raw = bytearray(struct.pack(">i", len(body)) + body)
    for _ in range(draw(st.integers(1, 4))):
        position = draw(st.integers(0, len(raw) - 1))
        wound = draw(st.sampled_from(["flip", "byte", "cut", "insert", "extreme"]))
        if wound == "flip":
            raw[position] ^= 1 << draw(st.integers(0, 7))
        elif wound == "byte":
            raw[position] = draw(st.integers(0, 255))
        elif wound == "cut":
            del raw[max(1, position) :]
        elif wound == "insert":
            raw[position:position] = draw(st.binary(min_size=1, max_size=20))
        else:
            raw[position : position + 4] = draw(
                st.sampled_from(
                    [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\0"]
                )
            )
    if draw(st.booleans()):  # a right length again, so that what is behind it is looked at
        raw[:4] = struct.pack(">i", len(raw) - 4)
    return bytes(raw)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minibroker]:
    """A broker of its own, so that what it grows by is the fuzzing's."""
    from tests.support.broker import Minibroker  # noqa: PLC0415  # at run time only here

    directory = tmp_path_factory.mktemp("fuzz")
    broker = Minibroker(directory / "data", directory / "broker.log", topics=[TOPIC])
    broker.start()
    yield broker
    broker.stop()


def ends(broker: Minibroker, raw: bytes) -> bool:
    """Send, close our side, read to the end: whether the broker closes its side in time."""
    with WireClient(broker.host, broker.port, timeout_s=END_SECONDS) as client:
        try:
            client.send_bytes(raw)
            client.socket.shutdown(socket.SHUT_WR)
            while client.socket.recv(1 << 16):
                continue
        except (ConnectionResetError, BrokenPipeError):
            return True
        except TimeoutError:
            return False
    return True


def test_the_frames_are_good(fuzzed: Minibroker) -> None:
    """Undamaged, each is answered: otherwise the damage would show nothing."""
    for frame in FRAMES:
        with WireClient(fuzzed.host, fuzzed.port) as client:
            client.send_frame(frame)
            assert client.receive_frame()[:4] == struct.pack(">i", 1)


@settings(
    max_examples=400,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(raw=damaged_frames())
@example(raw=b"\x00\x00\x00\x04\x00\x03\x00\x09")
@example(raw=struct.pack(">i", 14) + b"\x00\x12\x00\x03\x00\x00\x00\x01\xff\xff\x00\xff\xff\xff")
def test_a_damaged_frame_ends_well(fuzzed: Minibroker, raw: bytes) -> None:
    assert ends(fuzzed, raw), raw.hex()


def test_the_fuzzed_broker_is_as_good_as_new(fuzzed: Minibroker) -> None:
    """After all of that: it answers, it did not swell, and no traceback is in its log."""
    assert answers_metadata(fuzzed.host, fuzzed.port)
    assert psutil.Process(fuzzed.pid).memory_info().rss < GROWTH_BYTES_MAX + 45_000_000
    assert "Traceback" not in fuzzed.log_path.read_text()
