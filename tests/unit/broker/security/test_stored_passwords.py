"""Passwords on their way between the tree and the settings in force."""

from __future__ import annotations

import asyncio

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.security.password_encoder import is_encoded
from minibroker.broker.security.stored_passwords import PASSWORDS_MAX, StoredPasswords
from minibroker.kafka.errors import ConfigError

NAME = "listener.name.a.ssl.key.password"
SECRET, OLD = "password.encoder.secret", "password.encoder.old.secret"
ZOOKEEPER = {"zookeeper.connect": "localhost:1"}


def passwords(**settings: str) -> StoredPasswords:
    return StoredPasswords(BrokerConfig(settings))


@pytest.mark.parametrize("home", [{}, ZOOKEEPER])
async def test_a_password_is_encoded_and_known_at_once(home: dict[str, str]) -> None:
    here = passwords(**home, **{SECRET: "s"})
    plain = {NAME: "opens", "other": "1"}
    stored = plain | await here.encode(plain)
    assert is_encoded(stored[NAME])
    assert stored["other"] == "1"
    assert here.known(stored) is None
    here.note(plain, stored)
    assert here.known(stored) == plain
    assert await passwords(**home, **{SECRET: "s"}).decode(stored) == plain


async def test_without_a_zookeeper_it_may_stand_as_it_is() -> None:
    assert await passwords().encode({NAME: "opens"}) == {NAME: "opens"}
    assert await passwords().decode({NAME: "opens"}) == {NAME: "opens"}
    assert await passwords(**{SECRET: "s"}).decode({NAME: "opens"}) == {NAME: "opens"}


async def test_with_a_zookeeper_it_needs_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    here = passwords(**ZOOKEEPER)
    assert await here.encode({"other": "1"}) == {}
    with pytest.raises(ConfigError, match="Password encoder secret not configured"):
        await here.encode({NAME: "opens"})
    assert await here.decode({NAME: "opens", "other": "1"}) == {"other": "1"}
    assert f"{NAME} stands in the tree and is ignored: Password encoder secret" in caplog.text
    assert "opens" not in caplog.text


async def test_a_text_of_another_secret_is_left_out() -> None:
    stored = await passwords(**{SECRET: "s"}).encode({NAME: "opens"})
    for settings in ({SECRET: "t"}, {}):
        here = passwords(**settings)
        assert await here.decode(stored) == {}
        assert here.known(stored) == {}


async def test_a_password_that_is_decoded_beside_the_loop_is_known_then() -> None:
    stored = await passwords(**{SECRET: "s"}).encode({NAME: "opens"})
    here, done = passwords(**{SECRET: "s"}), asyncio.Event()
    here.decode_then(stored, done.set)
    assert here.known(stored) is None
    await done.wait()
    assert here.known(stored) == {NAME: "opens"}


async def test_a_new_secret_takes_over_what_the_old_one_opens() -> None:
    by_old = await passwords(**{SECRET: "old"}).encode({NAME: "opens"})
    by_new = await passwords(**{SECRET: "new"}).encode({f"b.{NAME}": "too"})
    here = passwords(**{SECRET: "new", OLD: "old"})
    assert await here.encode_again({"other": "1"}) is None
    assert await here.encode_again(by_new) is None
    encoded = await here.encode_again({**by_old, **by_new, "other": "1"})
    assert encoded is not None
    assert encoded.items() >= {**by_new, "other": "1"}.items()
    plain = {NAME: "opens", f"b.{NAME}": "too", "other": "1"}
    assert await passwords(**{SECRET: "new"}).decode(encoded) == plain
    with pytest.raises(ConfigError, match=r"old\.secret: Password encoder secret not configured"):
        await passwords(**{OLD: "old"}).encode_again(by_old)


async def test_a_node_has_room_for_so_many() -> None:
    many = {f"{number}.ssl.key.password": "x" for number in range(PASSWORDS_MAX + 1)}
    with pytest.raises(ConfigError, match=f"expected at most {PASSWORDS_MAX}"):
        await passwords().encode(many)
