"""The logins of one broker at other brokers, by listener.

Every client of other brokers asks here (`peers.client`), so all of them show the same token of an
identity provider, and ask for it once (`token_endpoint`).

Source: Kafka LoginManager.acquireLoginManager: one login for all connections with equal settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.security.sasl.client import login_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.security.sasl.client import PeerLogin
    from minibroker.clock import Clock


class PeerLogins:
    """Listener → login. The loop owns it."""

    __slots__ = ("_clock", "_config", "_logins")

    def __init__(self, config: Callable[[], BrokerConfig], clock: Clock) -> None:
        """`config`: returns the broker's settings in force."""
        self._config = config
        self._clock = clock
        self._logins: dict[str, tuple[BrokerConfig, PeerLogin | None]] = {}
        """Listener → the settings of its login, and the login; filled when asked."""

    def of(self, listener: str) -> PeerLogin | None:
        """Return the login for this listener of other brokers, None where it asks for none. It is
        the same one until settings are altered. Raises ConfigError where the settings have none.
        """
        config = self._config()
        known = self._logins.get(listener)
        if known is None or known[0].originals != config.originals:
            known = self._logins[listener] = config, login_of(config, listener, self._clock)
        return known[1]
