"""The client's side of SASL, for requests to other brokers: PLAIN and SCRAM.

Pure. `respond` of SCRAM takes milliseconds (the salted password), and a ticket of Kerberos comes
from elsewhere, so `begin` and `respond` run beside the loop. `oauth_login` and `kerberos` have the
logins by token and by ticket.

Source: Kafka SaslClientAuthenticator, ScramSaslClient, PlainLoginModule.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from minibroker.errors import ConfigError, ProtocolError
from minibroker.security.sasl import jaas_lines as jaas
from minibroker.security.sasl.authenticator import GSSAPI
from minibroker.security.sasl.mechanisms import SERVED, nonce
from minibroker.security.sasl.plain import MECHANISM as PLAIN
from minibroker.security.sasl.scram_credentials import (
    CODES,
    HASHES,
    ITERATIONS_MIN,
    salted_password,
)
from minibroker.security.sasl.users import users_of_config

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.clock import Clock
    from minibroker.config.broker import BrokerConfig
    from minibroker.config.settings import ConfigValues

_SERVER_FIRST: Final = re.compile(r"r=([^,]+),s=([A-Za-z0-9/+=]*),i=(\d{1,9})(?:,.*)?")
_ITERATIONS_MAX: Final = 1_000_000
"""More would keep a thread busy for a second, for a broker that is not what it claims to be."""


class ClientExchange(Protocol):
    """One login at another broker."""

    is_complete: bool
    """True once the broker has said everything that it has to say."""

    def begin(self) -> bytes:
        """Return the first token. Raises OSError where it cannot be had."""

    def respond(self, token: bytes) -> bytes:
        """Return the answer to a token of the broker, which is not sent once it is complete.
        Raises ProtocolError where the broker does not prove that it knows the credential.
        """


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
        from minibroker.security.sasl.kerberos import (  # noqa: PLC0415  an extra
            KerberosPeerLogin,
            login_of_options,
        )

        return KerberosPeerLogin(login_of_options(settings, options))
    from minibroker.security.sasl.oauth_login import oauth_login  # noqa: PLC0415  seldom set

    return oauth_login(settings, options, clock)


class PlainClient:
    """PLAIN: one token, and an empty answer."""

    __slots__ = ("_name", "_password", "is_complete")

    def __init__(self, name: str, password: str) -> None:
        self._name = name
        self._password = password
        self.is_complete = False

    def begin(self) -> bytes:
        """Do `ClientExchange.begin`."""
        return f"\0{self._name}\0{self._password}".encode()

    def respond(self, token: bytes) -> bytes:
        """Do `ClientExchange.respond`."""
        if token:
            raise ProtocolError("PLAIN: the broker answered with a token, expected none")
        self.is_complete = True
        return b""


class ScramClient:
    """SCRAM: the broker has to prove, too, that it knows the credential."""

    __slots__ = (
        "_bare",
        "_code",
        "_nonce",
        "_password",
        "_server_signature",
        "is_complete",
    )

    def __init__(self, mechanism: str, name: str, password: str, own_nonce: str) -> None:
        self._code = CODES[mechanism]
        escaped = name.replace("=", "=3D").replace(",", "=2C")
        self._nonce = own_nonce
        self._bare = f"n={escaped},r={own_nonce}"
        self._password = password
        self._server_signature: bytes | None = None
        """The broker's proof, once it can be known."""
        self.is_complete = False

    def begin(self) -> bytes:
        """Do `ClientExchange.begin`."""
        return f"n,,{self._bare}".encode()

    def respond(self, token: bytes) -> bytes:
        """Do `ClientExchange.respond`."""
        message = token.decode("utf-8", "replace")
        if self._server_signature is None:
            return self._prove(message)
        expected = "v=" + base64.b64encode(self._server_signature).decode("ascii")
        if not hmac.compare_digest(message.encode(), expected.encode()):
            raise ProtocolError("SCRAM: the broker does not know the credential")
        self.is_complete = True
        return b""

    def _prove(self, server_first: str) -> bytes:
        found = _SERVER_FIRST.fullmatch(server_first)
        if found is None or not found[1].startswith(self._nonce):
            raise ProtocolError("SCRAM: the first message of the broker is malformed")
        iterations = int(found[3])
        if not ITERATIONS_MIN <= iterations <= _ITERATIONS_MAX:
            raise ProtocolError(
                f"SCRAM: the broker asks for {iterations} iterations, expected {ITERATIONS_MIN} to"
                f" {_ITERATIONS_MAX}"
            )
        try:
            salt = base64.b64decode(found[2], validate=True)
        except binascii.Error:
            raise ProtocolError("SCRAM: the salt of the broker is malformed") from None
        name = HASHES[self._code]
        salted = salted_password(self._code, self._password, salt, iterations)
        unsigned = f"c=biws,r={found[1]}"
        signed = f"{self._bare},{server_first},{unsigned}".encode()
        client_key = hmac.digest(salted, b"Client Key", name)
        signature = hmac.digest(hashlib.new(name, client_key).digest(), signed, name)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        server_key = hmac.digest(salted, b"Server Key", name)
        self._server_signature = hmac.digest(server_key, signed, name)
        return f"{unsigned},p={base64.b64encode(proof).decode('ascii')}".encode()
