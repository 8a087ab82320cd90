"""The life of a delegation token: its ends, who may move them, who sees it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.shared import SharedTree
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.security import token_nodes
from minibroker.broker.security.token_nodes import decode, encode, is_id, path_of
from minibroker.broker.security.token_store import TokenSettings, TokenStore, settings_of
from minibroker.broker.security.tokens import (
    Lifetimes,
    Token,
    expire,
    hmac_of,
    is_shown,
    new_token,
    renew,
)
from minibroker.broker.timers import Timers
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError
from tests.support.in_process import ManualClock
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


LIFETIMES = Lifetimes(max_ms=1000, expiry_ms=100)
TOKEN = Token("id", "User:o", "User:q", ("User:r",), 0, 1000, 100)


def test_the_hmac_is_that_of_sha512() -> None:
    assert len(hmac_of(b"secret", "id")) == 64
    assert hmac_of(b"secret", "id") != hmac_of(b"other", "id")


@pytest.mark.parametrize(
    ("asked_ms", "max_ms", "expires_ms"),
    [(-1, 1005, 105), (0, 1005, 105), (50, 55, 55), (5000, 1005, 105)],
)
def test_a_new_token_ends_at_the_nearest_limit(asked_ms: int, max_ms: int, expires_ms: int) -> None:
    token = new_token(
        "id",
        "User:o",
        "User:q",
        ["User:r"],
        max_lifetime_ms=asked_ms,
        lifetimes=LIFETIMES,
        now_ms=5,
    )
    assert token == Token("id", "User:o", "User:q", ("User:r",), 5, max_ms, expires_ms)


@pytest.mark.parametrize(("period_ms", "ends_ms"), [(-1, 150), (0, 50), (30, 80), (5000, 1000)])
def test_a_renewal_ends_no_later_than_the_longest_life(period_ms: int, ends_ms: int) -> None:
    for principal in ("User:o", "User:r"):
        token = renew(TOKEN, principal, period_ms, lifetimes=LIFETIMES, now_ms=50)
        assert token == TOKEN._replace(expires_ms=ends_ms)


def test_only_owner_and_renewers_move_the_end() -> None:
    for principal in ("User:q", "User:x"):
        with pytest.raises(KafkaError) as renewal:
            renew(TOKEN, principal, 1, lifetimes=LIFETIMES, now_ms=2000)
        with pytest.raises(KafkaError) as expiry:
            expire(TOKEN, principal, -1, now_ms=2000)
        codes = {renewal.value.code, expiry.value.code}
        assert codes == {ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH}


def test_an_expired_token_may_only_be_ended_at_once() -> None:
    assert not TOKEN.is_expired(100)
    assert TOKEN.is_expired(101)
    for change in (
        lambda: renew(TOKEN, "User:o", -1, lifetimes=LIFETIMES, now_ms=101),
        lambda: expire(TOKEN, "User:o", 5, now_ms=101),
    ):
        with pytest.raises(KafkaError) as refused:
            change()
        assert refused.value.code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert expire(TOKEN, "User:o", -1, now_ms=101) is None
    ended = expire(TOKEN, "User:r", 5, now_ms=10)
    assert ended is not None
    assert ended.expires_ms == 15


def test_a_token_is_shown_to_its_people_and_to_those_who_may_describe_it() -> None:
    for principal in ("User:o", "User:q", "User:r"):
        assert is_shown(TOKEN, principal, None, lambda _: False)
        assert is_shown(TOKEN, principal, {"User:r"}, lambda _: False)
        assert not is_shown(TOKEN, principal, {"User:x"}, lambda _: True)
    assert not is_shown(TOKEN, "User:x", None, lambda _: False)
    assert is_shown(TOKEN, "User:x", {"User:x", "User:o"}, lambda _: True)


# The nodes of delegation tokens, as Kafka 3.9 writes and reads them.


STORED_TOKEN = Token("a-_1", "User:o", "User:q", ("User:CN=r,O=x",), 1, 3, 2)


def test_a_token_is_written_as_kafka_writes_it() -> None:
    assert path_of(STORED_TOKEN.id) == "/delegation_token/tokens/a-_1"
    assert json.loads(encode(STORED_TOKEN)) == {
        "version": 3,
        "owner": "User%3Ao",
        "tokenRequester": "User%3Aq",
        "renewers": ["User%3ACN%3Dr%2CO%3Dx"],
        "issueTimestamp": 1,
        "maxTimestamp": 3,
        "expiryTimestamp": 2,
        "tokenId": "a-_1",
    }
    assert decode(STORED_TOKEN.id, encode(STORED_TOKEN)) == STORED_TOKEN


def test_the_owner_asked_for_a_token_of_an_older_version() -> None:
    content = json.loads(encode(STORED_TOKEN))
    del content["tokenRequester"]
    content["version"] = 1
    assert decode(STORED_TOKEN.id, json.dumps(content).encode()) == STORED_TOKEN._replace(
        requester="User:o"
    )


@pytest.mark.parametrize(
    "changes",
    [{"version": 4}, {"tokenId": "b"}, {"owner": "o"}, {"renewers": [1]}, {"maxTimestamp": "3"}],
)
def test_a_node_that_is_no_token_is_named(changes: dict[str, object]) -> None:
    content = {**json.loads(encode(STORED_TOKEN)), **changes}
    with pytest.raises(CoordinationError, match="/delegation_token/tokens/a-_1"):
        decode(STORED_TOKEN.id, json.dumps(content).encode())


def test_an_id_is_one_name_of_a_node() -> None:
    assert is_id("a-_1")
    assert not any(map(is_id, ("", "a/b", "..", "a" * 129)))


# Delegation tokens in the tree: two brokers read and change the same nodes.


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
    new_stores = []
    for index, tree in enumerate(trees):
        await tree.open()
        new_stores.append(TokenStore(SETTINGS, tree, clock, timers, lambda first=index == 0: first))  # type: ignore[misc]
        await new_stores[-1].start()
    yield new_stores
    for store in new_stores:
        await store.close()
    timers.close()
    for tree in trees:
        await tree.close()


async def test_every_broker_knows_a_token_and_its_changes(
    stores: list[TokenStore], clock: ManualClock
) -> None:
    token = await stores[0].create(OWNER, OWNER, [], -1)
    token_id = token.token.id
    assert token_nodes.is_id(token_id)
    await eventually(lambda: len(stores[1].all()) == 1)
    (only_token,) = stores[1].all()
    assert (only_token.token, only_token.hmac) == (token.token, token.hmac)
    assert str(token.hmac) not in str(only_token)
    login = stores[1].login("SCRAM-SHA-512", token_id)
    assert login is not None
    assert (login.name, login.expires_ms) == ("alice", token.token.expires_ms)
    clock.advance(50)
    ends_ms = await stores[1].renew(OWNER, token.hmac, -1)
    assert ends_ms == token.token.expires_ms + 50
    await eventually(lambda: stores[0].all()[0].token.expires_ms == ends_ms)
    assert await stores[0].expire(OWNER, token.hmac, -1) == clock.now_ms()
    await eventually(lambda: not stores[1].all())
    with pytest.raises(KafkaError) as refused:
        await stores[1].renew(OWNER, token.hmac, -1)
    assert refused.value.code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


async def test_an_expired_token_lets_nobody_in_and_is_removed(
    stores: list[TokenStore], clock: ManualClock
) -> None:
    token = await stores[0].create(OWNER, OWNER, [], -1)
    clock.advance(101)
    assert stores[0].login("SCRAM-SHA-256", token.token.id) is None
    assert len(stores[0].all()) == 1
    clock.advance(SETTINGS.check_interval_ms)
    await eventually(lambda: not stores[0].all() and not stores[1].all())


async def test_a_token_of_a_principal_that_is_no_user_lets_nobody_in(
    stores: list[TokenStore],
) -> None:
    token = await stores[0].create("Group:g", OWNER, [], -1)
    assert stores[0].login("SCRAM-SHA-256", token.token.id) is None


async def test_a_node_that_is_no_token_is_left_out(stores: list[TokenStore]) -> None:
    tree = stores[0]._tree
    await tree.create(token_nodes.path_of("bad"), b"?")
    await tree.create(token_nodes.CHANGE_PATH, b"bad", sequence=True)
    token = await stores[0].create(OWNER, OWNER, [], -1)
    await eventually(
        lambda: [stored_token.token for stored_token in stores[1].all()] == [token.token]
    )


def test_without_a_secret_there_are_no_tokens() -> None:
    assert settings_of(BrokerConfig({})) is None
    older = settings_of(BrokerConfig({"delegation.token.master.key": "old"}))
    assert older is not None
    assert (older.secret, older.check_interval_ms) == (b"old", 3_600_000)
    assert "old" not in str(older)
