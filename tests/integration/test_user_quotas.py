"""Quotas of users that prove who they are: by a password, by a certificate; in one process.

A delay tells the limit behind it: the clock stands still, and a burst of S bytes under a limit of L
bytes a second waits until ten seconds and the delay together allow for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.config.secured import secured_settings
from minibroker.kafka.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from minibroker.kafka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from minibroker.kafka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.support.certificates import client_certificate, client_tls, tls_settings
from tests.support.in_process import InProcessBroker, ManualClock, batch_of, request_frame

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.in_process import RawClient

USERS = {"good-user": "secret", "other": "secret", "zoë/% <default>": "secret"}
WINDOWS_S = 10.0
"""The full windows of a rate: `quota.window.num` - 1 seconds."""
DATA = PartitionProduceData(index=0, records=batch_of(b"x" * 100_000))
PRODUCE = ProduceRequest(
    acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=[DATA])]
)


class Served:
    """A broker whose clock stands still, and its clients."""

    def __init__(self, running: InProcessBroker, clock: ManualClock) -> None:
        self.running = running
        self.clock = clock

    async def connect(
        self, user: str, client_id: str, tls: ssl.SSLContext | None = None
    ) -> RawClient:
        """Return a connection of a user, with a password or a certificate."""
        client = await self.running.connect(client_id, tls=tls)
        if tls is None:
            await client.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            login = f"\0{user}\0{USERS[user]}".encode()
            answer = await client.call(SaslAuthenticateRequest(auth_bytes=login), 1)
            assert answer.error_code == 0
        return client

    async def limit(self, client: RawClient, rate: float, **entity: str | None) -> None:
        """Set `producer_byte_rate`; entity type → name, None: the default."""
        entry = RequestEntryData(
            entity=[
                EntityData(entity_type=kind.replace("_", "-"), entity_name=name)
                for kind, name in entity.items()
            ],
            ops=[OpData(key="producer_byte_rate", value=rate)],
        )
        answer = await client.call(AlterClientQuotasRequest(entries=[entry]), 1)
        assert answer.entries[0].error_code == 0, answer.entries[0].error_message

    async def limit_of(
        self, user: str, client_id: str, tls: ssl.SSLContext | None = None
    ) -> int | None:
        """Return the limit that delays a burst of this client, None if it is not delayed."""
        self.clock.ms += 3_600_000  # what was counted before is forgotten
        client = await self.connect(user, client_id, tls)
        answer = await client.call(PRODUCE, 9)
        # A delayed connection is not read, so nobody would answer the end of its TLS.
        client.writer.transport.abort()
        return limit_behind(answer, bursts=1, client_id=client_id)


def limit_behind(answer: Any, *, bursts: int, client_id: str) -> int | None:
    """Return the limit that leads to the delay of an answer."""
    assert answer.responses[0].partition_responses[0].error_code == 0
    size_bytes = bursts * (len(request_frame(PRODUCE, 9, 1, client_id)) - 4)
    delay_s = answer.throttle_time_ms / 1000
    return round(size_bytes / (WINDOWS_S + delay_s)) if delay_s else None


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    clock = ManualClock()
    settings = secured_settings("SASL_PLAINTEXT", USERS)
    async with InProcessBroker(tmp_path, settings, clock=clock) as running:
        await running.create_topic("t")
        yield Served(running, clock)


async def test_the_example_of_kafkas_documentation(served: Served) -> None:
    """One client of the user has a limit of its own, beside that of all its other clients."""
    async with await served.connect("other", "admin") as admin:
        await served.limit(admin, 1000, user="good-user")
        await served.limit(admin, 500, user="good-user", client_id="producer-1")
    assert await served.limit_of("good-user", "producer-1") == 500
    assert await served.limit_of("good-user", "producer-2") == 1000
    assert await served.limit_of("other", "producer-1") is None


async def test_the_stronger_scope_decides_whatever_its_limit(served: Served) -> None:
    scopes: list[dict[str, str | None]] = [
        {"client_id": None},
        {"client_id": "c"},
        {"user": None},
        {"user": None, "client_id": None},
        {"user": None, "client_id": "c"},
        {"user": "good-user"},
        {"user": "good-user", "client_id": None},
        {"user": "good-user", "client_id": "c"},
    ]
    async with await served.connect("other", "admin") as admin:
        for step, scope in enumerate(scopes):
            await served.limit(admin, 500 + 100 * step, **scope)
            assert await served.limit_of("good-user", "c") == 500 + 100 * step, scope
    assert await served.limit_of("good-user", "d") == 1100
    assert await served.limit_of("other", "c") == 900
    assert await served.limit_of("other", "d") == 800


async def test_all_connections_of_a_user_share_its_limit(served: Served) -> None:
    async with (
        await served.connect("good-user", "a") as first,
        await served.connect("good-user", "b") as second,
    ):
        await served.limit(first, 1000, user="good-user")
        assert limit_behind(await first.call(PRODUCE, 9), bursts=1, client_id="a") == 1000
        assert limit_behind(await second.call(PRODUCE, 9), bursts=2, client_id="b") == 1000


async def test_a_name_with_any_letters_has_its_limit(served: Served) -> None:
    name = "zoë/% <default>"
    async with await served.connect("other", "admin") as admin:
        await served.limit(admin, 1000, user=name)
    assert await served.limit_of(name, "c") == 1000
    stored = served.running.broker.cluster.image.configs["users"]
    assert "zo%C3%AB%2F%25%20%3Cdefault%3E" in stored
    assert await served.limit_of("other", "c") is None


async def test_the_name_in_a_certificate_has_its_limit(tmp_path: Path) -> None:
    clock = ManualClock()
    settings = tls_settings(ssl_client_auth="requested")
    async with InProcessBroker(tmp_path, settings, clock=clock) as running:
        await running.create_topic("t")
        served = Served(running, clock)
        alice = client_tls(certificate=client_certificate("alice"))
        async with await served.connect("alice", "admin", alice) as admin:
            await admin.call(PRODUCE, 9)
            (connection,) = running.server.connections
            principal = connection._context.principal  # type: ignore[attr-defined]
            assert principal.startswith("User:CN=alice,")
            await served.limit(admin, 1000, user=principal.removeprefix("User:"))
        assert await served.limit_of("alice", "c", alice) == 1000
        assert await served.limit_of("anonymous", "c", client_tls()) is None
