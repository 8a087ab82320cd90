"""Settings that no part of this broker reads, because what they are about does not exist: a
listener that is not configured, a ZooKeeper where there is none.

Kafka does not read them either, so `unserved` does not refuse them: they are named in a warning.
Often the name of a listener is misspelt: a variable needs two underscores where the listener's name
has one. Then the warning has the name that was meant.

Source: Kafka AbstractConfig.valuesWithPrefixOverride, KafkaServer (with KRaft no key of ZooKeeper).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.config.keys import BROKER_KEYS
from minibroker.broker.config.settings import LISTENER_PREFIX

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_MECHANISMS: Final = ("gssapi", "oauthbearer", "plain", "scram-sha-256", "scram-sha-512")
_ZOOKEEPER_PREFIX: Final = "zookeeper."
_ZOOKEEPER_CONNECT: Final = "zookeeper.connect"


def strays(settings: Mapping[str, str], listeners: Collection[str]) -> dict[str, str]:
    """Return key → why it has no effect, for each such setting. `listeners`: the names of those
    that are configured, for clients, brokers and controllers.
    """
    names = [name.lower() for name in listeners]
    has_zookeeper = bool(settings.get(_ZOOKEEPER_CONNECT))
    found: dict[str, str] = {}
    for key in settings:
        reason = None
        if key.startswith(LISTENER_PREFIX):
            reason = _why_of_no_listener(key, names)
        elif key.startswith(_ZOOKEEPER_PREFIX) and not has_zookeeper and key in BROKER_KEYS:
            reason = f"{_ZOOKEEPER_CONNECT} is not set"
        if reason is not None:
            found[key] = reason
    return found


def _why_of_no_listener(key: str, names: Collection[str]) -> str | None:
    """Return why no listener has this setting; None: one has, or may have it."""
    behind = key[len(LISTENER_PREFIX) :]
    own, _, base = behind.partition(".")
    if own in names and _is_known(base):
        return None
    for name in names:
        dotted = name.replace("_", ".").replace("-", ".")
        if dotted != name and behind.startswith(f"{dotted}."):
            meant = behind[len(dotted) + 1 :]
            if _is_known(meant):
                return _hint(own, name, f"{LISTENER_PREFIX}{name}.{meant}")
    if own in names:
        return None  # Kafka might read it, so `unserved` decides
    return f"there is no listener {own.upper()}"


def _is_known(base: str) -> bool:
    """Return whether Kafka knows the key, by itself or behind the name of a mechanism."""
    mechanism, _, key = base.partition(".")
    return base in BROKER_KEYS or (mechanism in _MECHANISMS and key in BROKER_KEYS)


def _hint(own: str, name: str, right: str) -> str:
    variable = right.upper().replace("_", "__").replace("-", "___").replace(".", "_")
    return (
        f"it is read for a listener {own.upper()}; for listener {name.upper()} it is {right}, as a"
        f" variable KAFKA_{variable}"
    )
