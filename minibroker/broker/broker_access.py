"""The parts of a broker that say who may use it, and by which it logs in at other brokers.

`app` makes a `BrokerAccess` with the broker, and calls it at the start in this order:

    follow_peers   connections to other brokers have the TLS and the login of the settings in force
    load_altered   settings that were altered in earlier runs hold, their passwords decoded
    check_logins   a login at other brokers that the settings do not allow is told
    begin          ACLs and delegation tokens are read, and their changes are followed
    write_users    users of the settings get their SCRAM credentials

Most brokers need none of it, so each part is imported when the settings ask for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.cluster.paths import DEFAULT_ENTITY
from minibroker.broker.config.dynamic import is_password
from minibroker.broker.config.secured import SCRAM_CREDENTIALS, USERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.config.dynamic import DynamicConfig
    from minibroker.broker.security.acl_store import AclStore
    from minibroker.broker.security.authorizer import Authorizer
    from minibroker.broker.security.stored_passwords import StoredPasswords
    from minibroker.broker.security.token_store import TokenStore
    from minibroker.broker.timers import Timers
    from minibroker.clock import Clock


class BrokerAccess:
    """Authorizer, delegation tokens, and logins of one broker. The loop owns it."""

    __slots__ = (
        "_acl_store",
        "_clock",
        "_cluster",
        "_config",
        "_dynamic",
        "_has_peers",
        "authorizer",
        "tokens",
    )

    def __init__(
        self,
        config: BrokerConfig,
        dynamic: DynamicConfig,
        cluster: Cluster,
        clock: Clock,
        timers: Timers,
        *,
        has_peers: bool,
    ) -> None:
        """`has_peers`: other brokers may be in the cluster. Raises ConfigError."""
        # Constant after construction, but for the last.
        self._config = config
        self._dynamic = dynamic
        self._cluster = cluster
        self._clock = clock
        self._has_peers = has_peers
        self.authorizer = _authorizer_of(config)
        """Decides who may do what; None: everyone may do everything."""
        self.tokens = self._make_tokens(timers)
        """The delegation tokens; None: no secret is set."""
        self._acl_store: AclStore | None = None
        """Made by `begin` where an authorizer is set."""

    def _make_tokens(self, timers: Timers) -> TokenStore | None:
        if not any(key.startswith("delegation.token.") for key in self._config.originals):
            return None
        from minibroker.broker.security import token_store  # noqa: PLC0415  most do without

        settings = token_store.settings_of(self._config)
        if settings is None:
            return None
        cluster = self._cluster
        return token_store.TokenStore(
            settings,
            cluster.tree,
            self._clock,
            timers,
            is_controller=lambda: cluster.is_controller,
        )

    def follow_peers(self) -> None:
        """Give connections to other brokers the TLS and the login of their listener. They follow
        settings and stores that are altered.
        """
        dynamic = self._dynamic
        protocols = [listener.security_protocol for listener in self._config.listeners]
        if any(protocol.uses_sasl for protocol in protocols):
            from minibroker.broker.security.sasl.peer_logins import PeerLogins  # noqa: PLC0415  seldom used

            self._cluster.peer_logins = PeerLogins(lambda: dynamic.broker, self._clock).of
        if any(protocol.uses_tls for protocol in protocols):
            from minibroker.broker.security.peer_tls import PeerContexts  # noqa: PLC0415  seldom used

            contexts = PeerContexts(lambda: dynamic.broker)
            self._cluster.peer_contexts = contexts.of
            dynamic.reloads.append(contexts.update)
            dynamic.subscribe(contexts)

    async def load_altered(self, passwords: Callable[[], StoredPasswords]) -> None:
        """Have the settings hold that were altered in earlier runs, before the listeners are made.
        `passwords`: returns what decodes them. Raises ConfigError.
        """
        config, cluster, dynamic = self._config, self._cluster, self._dynamic
        own = await cluster.stored_config("brokers", str(config.broker_id))
        if any(name.startswith("password.encoder.") for name in config.originals) or any(
            map(is_password, own)
        ):
            own = await self._decode(own, passwords())
        dynamic.set_cluster_default(await cluster.stored_config("brokers", DEFAULT_ENTITY))
        dynamic.set_broker(own)

    async def _decode(self, config: dict[str, str], passwords: StoredPasswords) -> dict[str, str]:
        """Return this broker's altered settings in plain text; passwords of an old secret are
        stored with the new one. Raises ConfigError.
        """
        encoded = await passwords.encode_again(config)
        plain = await passwords.decode({**config, **encoded})
        if encoded:

            def edit(stored: dict[str, str]) -> dict[str, str]:
                """Replace what is as it was read: somebody may have altered it since."""
                return {
                    name: encoded.get(name, text) if text == config.get(name) else text
                    for name, text in stored.items()
                }

            await self._cluster.edit_config("brokers", str(self._config.broker_id), edit)
        return plain

    def check_logins(self) -> None:
        """Raise ConfigError where this broker could not log in at others."""
        config = self._dynamic.broker
        login_of = self._cluster.peer_logins
        if self._has_peers and login_of is not None:
            between = {config.inter_broker_listener_name, config.controller_listener_name}
            for name in sorted(between):
                login_of(name)

    async def begin(self) -> None:
        """Read the ACLs and the tokens, and follow their changes. Raises CoordinationError."""
        authorizer = self.authorizer
        if authorizer is not None:
            from minibroker.broker.security.acl_store import AclStore  # noqa: PLC0415  most do without

            self._acl_store = AclStore(self._cluster.tree, self._clock, authorizer.put)
            await self._acl_store.start()
            authorizer.begin(self._acl_store.update)
        if self.tokens is not None:
            await self.tokens.start()

    async def write_users(self) -> None:
        """Give the users of the settings their SCRAM credentials. Raises ConfigError."""
        keys = self._config.originals.keys() & {USERS, SCRAM_CREDENTIALS}
        if not keys:
            return
        from minibroker.broker.security.sasl import users  # noqa: PLC0415  seldom set

        if USERS in keys:
            await users.write_credentials(self._cluster, users.users_of_config(self._config))
        if SCRAM_CREDENTIALS in keys:
            await users.write_given(self._cluster, users.given_credentials(self._config))

    async def close(self) -> None:
        """Follow no more changes of ACLs and tokens."""
        if self._acl_store is not None:
            await self._acl_store.close()
        if self.tokens is not None:
            await self.tokens.close()


def _authorizer_of(config: BrokerConfig) -> Authorizer | None:
    if config.authorizer is None:
        return None
    from minibroker.broker.security.authorizer import Authorizer  # noqa: PLC0415  most do without

    return Authorizer(config.authorizer)
