"""`python -m benchmarks.hostile`: another client's wait while a hostile request is served.

A probe asks for ApiVersions a hundred times a second on a connection of its own, whatever the
broker does (`open_loop`). Meanwhile attackers send one kind of request. Each line has the wait of
the probe at the 99th percentile, the longest one, and the growth of the broker's memory, for
minibroker and for Apache Kafka 3.9.1. They run one after the other with the same settings: an
authorizer that permits everything, and a listener with SASL. Without Java, minibroker alone is
measured.
"""

import gzip
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import crc32c
import trustme

from benchmarks import open_loop, wire
from benchmarks.secured import KAFKA, MINIBROKER, Secured
from minibroker.broker.config.authorizers import ACL_AUTHORIZER
from tests.support import java, peers
from tests.support.certificates import write_stores
from tests.support.codec import codec_of
from tests.support.wire import request_header

PROBES_PER_S: Final = 100
PROBE_S: Final = 4.0
ATTACK_AFTER_S: Final = 0.5
TOPICS: Final = 100
PARTITIONS: Final = 10
SETTINGS: Final = {
    "authorizer_class_name": ACL_AUTHORIZER,
    "allow_everyone_if_no_acl_found": "true",
}


class Attack(NamedTuple):
    """One kind of hostile request."""

    label: str
    listener: str
    frames: bytes
    """Requests with their sizes, sent at once on one connection; the answers are not read."""
    connections: int = 1


class Wait(NamedTuple):
    """The probe's wait beside an attack, and what the broker kept."""

    p99_ms: float
    longest_ms: float
    growth_mb: float


def request(api: str, version: int, *, tags: bytes = b"\0", **fields: Any) -> bytes:
    """Return a frame with its size; `tags` are those of a flexible header, from their count on."""
    codec = codec_of(api)
    is_flexible = codec.is_flexible(version)
    header = request_header(codec.api_key, version, 1, "hostile", is_flexible)
    if is_flexible:
        header = header[:-1] + tags
    body = codec.encode_request(version, dict(fields))
    return struct.pack(">i", len(header) + len(body)) + header + body


def unfolding_batch(records: int) -> bytes:
    """Return a small gzip batch that claims `records` records: each has the offset of the first."""
    content = gzip.compress(bytes((12, 0, 0, 0, 1, 1, 0)) * records)
    now_ms = time.time_ns() // 1_000_000
    body = struct.pack(">hiqqqhii", 1, records - 1, now_ms, now_ms, -1, -1, -1, records) + content
    head = struct.pack(">ibI", -1, 2, crc32c.crc32c(body))
    return struct.pack(">qi", 0, len(head) + len(body)) + head + body


def attacks() -> Iterator[Attack]:
    """Yield every kind, the requests made."""
    names = [{"name": f"missing-{number}"} for number in range(10_000)]
    users = [{"name": f"user-{number}", "mechanism": 1} for number in range(20_000)]
    tags = wire.unsigned(120_000) + b"".join(wire.unsigned(tag) + b"\0" for tag in range(120_000))
    metadata = "metadata"
    yield Attack(
        "Metadata of a name of 32 KB",
        "PLAINTEXT",
        request(metadata, 8, topics=[{"name": "x" * 32_000}], allow_auto_topic_creation=False),
    )
    yield Attack(
        "Metadata of 10,000 missing names",
        "PLAINTEXT",
        request(metadata, 8, topics=names, allow_auto_topic_creation=False),
    )
    yield Attack(
        "Produce of a gzip batch that unfolds a thousand times",
        "PLAINTEXT",
        wire.produce_frame("hostile-0", unfolding_batch(130_000)),
    )
    yield Attack(
        "20,000 deletions of SCRAM credentials",
        "PLAINTEXT",
        request("alter_user_scram_credentials", 0, deletions=users, upsertions=[]),
    )
    yield Attack(
        "ApiVersions with 120,000 header tags, before the login",
        "SASL_PLAINTEXT",
        request("api_versions", 3, tags=tags),
    )
    yield Attack(
        "256 pipelined Metadata of 1,000 partitions, not read",
        "PLAINTEXT",
        request(metadata, 8, topics=None) * 256,
        connections=4,
    )


def waits_beside(broker: Secured, attack: Attack, seed: int) -> Wait:
    """Return the probe's waits while the attack runs. Raises WireError."""
    probe = wire.Connection(broker.ports["PLAINTEXT"], timeout_s=60.0)
    stream = open_loop.Stream(probe.socket, wire.frame(18, 0, b""), open_loop.kafka_size)
    count = int(PROBES_PER_S * PROBE_S)
    bytes_at_start = broker.child.resident_bytes()
    with ExitStack() as stack:
        stack.callback(probe.close)
        for _ in range(attack.connections):
            attacker = socket.create_connection(("127.0.0.1", broker.ports[attack.listener]))
            attacker.settimeout(PROBE_S)
            attacker.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stack.callback(attacker.close)
            timer = threading.Timer(ATTACK_AFTER_S, _send, (attacker, attack.frames))
            timer.start()
            stack.callback(timer.join)
        stream.plan(open_loop.spread(count, PROBES_PER_S, seed))
        open_loop.run([stream])
        growth = broker.child.resident_bytes() - bytes_at_start
    taken_ms = sorted(taken_s * 1000 for taken_s in stream.taken_s)
    return Wait(taken_ms[count * 99 // 100], taken_ms[-1], growth / 1e6)


def _send(attacker: socket.socket, frames: bytes) -> None:
    """Send everything and read nothing; the broker may refuse to take it all."""
    with suppress(OSError):
        attacker.sendall(frames)


@contextmanager
def started(name: str, directory: Path) -> Iterator[Secured]:
    """Yield a broker with `TOPICS` topics; it is killed at the end."""
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost", "127.0.0.1", key_type=trustme.KeyType.RSA)
    stores = write_stores(directory / "stores", certificate, authority.cert_pem.bytes().decode())
    with ExitStack() as stack:
        zookeeper = None
        if name == KAFKA:
            running = peers.ZooKeeper(directory / "zookeeper")
            running.start()
            stack.callback(running.stop)
            zookeeper = f"{running.connect}/hostile"
        broker = Secured(name, directory / "broker", zookeeper, stores, **SETTINGS)
        stack.callback(broker.child.stop)
        connection = wire.Connection(broker.ports["PLAINTEXT"])
        for number in range(TOPICS):
            wire.create_topic(connection, f"hostile-{number}", PARTITIONS)
        wire.wait_for_leader(connection, "hostile-0")
        connection.close()
        yield broker


def main() -> int:
    """Measure every attack on each broker and print a table; return 0."""
    waits: dict[str, dict[str, Wait]] = {}
    names = [MINIBROKER] if java.missing_java() else [MINIBROKER, KAFKA]
    for name in names:
        with (
            tempfile.TemporaryDirectory(prefix="hostile-") as scratch,
            started(name, Path(scratch)) as broker,
        ):
            waits_beside(broker, Attack("warm-up", "PLAINTEXT", b"", 0), seed=0)
            for seed, attack in enumerate(attacks()):
                waits.setdefault(attack.label, {})[name] = waits_beside(broker, attack, seed)
    print(f"| beside | {' | '.join(f'{name}: p99, longest ms, MB' for name in names)} |")
    print(f"|---{'|---:' * len(names)}|")
    for label, by_client in waits.items():
        cells = [
            f"{wait.p99_ms:.1f}, {wait.longest_ms:.1f}, {wait.growth_mb:+.1f}"
            for wait in by_client.values()
        ]
        print(f"| {label} | {' | '.join(cells)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
