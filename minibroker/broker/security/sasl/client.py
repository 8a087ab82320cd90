"""The client's side of SASL, for requests to other brokers: PLAIN and SCRAM.

Pure. `respond` of SCRAM takes milliseconds (the salted password), and a ticket of Kerberos comes
from elsewhere, so `begin` and `respond` run beside the loop. `oauth_login` and `kerberos` have the
logins by token and by ticket.

Source: Kafka SaslClientAuthenticator, ScramSaslClient, PlainLoginModule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from minibroker.broker.security.sasl import jaas_lines as jaas
from minibroker.broker.security.sasl.authenticator import GSSAPI
from minibroker.broker.security.sasl.client_exchange import ClientExchange, PlainClient, ScramClient
from minibroker.broker.security.sasl.mechanisms import SERVED, nonce
from minibroker.broker.security.sasl.plain import MECHANISM as PLAIN
from minibroker.broker.security.sasl.users import users_of_config
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.scram import CODES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.config.settings import ConfigValues
    from minibroker.clock import Clock


class PeerLogin(Protocol):
    """The way in which this broker logs in at others."""

    @property
    def mechanism(self) -> str:
        """Return the mechanism of SASL. Constant."""

    def begin(self, host: str) -> ClientExchange:
        """Return a new exchange with a broker. `host`: where it is."""


class PasswordLogin(NamedTuple):
    """A name and a password for other brokers."""

    mechanism: str
    name: str
    password: str

    def __repr__(self) -> str:
        """Return a text without the password: it may come into a log."""
        return f"PasswordLogin({self.mechanism}, {self.name})"

    def begin(self, host: str) -> ClientExchange:
        """Do `PeerLogin.begin`."""
        if self.mechanism == PLAIN:
            return PlainClient(self.name, self.password)
        return ScramClient(self.mechanism, self.name, self.password, nonce())


def login_of(config: BrokerConfig, listener_name: str, clock: Clock) -> PeerLogin | None:
    """Return the login for the listener of other brokers, None where it asks for none.

    Raises ConfigError where the settings have none.
    """
    listener = next((known for known in config.listeners if known.name == listener_name), None)
    if listener is None or not listener.security_protocol.uses_sasl:
        return None
    mechanism = config.text("sasl.mechanism.inter.broker.protocol") or ""
    enabled = config.of_listener(listener_name).words("sasl.enabled.mechanisms")
    if mechanism not in enabled or mechanism not in SERVED:
        raise ConfigError(
            f"sasl.mechanism.inter.broker.protocol={mechanism}: brokers talk to each other through"
            f" listener {listener_name}, expected one of its sasl.enabled.mechanisms="
            f"{','.join(enabled)}"
        )
    known = users_of_config(config)
    if known and jaas.find_line(config, listener, mechanism) is None:
        return PasswordLogin(mechanism, *next(iter(known.items())))
    options = jaas.line_of(config, listener, mechanism).options
    if mechanism not in {PLAIN, *CODES}:
        settings = config.of_mechanism(listener_name, mechanism)
        try:
            return _other_login(mechanism, settings, options, clock)
        except ConfigError as error:
            raise ConfigError(f"listener {listener_name}: {error}") from None
    name, password = options.get("username"), options.get("password")
    if not name or not password:
        raise ConfigError(
            f"listener.name.{listener_name.lower()}.{mechanism.lower()}.sasl.jaas.config has no"
            " username and password, with which this broker logs in at the others"
        )
    return PasswordLogin(mechanism, name, password)


def _other_login(
    mechanism: str, settings: ConfigValues, options: Mapping[str, str], clock: Clock
) -> PeerLogin:
    """Return a login by token or ticket. Raises ConfigError."""
    if mechanism == GSSAPI:
        from minibroker.broker.security.sasl.kerberos import (  # noqa: PLC0415  an extra
            KerberosPeerLogin,
            login_of_options,
        )

        return KerberosPeerLogin(login_of_options(settings, options))
    from minibroker.broker.security.sasl.oauth_login import oauth_login  # noqa: PLC0415  seldom set

    return oauth_login(settings, options, clock.now_ms)
