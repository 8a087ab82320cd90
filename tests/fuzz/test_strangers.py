"""Nobody gets in: hostile frames from peers that cannot log in, on listeners of every protocol.

No API but ApiVersions, SaslHandshake and SaslAuthenticate is answered, memory stays flat, the log
has no traceback, and a client with a password is served all the while. `make fuzz` sends as many
frames as MINIBROKER_FUZZ_FRAMES says, 1,000,000.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
import uvloop

from minibroker.broker.config.secured import sasl_settings
from tests.fuzz.exploring import FRAMES, IS_EXPLORING, SEED
from tests.fuzz.frames import FrameMaker
from tests.fuzz.strangers import (
    LAST_FRAME,
    Crowd,
    IntruderError,
    Outcome,
    Plan,
    Planner,
    damaged,
    frame,
)
from tests.support.broker import Minibroker
from tests.support.certificates import authority_pem, broker_certificate, client_tls, write_stores
from tests.support.processes import free_port
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Iterator

USERS = {"alice": "alice-secret"}
POOL = 4_000
"""Frames of every API; damage makes new ones of them."""
GROWTH_BYTES_MAX = 24_000_000
WARM_UP = 0.1


class Fortress:
    """A broker on which everything needs a login or a certificate."""

    def __init__(self, directory: Path) -> None:
        self.ports = {kind: free_port() for kind in ("SASL_PLAINTEXT", "SASL_SSL", "SSL")}
        stores = write_stores(directory / "stores", broker_certificate(), authority_pem())
        listeners = ",".join(f"{kind}://127.0.0.1:{port}" for kind, port in self.ports.items())
        self.broker = Minibroker(
            directory / "data",
            directory / "broker.log",
            settings={
                **sasl_settings(USERS),
                **stores,
                "listeners": listeners,
                "listener.name.ssl.ssl.client.auth": "required",
                "inter.broker.listener.name": "SASL_PLAINTEXT",
                "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            },
        )
        self.broker.start()

    def memory_bytes(self) -> int:
        """Return the memory that is the process's own."""
        text = Path(f"/proc/{self.broker.pid}/status").read_text()
        (line,) = (line for line in text.splitlines() if line.startswith("RssAnon:"))
        return int(line.split()[1]) * 1024

    def serves_alice(self) -> bool:
        """Return whether a client with a password is served."""
        with WireClient("127.0.0.1", self.ports["SASL_PLAINTEXT"]) as client:
            client.call("sasl_handshake", 1, mechanism="PLAIN")
            client.call("sasl_authenticate", 1, auth_bytes=b"\0alice\0alice-secret")
            return bool(client.call("metadata", 1, topics=[])["brokers"])


@pytest.fixture
def fortress(tmp_path: Path) -> Iterator[Fortress]:
    new_fortress = Fortress(tmp_path)
    yield new_fortress
    new_fortress.broker.stop()


def test_nobody_gets_in(fortress: Fortress, capsys: pytest.CaptureFixture[str]) -> None:
    seed, count = (SEED, FRAMES) if IS_EXPLORING else (0, 6_000)
    chance = Random(seed)
    maker = FrameMaker(chance, bytes(16))
    pool = [maker.any().raw for _ in range(POOL if IS_EXPLORING else 400)]
    ports = fortress.ports
    crowd = Crowd(
        Planner(chance, pool),
        chance,
        [ports["SASL_PLAINTEXT"]],
        [ports["SASL_SSL"], ports["SSL"]],
        client_tls(),
    )
    first = int(count * WARM_UP)
    uvloop.run(crowd.send(first))
    first_bytes = fortress.memory_bytes()
    uvloop.run(crowd.send(count - first))
    after = fortress.memory_bytes()
    outcome = crowd.outcome
    if IS_EXPLORING:
        summary = ", ".join(f"{number:,} {kind}" for kind, number in outcome.answers.most_common())
        with capsys.disabled():
            sys.stderr.write(
                f"\n{outcome.frames:,} frames of strangers on {outcome.connections:,} connections "
                f"in {crowd.took_s:.0f} s, MINIBROKER_FUZZ_SEED={seed}; answers: {summary}; "
                f"{outcome.left_open:,} waited for more bytes; "
                f"memory {first_bytes >> 20} MiB after a tenth, {after >> 20} MiB at the end\n"
            )
    assert {"ApiVersions", "of SASL", "refused"} <= outcome.answers.keys()
    assert after - first_bytes < GROWTH_BYTES_MAX
    assert fortress.serves_alice()
    log = fortress.broker.log_path.read_text(errors="replace")
    assert "Traceback" not in log, log[log.index("Traceback") - 500 :][:5_000]
    assert "alice-secret\n" not in log


def test_an_answer_to_another_api_is_noticed() -> None:
    question = frame("list_groups", 1, 5)
    plan = Plan("of this test", [question, LAST_FRAME])
    with pytest.raises(IntruderError, match="answers API"):
        Outcome().take(plan, b"\0\0\0\x0e" + question[8:12] + bytes(10))


def test_an_empty_answer_to_a_damaged_frame_is_a_refusal() -> None:
    """Metadata v2 has no error for the whole request: no broker, no cluster, no topic."""
    plan = Plan("of this test", [LAST_FRAME])
    empty = bytes.fromhex("00000d00 00000000 ffff ffffffff 00000000")
    outcome = Outcome()
    outcome.take(plan, struct.pack(">i", len(empty)) + empty)
    assert outcome.answers == {"refused": 1}
    with_name = empty[:-4] + b"\0\0\0\1orders"
    with pytest.raises(IntruderError, match="answers API -1"):
        outcome.take(plan, struct.pack(">i", len(with_name)) + with_name)


def test_damage_is_seldom_none() -> None:
    chance = Random(1)
    undamaged_count = sum(damaged(chance, LAST_FRAME) == LAST_FRAME for _ in range(1000))
    assert undamaged_count < 200
