"""Settings of a secured broker, made from a security protocol and the users that may come in.

`testing.Broker(security=…, users=…)` and `minibroker serve --security … --user …` use them. The
users stand in `minibroker.users`, a key of ours, in the words of a JAAS line:
`alice="secret" bob="other"`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.config.listeners import SecurityProtocol
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_strings import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

USERS: Final = "minibroker.users"
SCRAM_CREDENTIALS: Final = "minibroker.scram.credentials"
"""mechanism:user="credential" of users that the first start makes, as kafka-storage does."""
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""The mechanisms that users of `minibroker.users` may choose."""


def secured_settings(security: str, users: Mapping[str, str]) -> dict[str, str]:
    """Return the settings for one listener with a security protocol, on a free port of 127.0.0.1.

    With TLS a certificate has to be added (`testing.security`). `users`: name → password. Raises
    ConfigError.
    """
    protocol = SecurityProtocol.__members__.get(security.upper())
    if protocol is None:
        raise ConfigError(f"security={security}: expected one of {', '.join(SecurityProtocol)}")
    check_users(protocol, users)
    settings = {"listeners": f"{protocol}://127.0.0.1:0"}
    if protocol is not SecurityProtocol.PLAINTEXT:
        settings["security.inter.broker.protocol"] = protocol
    return settings | sasl_settings(users) if protocol.uses_sasl else settings


def check_users(protocol: SecurityProtocol, users: Mapping[str, str]) -> None:
    """Raise ConfigError where users are missing, or nobody would ask for their passwords."""
    if protocol.uses_sasl and not users:
        raise ConfigError(
            f"security={protocol}: give the users that may come in, and their passwords"
        )
    if users and not protocol.uses_sasl:
        raise ConfigError(f"security={protocol} asks nobody for a password: leave out the users")


def sasl_settings(users: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with which these users log in, on every listener with SASL. Raises
    ConfigError.
    """
    return {
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "sasl.mechanism.inter.broker.protocol": MECHANISMS[0],
        USERS: users_text(users),
    }


def users_text(users: Mapping[str, str]) -> str:
    """Return the value of `minibroker.users`. Raises ConfigError for an empty name or password."""
    for name, password in users.items():
        if not name or not password or "\0" in name + password:
            raise ConfigError(f"user {name!r}: a name and a password may not be empty")
    return " ".join(f"{quoted(name)}={quoted(password)}" for name, password in users.items())


def parse_user(text: str) -> tuple[str, str]:
    """Return name and password of `NAME:PASSWORD`. Raises ConfigError, without the password."""
    name, colon, password = text.partition(":")
    if not colon:  # the text may be a password alone
        raise ConfigError("a user without a colon: expected NAME:PASSWORD")
    if not name:
        raise ConfigError("a user without a name: expected NAME:PASSWORD")
    if not password:
        raise ConfigError(f"user {name!r}: the password is empty, expected NAME:PASSWORD")
    return name, password
