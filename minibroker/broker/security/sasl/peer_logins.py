"""The logins of one broker at other brokers, by listener.

Every client of other brokers asks here (`broker.peers`), so all of them show the same token of an
identity provider, and ask for it once (`client.token_endpoint`).

Source: Kafka LoginManager.acquireLoginManager: one login for all connections with equal settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.security.sasl import jaas_lines as jaas
from minibroker.broker.security.sasl.authenticator import GSSAPI
from minibroker.broker.security.sasl.mechanisms import SERVED
from minibroker.broker.security.sasl.users import users_of_config
from minibroker.client.sasl import PLAIN, PasswordLogin
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.scram import CODES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.config.settings import ConfigValues
    from minibroker.client.sasl import SaslLogin
    from minibroker.clock import Clock


class PeerLogins:
    """Listener → login. The loop owns it."""

    __slots__ = ("_clock", "_config", "_logins")

    def __init__(self, config: Callable[[], BrokerConfig], clock: Clock) -> None:
        """`config`: returns the broker's settings in force."""
        self._config = config
        self._clock = clock
        self._logins: dict[str, tuple[BrokerConfig, SaslLogin | None]] = {}
        """Listener → the settings of its login, and the login; filled when asked."""

    def of(self, listener: str) -> SaslLogin | None:
        """Return the login for this listener of other brokers, None where it asks for none. It is
        the same one until settings are altered. Raises ConfigError where the settings have none.
        """
        config = self._config()
        login = self._logins.get(listener)
        if login is None or login[0].originals != config.originals:
            login = self._logins[listener] = config, login_of(config, listener, self._clock)
        return login[1]


def login_of(config: BrokerConfig, listener_name: str, clock: Clock) -> SaslLogin | None:
    """Return the login for the listener of other brokers, None where it asks for none.

    Raises ConfigError where the settings have none.
    """
    listener = next((users for users in config.listeners if users.name == listener_name), None)
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
    users = users_of_config(config)
    if users and jaas.find_line(config, listener, mechanism) is None:
        return PasswordLogin(mechanism, *next(iter(users.items())))
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
) -> SaslLogin:
    """Return a login by token or ticket. Raises ConfigError."""
    if mechanism == GSSAPI:
        from minibroker.client.kerberos import login_of_options  # noqa: PLC0415  an extra

        return login_of_options(settings, options)
    from minibroker.client.oauth import oauth_login  # noqa: PLC0415  seldom set

    return oauth_login(settings, options, clock.now_ms)
