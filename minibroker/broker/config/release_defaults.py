"""Defaults of settings as earlier and later releases of Kafka have them.

A broker that passes for a release (`minibroker.advertised.kafka.version`) has the defaults of that
release where the user sets nothing. `key_rows.py` has those of 3.9. Imported only by such a broker.

Source: KafkaConfig of each release from 0.9.0 on; KIP-1030 for 4.0.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Final

from minibroker.kafka.errors import ConfigError
from minibroker.kafka.protocol.releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.kafka.config_keys import ConfigKey

_OLD_DEFAULTS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "delete.topic.enable": (("1.0", "false"),),
    "group.max.session.timeout.ms": (("0.10.0", "30000"), ("2.3", "300000")),
    "message.max.bytes": (("2.5", "1000012"),),
    "offsets.retention.minutes": (("2.0", "1440"),),
    "replica.lag.time.max.ms": (("2.5", "10000"),),
    "unclean.leader.election.enable": (("0.11", "true"),),
    "zookeeper.session.timeout.ms": (("2.5", "6000"),),
}
"""Key → (release, default of the releases before it), the oldest first."""
_NEW_DEFAULTS: Final[dict[str, tuple[str, str]]] = {
    "log.message.timestamp.after.max.ms": ("4.0", "3600000"),
    "num.recovery.threads.per.data.dir": ("4.0", "2"),
}
"""Key → (release, default from this one on)."""


def release_named(text: str) -> str:
    """Return the release that a version belongs to: 2.8 for 2.8.2, 0.11 for 0.11.0.3.

    Raises ConfigError, which names the releases.
    """
    for release in reversed(RELEASES):
        if f"{text}.".startswith(f"{release}."):
            return release
    raise ConfigError(f"there is no Kafka {text}: expected one of {', '.join(RELEASES)}")


def keys_of_release(keys: Mapping[str, ConfigKey], release: str) -> dict[str, ConfigKey]:
    """Return the keys with the defaults of a release. Raises ConfigError for an unknown one."""
    if release not in RELEASES:
        raise ConfigError(
            f"minibroker.advertised.kafka.version={release}: expected one of {', '.join(RELEASES)}"
        )
    index = RELEASES.index(release)
    defaults = {
        key: default
        for key, (since, default) in _NEW_DEFAULTS.items()
        if index >= RELEASES.index(since)
    }
    for key, rows in _OLD_DEFAULTS.items():
        for changed_release, default in rows:
            if index < RELEASES.index(changed_release):
                defaults[key] = default
                break
    changed = dict(keys)
    for name, default in defaults.items():
        changed[name] = copy(keys[name])
        changed[name].default = default
    return changed
