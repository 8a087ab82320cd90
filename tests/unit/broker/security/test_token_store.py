"""Delegation tokens in the tree: two brokers read and change the same nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.shared import SharedTree
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.security import token_nodes
from minibroker.broker.security.token_store import TokenSettings, TokenStore, settings_of
from minibroker.broker.security.tokens import Lifetimes
from minibroker.broker.timers import Timers
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from tests.support.in_process import ManualClock
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

SETTINGS = TokenSettings(b"secret", Lifetimes(1000, 100), 5000)
OWNER = "User:alice"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def stores(tmp_path: Path, clock: ManualClock) -> AsyncIterator[list[TokenStore]]:
    """Two brokers, started; the first is the controller."""
    home = SharedTree(tmp_path / "metadata.db", clock)
    timers = Timers(clock)
    trees = [home.session() for _ in range(2)]
    made = []
    for index, tree in enumerate(trees):
        await tree.open()
        made.append(TokenStore(SETTINGS, tree, clock, timers, lambda first=index == 0: first))  # type: ignore[misc]
        await made[-1].start()
    yield made
    for store in made:
        await store.close()
    timers.close()
    for tree in trees:
        await tree.close()


async def test_every_broker_knows_a_token_and_its_changes(
    stores: list[TokenStore], clock: ManualClock
) -> None:
    made = await stores[0].create(OWNER, OWNER, [], -1)
    token_id = made.token.id
    assert token_nodes.is_id(token_id)
    await eventually(lambda: len(stores[1].all()) == 1)
    (known,) = stores[1].all()
    assert (known.token, known.hmac) == (made.token, made.hmac)
    assert str(made.hmac) not in str(known)
    login = stores[1].login("SCRAM-SHA-512", token_id)
    assert login is not None
    assert (login.name, login.expires_ms) == ("alice", made.token.expires_ms)
    clock.advance(50)
    ends_ms = await stores[1].renew(OWNER, made.hmac, -1)
    assert ends_ms == made.token.expires_ms + 50
    await eventually(lambda: stores[0].all()[0].token.expires_ms == ends_ms)
    assert await stores[0].expire(OWNER, made.hmac, -1) == clock.now_ms()
    await eventually(lambda: not stores[1].all())
    with pytest.raises(KafkaError) as refused:
        await stores[1].renew(OWNER, made.hmac, -1)
    assert refused.value.code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


async def test_an_expired_token_lets_nobody_in_and_is_removed(
    stores: list[TokenStore], clock: ManualClock
) -> None:
    made = await stores[0].create(OWNER, OWNER, [], -1)
    clock.advance(101)
    assert stores[0].login("SCRAM-SHA-256", made.token.id) is None
    assert len(stores[0].all()) == 1
    clock.advance(SETTINGS.check_interval_ms)
    await eventually(lambda: not stores[0].all() and not stores[1].all())


async def test_a_token_of_a_principal_that_is_no_user_lets_nobody_in(
    stores: list[TokenStore],
) -> None:
    made = await stores[0].create("Group:g", OWNER, [], -1)
    assert stores[0].login("SCRAM-SHA-256", made.token.id) is None


async def test_a_node_that_is_no_token_is_left_out(stores: list[TokenStore]) -> None:
    tree = stores[0]._tree
    await tree.create(token_nodes.path_of("bad"), b"?")
    await tree.create(token_nodes.CHANGE_PATH, b"bad", sequence=True)
    made = await stores[0].create(OWNER, OWNER, [], -1)
    await eventually(lambda: [known.token for known in stores[1].all()] == [made.token])


def test_without_a_secret_there_are_no_tokens() -> None:
    assert settings_of(BrokerConfig({})) is None
    older = settings_of(BrokerConfig({"delegation.token.master.key": "old"}))
    assert older is not None
    assert (older.secret, older.check_interval_ms) == (b"old", 3_600_000)
    assert "old" not in str(older)
