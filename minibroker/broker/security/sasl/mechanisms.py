"""`Mechanisms`: the SASL mechanisms of one listener, from its settings.

Source: Kafka SaslChannelBuilder, ChannelBuilders.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from minibroker.broker.config.settings import LISTENER_PREFIX
from minibroker.broker.security.sasl import jaas_lines as jaas
from minibroker.broker.security.sasl.authenticator import GSSAPI
from minibroker.broker.security.sasl.oauth import OAuthExchange
from minibroker.broker.security.sasl.oauth_settings import HANDLER_KEY, OAuthSettings
from minibroker.broker.security.sasl.plain import MECHANISM as PLAIN
from minibroker.broker.security.sasl.plain import PlainExchange, users_of
from minibroker.broker.security.sasl.scram import Login, ScramExchange
from minibroker.broker.security.sasl.users import users_of_config
from minibroker.client.sasl import nonce
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_strings import small_set_order
from minibroker.kafka.oauthbearer import MECHANISM as OAUTHBEARER
from minibroker.kafka.scram import CODES, credential_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.config.listeners import Listener
    from minibroker.broker.security.sasl.exchange import SaslExchange
    from minibroker.broker.security.sasl.kerberos import KerberosAcceptor
    from minibroker.broker.security.sasl.key_set import KeySet
    from minibroker.broker.timers import Timers
    from minibroker.clock import Clock

logger = logging.getLogger(__name__)

SERVED: Final = (PLAIN, *CODES, OAUTHBEARER, GSSAPI)
"""The mechanisms that a listener may enable."""
KNOWN_MAX: Final = 1_000
"""Users whose credentials are kept as read; all are forgotten beyond this."""


class Mechanisms:
    """The mechanisms of one listener. Constant after construction, but for the keys of tokens."""

    __slots__ = (
        "_acceptor",
        "_keys",
        "_listener",
        "_makers",
        "_session_ms",
        "names",
        "receive_bytes_max",
    )

    def __init__(
        self,
        config: BrokerConfig,
        listener: Listener,
        *,
        config_of_user: Callable[[str], Mapping[str, str]],
        login_of_token: Callable[[str, str], Login | None] | None = None,
    ) -> None:
        """Take `config_of_user`: user → the configuration in the tree, and `login_of_token`:
        mechanism, id of a delegation token → its login. Raises ConfigError.
        """
        self._listener = listener.name
        settings = config.of_listener(listener.name)
        names = settings.words("sasl.enabled.mechanisms")
        for name in names:
            if name not in SERVED:
                raise ConfigError(
                    f"sasl.enabled.mechanisms={','.join(names)} of listener {listener.name}:"
                    f" {name} is not served; expected some of {', '.join(SERVED)}"
                )
        if not names:
            raise ConfigError(
                f"sasl.enabled.mechanisms of listener {listener.name} is empty; expected some of"
                f" {', '.join(SERVED)}"
            )
        self.names = small_set_order(names)
        """In the order of Java's HashSet, in which Kafka names them."""
        self.receive_bytes_max = settings.integer("sasl.server.max.receive.size")
        """Bytes of the largest frame before the client is known."""
        self._session_ms = {name: _session_ms(config, listener, name) for name in names}
        self._makers: dict[str, Callable[[], SaslExchange]] = {}
        self._keys: KeySet | None = None
        """The keys of signed tokens."""
        self._acceptor: KerberosAcceptor | None = None
        """The key of this broker in Kerberos."""
        for name in names:
            if name == OAUTHBEARER:
                oauth = _oauth(config, listener)
                self._keys = oauth.keys
                check = oauth.check
                self._makers[name] = lambda check=check: OAuthExchange(check)  # type: ignore[misc]
            elif name == GSSAPI:
                self._acceptor = _acceptor(config, listener)
                self._makers[name] = self._acceptor.begin
            elif name == PLAIN:
                users = _plain_users(config, listener)
                self._makers[name] = lambda users=users: PlainExchange(users)  # type: ignore[misc]
            else:
                find = ScramLogins(name, config_of_user, login_of_token).find
                self._makers[name] = partial(ScramExchange, name, find, nonce)

    async def start(self, timers: Timers, clock: Clock) -> None:
        """Read the keys: of signed tokens, until `close`, and of Kerberos. Log it where tokens need
        no key. Raises ConfigError.
        """
        if OAUTHBEARER in self._makers and self._keys is None:
            logger.warning(
                "listener %s takes unsecured tokens of OAUTHBEARER: whoever knows the name of a"
                " user gets in as this user. For signed tokens set listener.name.%s.oauthbearer.%s",
                self._listener,
                self._listener.lower(),
                HANDLER_KEY,
            )
        if self._acceptor is not None:
            await asyncio.to_thread(self._acceptor.check)
        if self._keys is not None:
            await self._keys.begin(timers, clock)

    async def close(self) -> None:
        """End reading of keys."""
        if self._keys is not None:
            await self._keys.close()

    def begin(self, mechanism: str) -> SaslExchange:
        """Return a new exchange of an enabled mechanism."""
        return self._makers[mechanism]()

    def max_session_ms(self, mechanism: str) -> int:
        """Return `connections.max.reauth.ms` of the mechanism; 0: sessions have no end."""
        return self._session_ms[mechanism]


def _plain_users(config: BrokerConfig, listener: Listener) -> dict[str, str]:
    """Return the users of the JAAS line, or those of `minibroker.users` where there is none."""
    users = users_of_config(config)
    if users and jaas.find_line(config, listener, PLAIN) is None:
        return users
    return users_of(jaas.line_of(config, listener, PLAIN).options)


def _oauth(config: BrokerConfig, listener: Listener) -> OAuthSettings:
    """Return what the listener believes; it needs no JAAS line. Raises ConfigError."""
    line = jaas.find_line(config, listener, OAUTHBEARER)
    options = {} if line is None else line.options
    try:
        return OAuthSettings(config.of_mechanism(listener.name, OAUTHBEARER), options)
    except ConfigError as error:
        raise ConfigError(f"listener {listener.name}: {error}") from None


def _acceptor(config: BrokerConfig, listener: Listener) -> KerberosAcceptor:
    """Return the key of this broker in Kerberos. Raises ConfigError."""
    options = jaas.line_of(config, listener, GSSAPI).options
    try:
        from minibroker.broker.security.sasl.kerberos import (  # noqa: PLC0415  an extra
            KerberosAcceptor,
        )
    except ImportError as error:
        raise ConfigError(
            f"GSSAPI needs libkrb5 and the package gssapi: pip install 'minibroker[kerberos]'"
            f" ({error})"
        ) from None
    try:
        return KerberosAcceptor(config.of_mechanism(listener.name, GSSAPI), options)
    except ConfigError as error:
        raise ConfigError(f"listener {listener.name}: {error}") from None


def _session_ms(config: BrokerConfig, listener: Listener, mechanism: str) -> int:
    """Return the setting of the listener's mechanism, else of the listener, else of the broker."""
    own = config.originals.get(
        f"{LISTENER_PREFIX}{listener.name.lower()}.{mechanism.lower()}.connections.max.reauth.ms"
    )
    if own is None:
        return config.of_listener(listener.name).integer("connections.max.reauth.ms")
    try:
        return int(own)
    except ValueError:
        raise ConfigError(
            f"connections.max.reauth.ms of {mechanism} on listener {listener.name}: expected a"
            " number of milliseconds"
        ) from None


class ScramLogins:
    """The users, and the delegation tokens, that may log in by one mechanism of SCRAM. The loop
    owns it.
    """

    __slots__ = ("_config_of_user", "_login_of_token", "_logins", "_mechanism")

    def __init__(
        self,
        mechanism: str,
        config_of_user: Callable[[str], Mapping[str, str]],
        login_of_token: Callable[[str, str], Login | None] | None,
    ) -> None:
        """Take what `Mechanisms` takes."""
        self._mechanism = mechanism
        self._config_of_user = config_of_user
        self._login_of_token = login_of_token
        self._logins: dict[str, tuple[str, Login | None]] = {}
        """User → the stored text that was read last, and its login. A text is read once."""

    def find(self, name: str, is_token: bool) -> Login | None:
        """Return the login of a user with a credential, or of a token; None if there is none."""
        if is_token:
            return (
                None
                if self._login_of_token is None
                else self._login_of_token(self._mechanism, name)
            )
        text = self._config_of_user(name).get(self._mechanism)
        if text is None:
            self._logins.pop(name, None)
            return None
        entry = self._logins.get(name)
        if entry is None or entry[0] != text:
            credential = credential_of(text)
            entry = text, None if credential is None else Login(name, credential)
            if len(self._logins) >= KNOWN_MAX:
                self._logins.clear()
            self._logins[name] = entry
        return entry[1]
