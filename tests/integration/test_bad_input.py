"""Bad bytes, bad arguments, a bad disk: Kafka's error or one clear sentence, and others are served.

Every test on the wire ends with the same proof: a new connection is answered.
"""

from __future__ import annotations

import resource
import socket
import struct
import subprocess
import sys
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.support.batches import batch
from tests.support.codec import codec_of
from tests.support.probe import METADATA_V1_NO_TOPICS, answers_metadata
from tests.support.waiting import wait_until
from tests.support.wire import WireClient, request_header

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.broker import Minibroker

EXIT_SECONDS = 180
PRODUCE, METADATA, API_VERSIONS = 0, 3, 18

INVALID_TOPIC_EXCEPTION = 17
KAFKA_STORAGE_ERROR = 56


def header(key: int, version: int, *, flexible: bool = False) -> bytes:
    """Return a request header from a client called `bad`."""
    return request_header(key, version, 1, "bad", flexible)


def framed(body: bytes) -> bytes:
    """Return `body` behind its length."""
    return struct.pack(">i", len(body)) + body


GARBAGE = {
    "length negative": struct.pack(">i", -1),
    "length most negative": struct.pack(">i", -(2**31)),
    "length huge": struct.pack(">i", 2**31 - 1),
    "length just over the limit": struct.pack(">i", 104_857_601),
    "empty frame": framed(b""),
    "half a header": framed(b"\x00\x03\x00"),
    "client id longer than the frame": framed(struct.pack(">hhih", METADATA, 1, 1, 500) + b"x"),
    "client id length negative": framed(struct.pack(">hhih", METADATA, 1, 1, -7)),
    "unknown key": framed(header(999, 0)),
    "negative key": framed(header(-5, 0)),
    "unknown version": framed(header(METADATA, 99, flexible=True) + b"\x00" * 20),
    "negative version": framed(header(METADATA, -1)),
    "key without handler": framed(header(55, 0)),
    "body missing": framed(header(METADATA, 1)),
    "array longer than the frame": framed(header(METADATA, 1) + struct.pack(">i", 1_000_000)),
    "array count huge": framed(header(METADATA, 1) + struct.pack(">i", 2**31 - 1)),
    "varint never ends": framed(header(METADATA, 9, flexible=True) + b"\xff" * 12),
    "tagged fields never end": framed(
        request_header(METADATA, 9, 1, "bad", is_flexible=False) + b"\xff\xff\xff\xff\x0f"
    ),
    "http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "tls hello": bytes.fromhex("1603010200010001fc0303") + b"\x00" * 64,
}


@pytest.mark.parametrize("name", GARBAGE)
def test_bad_bytes_close_the_connection_and_nothing_else(name: str, minibroker: Minibroker) -> None:
    with WireClient(minibroker.host, minibroker.port) as client:
        client.send_bytes(GARBAGE[name])
        assert client.is_closed_by_peer()
    assert answers_metadata(minibroker.host, minibroker.port)


@pytest.mark.parametrize("size", [1, 3, 4, 5, 12, 17])
def test_a_client_that_leaves_in_the_middle(size: int, minibroker: Minibroker) -> None:
    with WireClient(minibroker.host, minibroker.port) as client:
        client.send_bytes(framed(METADATA_V1_NO_TOPICS)[:size])
    assert answers_metadata(minibroker.host, minibroker.port)


def test_one_byte_at_a_time_is_no_error(minibroker: Minibroker) -> None:
    with WireClient(minibroker.host, minibroker.port) as client:
        for byte in framed(METADATA_V1_NO_TOPICS):
            client.send_bytes(bytes([byte]))
        assert struct.unpack(">i", client.receive_frame()[:4]) == (7,)


def test_a_name_that_is_no_text_is_an_illegal_name(minibroker: Minibroker) -> None:
    """Bytes that are not UTF-8 are read as Kafka reads them: with replacement characters."""
    with WireClient(minibroker.host, minibroker.port) as client:
        client.send_frame(header(METADATA, 1) + struct.pack(">ih", 1, 2) + b"\xff\xfe")
        answer = codec_of("metadata").decode_response(1, client.receive_frame()[4:])
    assert [topic["error_code"] for topic in answer["topics"]] == [INVALID_TOPIC_EXCEPTION]


def test_many_requests_in_one_piece_are_answered_in_order(minibroker: Minibroker) -> None:
    count = 500
    frames = [
        framed(request_header(METADATA, 1, n, "w", False) + b"\0\0\0\0") for n in range(count)
    ]
    with WireClient(minibroker.host, minibroker.port) as client:
        client.send_bytes(b"".join(frames))
        answers = [struct.unpack_from(">i", client.receive_frame())[0] for _ in range(count)]
    assert answers == list(range(count))


def test_a_good_request_before_bad_bytes_is_answered(minibroker: Minibroker) -> None:
    with WireClient(minibroker.host, minibroker.port) as client:
        client.send_bytes(framed(METADATA_V1_NO_TOPICS) + struct.pack(">i", -1))
        assert struct.unpack_from(">i", client.receive_frame()) == (7,)
        assert client.is_closed_by_peer()


def test_bad_bytes_are_logged_once_with_the_client(new_broker: Callable[..., Minibroker]) -> None:
    broker = new_broker()
    with WireClient(broker.host, broker.port) as client:
        host, port = client.socket.getsockname()
        client.send_bytes(GARBAGE["length huge"])
        assert client.is_closed_by_peer()
    broker.stop()
    lines = [line for line in broker.log_path.read_text().splitlines() if f"{host}:{port}" in line]
    assert len(lines) == 1, broker.log_path.read_text()
    assert "2147483647" in lines[0]
    assert "Traceback" not in broker.log_path.read_text()


def test_a_silent_client_does_not_stop_the_others(minibroker: Minibroker) -> None:
    """It announces 100 MB, sends a little, waits: others are served, and memory does not grow."""
    process = psutil.Process(minibroker.pid)
    old_bytes = process.memory_info().rss
    silent = [WireClient(minibroker.host, minibroker.port) for _ in range(20)]
    for client in silent:
        client.send_bytes(struct.pack(">i", 100_000_000) + b"\x00" * 1000)
    assert answers_metadata(minibroker.host, minibroker.port)
    assert process.memory_info().rss - old_bytes < 50_000_000
    for client in silent:
        client.close()


def test_request_limit_is_the_configured_one(new_broker: Callable[..., Minibroker]) -> None:
    broker = new_broker(settings={"socket.request.max.bytes": "1000"})
    with WireClient(broker.host, broker.port) as client:
        client.send_bytes(struct.pack(">i", 1001))
        assert client.is_closed_by_peer()
    assert answers_metadata(broker.host, broker.port)


def test_connection_limit_closes_the_newcomer(new_broker: Callable[..., Minibroker]) -> None:
    """The fourth connection of one address is closed; when one leaves, the next is served."""
    broker = new_broker(settings={"max.connections.per.ip": "3"})
    clients = [WireClient(broker.host, broker.port) for _ in range(3)]
    for client in clients:
        client.call("api_versions", 0)
    with WireClient(broker.host, broker.port) as newcomer:
        assert newcomer.is_closed_by_peer()
    clients.pop().close()
    clients[0].call("api_versions", 0)
    for client in clients:
        client.close()


# --- the disk -----------------------------------------------------------------------------------


def test_a_full_disk_loses_nothing_that_was_acknowledged(
    new_broker: Callable[..., Minibroker],
) -> None:
    """A file size limit stands in for the full disk: the same error on write, no root needed."""
    broker = new_broker()
    with WireClient(broker.host, broker.port) as client:
        assert produce(client, b"first") == (0, 0)
        limit = 50_000
        psutil.Process(broker.pid).rlimit(psutil.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        acknowledged = 1
        for _ in range(100):
            error, offset = produce(client, b"x" * 1000)
            if error:
                break
            assert offset == acknowledged
            acknowledged += 1
        assert error == KAFKA_STORAGE_ERROR
        assert acknowledged > 10
        assert answers_metadata(broker.host, broker.port)
    broker.kill()
    broker.start()
    with WireClient(broker.host, broker.port) as client:
        error, offset = produce(client, b"after")
        assert (error, offset) == (0, acknowledged)


def produce(client: WireClient, value: bytes) -> tuple[int, int]:
    """Send one record to topic `disk`, which the first request makes; return (error, offset)."""
    client.call("metadata", 4, topics=[{"name": "disk"}], allow_auto_topic_creation=True)
    answer = client.call(
        "produce",
        7,
        acks=-1,
        timeout_ms=5000,
        topic_data=[{"name": "disk", "partition_data": [{"index": 0, "records": batch(value)}]}],
    )
    partition_answer = answer["responses"][0]["partition_responses"][0]
    return partition_answer["error_code"], partition_answer["base_offset"]


# --- the start ----------------------------------------------------------------------------------


def serve(*arguments: str) -> tuple[int, str]:
    """Run `minibroker serve` where it must not start; return (exit code, stderr)."""
    done = subprocess.run(
        [sys.executable, "-m", "minibroker", "serve", *arguments],
        capture_output=True,
        text=True,
        timeout=EXIT_SECONDS,
        check=False,
    )
    assert done.stdout == "", "said that it serves"
    return done.returncode, done.stderr


def one_sentence(stderr: str) -> str:
    """Return the only line of stderr that is no log line."""
    assert "Traceback" not in stderr, stderr
    lines = [line for line in stderr.splitlines() if line.startswith("minibroker")]
    assert len(lines) == 1, stderr
    return lines[0]


def test_port_in_use(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        code, stderr = serve("--listen", f"127.0.0.1:{port}", "--data-dir", str(tmp_path / "data"))
    assert code == 1
    assert str(port) in one_sentence(stderr)


def test_data_directory_in_use(new_broker: Callable[..., Minibroker]) -> None:
    broker = new_broker()
    code, stderr = serve("--listen", "127.0.0.1:0", "--data-dir", str(broker.data_dir))
    assert code == 1
    assert str(broker.data_dir) in one_sentence(stderr)
    assert answers_metadata(broker.host, broker.port)


def test_data_directory_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("no directory")
    code, stderr = serve("--listen", "127.0.0.1:0", "--data-dir", str(path))
    assert code == 1
    assert str(path) in one_sentence(stderr)
    assert path.read_text() == "no directory"


def test_data_directory_without_permission() -> None:
    """No user, not even root, may make a directory below /proc."""
    code, stderr = serve("--listen", "127.0.0.1:0", "--data-dir", "/proc/minibroker-data")
    assert code == 1
    assert "/proc/minibroker-data" in one_sentence(stderr)


@pytest.mark.parametrize(
    ("setting", "names"),
    [
        ("num.partitions=many", ("num.partitions", "many")),
        ("num.partitions=0", ("num.partitions", "0")),
        ("log.cleanup.policy=shred", ("log.cleanup.policy", "shred")),
        ("message.max.bytes=-1", ("message.max.bytes", "-1")),
    ],
)
def test_wrong_settings_are_named(setting: str, names: tuple[str, ...], tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    code, stderr = serve("--listen", "127.0.0.1:0", "--data-dir", data, "--set", setting)
    assert code == 1
    sentence = one_sentence(stderr)
    assert all(name in sentence for name in names), sentence


@pytest.mark.parametrize(
    "arguments",
    [
        ("--no-such-flag",),
        ("--listen", "nowhere"),
        ("--listen", "127.0.0.1:99999"),
        ("--set", "no-equals-sign"),
        ("--topic", "a:b:c:d"),
    ],
)
def test_wrong_usage_exits_2(arguments: tuple[str, ...], tmp_path: Path) -> None:
    code, stderr = serve(*arguments, "--data-dir", str(tmp_path / "data"))
    assert code == 2, stderr
    assert "Traceback" not in stderr


def test_unknown_settings_are_one_warning(new_broker: Callable[..., Minibroker]) -> None:
    broker = new_broker(settings={"no.such.key": "1", "nor.this": "2"})
    broker.stop()
    lines = [line for line in broker.log_path.read_text().splitlines() if "no.such.key" in line]
    assert len(lines) == 1
    assert "nor.this" in lines[0]


HOSTILE = "g\n2026-11-29 12:00:00,000 ERROR   minibroker: all data are lost\x1b[2J\u202e"
"""A name that would be a line of its own, and would clear a terminal."""


def test_names_of_clients_stay_within_their_line_of_the_log(
    new_broker: Callable[..., Minibroker],
) -> None:
    broker = new_broker()
    names = [HOSTILE, "x" * 32_000]
    with WireClient(broker.host, broker.port, client_id=HOSTILE) as client:
        wait_until(
            lambda: client.call("find_coordinator", 0, key="g")["error_code"] == 0, "a coordinator"
        )
        for group in names:
            joined = client.call(
                "join_group",
                1,
                group_id=group,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                member_id="",
                protocol_type="consumer",
                protocols=[{"name": HOSTILE, "metadata": b""}],
            )
            assert joined["error_code"] == 0
            client.call("leave_group", 0, group_id=group, member_id=joined["member_id"])
        client.send_bytes(framed(header(999, 0)))
        assert client.is_closed_by_peer()
    broker.stop()
    lines = broker.log_path.read_text().split("\n")
    assert [line for line in lines if "\\n2026-11-29" in line and "\\x1b[2J\\u202e" in line]
    assert [line for line in lines if "characters more" in line]
    for line in lines:
        assert line.isprintable()
        assert not line.startswith("2026-11-29 12:00:00,000 ERROR")
        assert len(line) < 20_000
