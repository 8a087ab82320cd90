"""The text of an altered password: Kafka's is read, ours has its form, no other secret opens it."""

from __future__ import annotations

import asyncio

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.security.password_encoder import (
    ITERATIONS_MAX,
    OLD_SECRET_KEY,
    SECRET_KEY,
    PasswordEncoder,
    encoder_of,
    is_encoded,
    pairs_of,
)
from minibroker.broker.security.stored_passwords import PASSWORDS_MAX, StoredPasswords
from minibroker.kafka.errors import ConfigError

CIPHER, LENGTH = "password.encoder.cipher.algorithm", "password.encoder.key.length"
FACTORY, ITERATIONS = "password.encoder.keyfactory.algorithm", "password.encoder.iterations"
GCM = "AES/GCM/NoPadding"
BY_KAFKA = (
    "initializationVector:DCE2Mpc/Nqp1NF2QPnJ/Vg==,keyLength:128,salt:T2UdtA0FHMEyYvF"
    "fwL3mD616JDOJ/CsDaqE7qzph7d8jAHgROJA+xzhsqubrc6ci8DEsbl0w2Oij8Cv8Yk4N9H6dkX6KzmU"
    "H9yjJhf2qRAonqSpj0grui/UAhh2edEL+BUicaBPaNfEugouFTNgtUwRJOAXDKEC7EcdOlQOd21uKyjM"
    "b7TOINdFjxIL5gsEUxDDNFZgVyqdbPlzr1R9L0kGjcRIKggiXTeL0skgBs0YMEhL3fRZWBw72E5aN+HY"
    "GB30IbvxsEYe13ueQzXI7H9czaOhPhsej8OVl2of22+YIvLJWKoR3obWtbnanWdSer35a8MgPc4RM6Kp"
    "BJqcdsg==,keyFactoryAlgorithm:PBKDF2WithHmacSHA512,cipherAlgorithm:AES/CBC/PKCS5"
    "Padding,iterations:4096,passwordLength:3,encryptedPassword:dUdSvDDur3uCboYedbQvY"
    "A=="
)
"""The password `zzz` with the secret `the-secret`, as Apache Kafka 3.9.1 stored it."""


def encoder(secret: str = "the-secret", **settings: str) -> PasswordEncoder:
    return PasswordEncoder(secret, BrokerConfig(settings))


def test_a_text_of_kafka_is_read() -> None:
    assert encoder().decode(BY_KAFKA) == "zzz"


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {CIPHER: GCM},
        {CIPHER: GCM, LENGTH: "256", FACTORY: "PBKDF2WithHmacSHA1"},
        {LENGTH: "192", FACTORY: "PBKDF2WithHmacSHA256", ITERATIONS: "1024"},
    ],
)
@pytest.mark.parametrize("password", ["", "zzz", 'ä\N{GRINNING FACE}, :=\\"', "x" * 4000])
def test_a_password_comes_back_whatever_the_settings_are_then(
    settings: dict[str, str], password: str
) -> None:
    text = encoder("sécret", **settings).encode(password)
    assert is_encoded(text)
    assert encoder("sécret").decode(text) == password
    assert encoder("sécret", **settings).encode(password) != text


def test_the_text_has_the_pairs_of_kafka() -> None:
    ours, theirs = pairs_of(encoder().encode("zzz")), pairs_of(BY_KAFKA)
    drawn = {"salt", "initializationVector", "encryptedPassword"}
    assert ours.keys() == theirs.keys()
    assert {k: v for k, v in ours.items() if k not in drawn} == {
        k: v for k, v in theirs.items() if k not in drawn
    }
    assert [len(ours[name]) for name in drawn] == [len(theirs[name]) for name in drawn]


def test_the_length_counts_as_java_counts() -> None:
    assert pairs_of(encoder().encode("\N{GRINNING FACE}"))["passwordLength"] == "2"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("passwordLength", "4"),
        ("passwordLength", "x"),
        ("iterations", "0"),
        ("iterations", str(ITERATIONS_MAX + 1)),
        ("keyLength", "64"),
        ("keyLength", ""),
        ("cipherAlgorithm", "DES/CBC/PKCS5Padding"),
        ("keyFactoryAlgorithm", "MD5"),
        ("salt", "!"),
        ("initializationVector", "AAAA"),
        ("encryptedPassword", "AAAA"),
        ("encryptedPassword", ""),
    ],
)
@pytest.mark.parametrize("cipher", [GCM, "AES/CBC/PKCS5Padding"])
def test_a_text_that_is_changed_is_an_error_without_the_text(
    name: str, value: str, cipher: str
) -> None:
    pairs = pairs_of(encoder(**{CIPHER: cipher}).encode("zzz")) | {name: value}
    with pytest.raises(ConfigError) as caught:
        encoder().decode(",".join(f"{key}:{text}" for key, text in pairs.items()))
    assert str(caught.value) == "Password could not be decoded"


@pytest.mark.parametrize("text", ["", "zzz", ":", ",,", BY_KAFKA[:200]])
def test_a_text_that_is_none_is_an_error(text: str) -> None:
    assert not is_encoded(text) or text == BY_KAFKA[:200]
    with pytest.raises(ConfigError, match="could not be decoded"):
        encoder().decode(text)


def test_another_secret_reads_nothing() -> None:
    text = encoder(**{CIPHER: GCM}).encode("zzz")
    for secret in ("the-secre", "", "other"):
        for encoded in (text, BY_KAFKA):
            with pytest.raises(ConfigError, match="could not be decoded"):
                encoder(secret).decode(encoded)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        (CIPHER, "DES/CBC/PKCS5Padding", f"expected one of AES/CBC/PKCS5Padding, {GCM}"),
        (FACTORY, "MD5", "expected one of PBKDF2WithHmacSHA512"),
        (LENGTH, "64", "expected one of 128, 192, 256"),
        (ITERATIONS, str(ITERATIONS_MAX + 1), f"expected at most {ITERATIONS_MAX}"),
    ],
)
def test_settings_that_cannot_be_are_named(name: str, value: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        encoder(**{name: value})
    assert str(caught.value).startswith(f"{name}={value}: {expected}")


def test_a_setting_gives_the_encoder_of_its_secret() -> None:
    config = BrokerConfig({SECRET_KEY: "the-secret"})
    encoder = encoder_of(config)
    assert encoder is not None
    assert encoder.decode(BY_KAFKA) == "zzz"
    assert encoder_of(config, OLD_SECRET_KEY) is None


# Passwords on their way between the tree and the settings in force.


NAME = "listener.name.a.ssl.key.password"
SECRET, OLD = "password.encoder.secret", "password.encoder.old.secret"
ZOOKEEPER = {"zookeeper.connect": "localhost:1"}


def passwords(**settings: str) -> StoredPasswords:
    return StoredPasswords(BrokerConfig(settings))


@pytest.mark.parametrize("home", [{}, ZOOKEEPER])
async def test_a_password_is_encoded_and_known_at_once(home: dict[str, str]) -> None:
    store = passwords(**home, **{SECRET: "s"})
    plain = {NAME: "opens", "other": "1"}
    stored = plain | await store.encode(plain)
    assert is_encoded(stored[NAME])
    assert stored["other"] == "1"
    assert store.decoded_values(stored) is None
    store.note(plain, stored)
    assert store.decoded_values(stored) == plain
    assert await passwords(**home, **{SECRET: "s"}).decode(stored) == plain


async def test_without_a_zookeeper_it_may_stand_as_it_is() -> None:
    assert await passwords().encode({NAME: "opens"}) == {NAME: "opens"}
    assert await passwords().decode({NAME: "opens"}) == {NAME: "opens"}
    assert await passwords(**{SECRET: "s"}).decode({NAME: "opens"}) == {NAME: "opens"}


async def test_with_a_zookeeper_it_needs_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    store = passwords(**ZOOKEEPER)
    assert await store.encode({"other": "1"}) == {}
    with pytest.raises(ConfigError, match="Password encoder secret not configured"):
        await store.encode({NAME: "opens"})
    assert await store.decode({NAME: "opens", "other": "1"}) == {"other": "1"}
    assert f"{NAME} stands in the tree and is ignored: Password encoder secret" in caplog.text
    assert "opens" not in caplog.text


async def test_a_text_of_another_secret_is_left_out() -> None:
    stored = await passwords(**{SECRET: "s"}).encode({NAME: "opens"})
    for settings in ({SECRET: "t"}, {}):
        store = passwords(**settings)
        assert await store.decode(stored) == {}
        assert store.decoded_values(stored) == {}


async def test_a_password_that_is_decoded_beside_the_loop_is_known_then() -> None:
    stored = await passwords(**{SECRET: "s"}).encode({NAME: "opens"})
    store, done = passwords(**{SECRET: "s"}), asyncio.Event()
    store.decode_then(stored, done.set)
    assert store.decoded_values(stored) is None
    await done.wait()
    assert store.decoded_values(stored) == {NAME: "opens"}


async def test_a_new_secret_takes_over_what_the_old_one_opens() -> None:
    by_old = await passwords(**{SECRET: "old"}).encode({NAME: "opens"})
    by_new = await passwords(**{SECRET: "new"}).encode({f"b.{NAME}": "too"})
    store = passwords(**{SECRET: "new", OLD: "old"})
    assert await store.encode_again({"other": "1"}) == {}
    assert await store.encode_again(by_new) == {}
    encoded = await store.encode_again({**by_old, **by_new, "other": "1"})
    assert await passwords(**{SECRET: "new"}).decode(encoded) == {NAME: "opens"}
    with pytest.raises(ConfigError, match=r"old\.secret: Password encoder secret not configured"):
        await passwords(**{OLD: "old"}).encode_again(by_old)


async def test_a_node_has_room_for_so_many() -> None:
    many = {f"{number}.ssl.key.password": "x" for number in range(PASSWORDS_MAX + 1)}
    with pytest.raises(ConfigError, match=f"expected at most {PASSWORDS_MAX}"):
        await passwords().encode(many)
