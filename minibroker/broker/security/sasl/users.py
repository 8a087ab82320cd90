"""The users of `minibroker.users`: they may log in by PLAIN, and by SCRAM.

Kafka has no such key: users of PLAIN stand in a JAAS line, those of SCRAM are made by
`kafka-configs`. Here a start writes the SCRAM credentials, where the tree has other ones.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from typing import TYPE_CHECKING

from minibroker.broker.cluster.paths import sanitize
from minibroker.broker.config.secured import SCRAM_CREDENTIALS, USERS
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats.jaas import parse_line
from minibroker.kafka.scram import (
    CODES,
    ITERATIONS_MIN,
    MECHANISMS,
    SALT_BYTES,
    credential,
    credential_of,
    salted_password,
)

if TYPE_CHECKING:
    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.config.broker import BrokerConfig


def users_of_config(config: BrokerConfig) -> dict[str, str]:
    """Return user → password. Raises ConfigError."""
    return _options(config, USERS)


def _options(config: BrokerConfig, key: str) -> dict[str, str]:
    """Return the pairs of a setting in the form of JAAS, none if it is not set. Raises
    ConfigError.
    """
    text = config.originals.get(key)
    if not text:
        return {}
    try:
        return parse_line(f"users required {text};").options
    except ConfigError as error:
        raise ConfigError(f"{key}: {error}") from None


def given_credentials(config: BrokerConfig) -> dict[str, dict[str, str]]:
    """Return user → mechanism → credential of `minibroker.scram.credentials`. Raises
    ConfigError.
    """
    credentials: dict[str, dict[str, str]] = {}
    for name, text in _options(config, SCRAM_CREDENTIALS).items():
        mechanism, _, user = name.partition(":")
        if mechanism not in CODES or not user or credential_of(text) is None:
            raise ConfigError(
                f"{SCRAM_CREDENTIALS} has {name!r}: expected mechanism:user, with a credential as"
                " Kafka stores it"
            )
        credentials.setdefault(user, {})[mechanism] = text
    return credentials


async def write_given(cluster: Cluster, users: dict[str, dict[str, str]]) -> None:
    """Give each user the credentials of mechanisms for which it has none. Raises
    CoordinationError.
    """
    for user, credentials in users.items():
        entity = sanitize(user)
        config = cluster.config_of("users", entity)
        new: dict[str, str | None] = {
            mechanism: text for mechanism, text in credentials.items() if mechanism not in config
        }
        if new:
            await cluster.alter_config("users", entity, new)


async def write_credentials(cluster: Cluster, users: dict[str, str]) -> None:
    """Give each user the SCRAM credentials of the password. Raises CoordinationError."""
    for user, password in users.items():
        entity = sanitize(user)
        config = cluster.config_of("users", entity)
        # Hashing takes milliseconds: it is not done on the loop.
        new = await asyncio.to_thread(_credentials, password, dict(config))
        if new:
            await cluster.alter_config("users", entity, new)


def _credentials(password: str, config: dict[str, str]) -> dict[str, str | None]:
    """Return mechanism → new text, for each stored one that is not of this password."""
    new: dict[str, str | None] = {}
    for code, mechanism in MECHANISMS.items():
        if not _is_of(code, password, config.get(mechanism)):
            salt = secrets.token_bytes(SALT_BYTES)
            salted_bytes = salted_password(code, password, salt, ITERATIONS_MIN)
            new[mechanism] = credential(code, salt, salted_bytes, ITERATIONS_MIN)
    return new


def _is_of(code: int, password: str, text: str | None) -> bool:
    stored_credential = None if text is None else credential_of(text)
    if text is None or stored_credential is None or stored_credential.iterations < ITERATIONS_MIN:
        return False
    salted_bytes = salted_password(
        code, password, stored_credential.salt, stored_credential.iterations
    )
    return hmac.compare_digest(
        text, credential(code, stored_credential.salt, salted_bytes, stored_credential.iterations)
    )
