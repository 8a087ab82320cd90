"""Limits of clients: eight scopes; the first one that has a limit decides.

    1  /config/users/U/clients/C                 5  /config/users/<default>/clients/<default>
    2  /config/users/U/clients/<default>         6  /config/users/<default>
    3  /config/users/U                           7  /config/clients/C
    4  /config/users/<default>/clients/C         8  /config/clients/<default>

The scope also says which clients share the limit (the *tags*): in 1, 2, 4 and 5 every pair of user
and client id has its own, in 3 and 6 every user, in 7 and 8 every client id with any user. A scope
that names a client id does not apply to a client without one; users always have a name.

Names are those of the tree: sanitized, so that no user or client has the name `<default>`.

Source: Kafka ClientQuotaManager (DefaultQuotaCallback).
"""

from __future__ import annotations

from typing import Final

from minibroker.broker.cluster.paths import DEFAULT_ENTITY

Tags = tuple[str, str]
"""User and client id that share one limit; "" where the scope does not ask."""

PRODUCE: Final = "producer_byte_rate"
FETCH: Final = "consumer_byte_rate"
REQUEST: Final = "request_percentage"
MUTATION: Final = "controller_mutation_rate"
CLIENT_KEYS: Final = (PRODUCE, FETCH, REQUEST, MUTATION)
CONNECTION_RATE: Final = "connection_creation_rate"


class Limits:
    """The limits of one quota key. An entity is (user, client id), None where not named."""

    __slots__ = ("_by_entity",)

    def __init__(self) -> None:
        self._by_entity: dict[tuple[str | None, str | None], float] = {}

    def __bool__(self) -> bool:
        return bool(self._by_entity)

    def set(self, user: str | None, client: str | None, limit: float | None) -> bool:
        """Set or (None) remove the limit of one entity; True if that changed anything."""
        entity = (user, client)
        if self._by_entity.get(entity) == limit:
            return False
        if limit is None:
            del self._by_entity[entity]
        else:
            self._by_entity[entity] = limit
        return True

    def tags(self, user: str, client: str) -> Tags:
        """Return the tags of those with whom this client shares its limit; without a limit its
        client id.
        """
        limits = self._by_entity
        if (user, client) in limits or (user, DEFAULT_ENTITY) in limits:
            return user, client
        if (user, None) in limits:
            return user, ""
        if (DEFAULT_ENTITY, client) in limits or (DEFAULT_ENTITY, DEFAULT_ENTITY) in limits:
            return user, client
        if (DEFAULT_ENTITY, None) in limits:
            return user, ""
        return "", client

    def limit(self, tags: Tags) -> float | None:
        """Return the limit of the clients that share `tags`, None for no limit."""
        user, client = tags
        limits = self._by_entity
        scopes: tuple[tuple[str | None, str | None], ...] = ()
        if user and client:
            scopes = (
                (user, client),
                (user, DEFAULT_ENTITY),
                (DEFAULT_ENTITY, client),
                (DEFAULT_ENTITY, DEFAULT_ENTITY),
            )
        elif user:
            scopes = ((user, None), (DEFAULT_ENTITY, None))
        elif client:
            scopes = ((None, client), (None, DEFAULT_ENTITY))
        for scope in scopes:
            limit = limits.get(scope)
            if limit is not None:
                return limit
        return None


def split_entity(entity_type: str, entity_name: str) -> tuple[str | None, str | None]:
    """Return (user, client id) of a config node: `users/U`, `users/U/clients/C` or `clients/C`."""
    if entity_type == "clients":
        return None, entity_name
    user, _, client = entity_name.partition("/clients/")
    return user, client or None
