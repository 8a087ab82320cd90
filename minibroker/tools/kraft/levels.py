"""Levels of features that a release of Kafka puts in force, and the records that a level takes.

A new cluster of a release has these levels. `metadata.version` decides which version a record is
written in, and whether its feature exists at all.

Source: Kafka MetadataVersion, Feature and its enums, ImageWriterOptions, Formatter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster.features import (
    ELIGIBLE_LEADER_REPLICAS,
    GROUP_VERSION,
    METADATA_VERSION,
    TRANSACTION_VERSION,
)
from minibroker.tools.kraft.errors import TransferError

if TYPE_CHECKING:
    from collections.abc import Mapping

SHARE_VERSION: Final = "share.version"
STREAMS_VERSION: Final = "streams.version"

_SINCE_4_0: Final = {GROUP_VERSION: 1, TRANSACTION_VERSION: 2}
_SINCE_4_1: Final = {**_SINCE_4_0, ELIGIBLE_LEADER_REPLICAS: 1}
_SINCE_4_2: Final = {**_SINCE_4_1, SHARE_VERSION: 1, STREAMS_VERSION: 1}

LEVELS: Final[Mapping[str, Mapping[str, int]]] = {
    "3.9": {METADATA_VERSION: 21},
    "4.0": {METADATA_VERSION: 25, **_SINCE_4_0},
    "4.1": {METADATA_VERSION: 27, **_SINCE_4_1},
    "4.2": {METADATA_VERSION: 29, **_SINCE_4_2},
    "4.3": {METADATA_VERSION: 30, **_SINCE_4_2},
    "4.4": {METADATA_VERSION: 33, **_SINCE_4_2, SHARE_VERSION: 2},
}
"""Release → the levels of a new cluster."""

OLDEST_METADATA_VERSION: Final = 21
"""3.9-IV0: the oldest level that minibroker writes."""
NEWEST_METADATA_VERSION: Final = 33
"""4.4-IV2: the newest level whose records are known here."""
_WITH_GROUP_SETTINGS: Final = 22
"""4.0-IV0. Kafka 3.9 has no settings of groups: it would drop them with its next snapshot."""
_WITH_ELR: Final = 23
"""4.0-IV1 brought eligible leader replicas into partition records (KIP-966)."""
_WITH_CORDONED: Final = 30
"""4.3-IV0 brought cordoned log directories into registrations (KIP-1066)."""


class LevelError(TransferError):
    """Levels of features that do not fit: too old or too new, or too low for the metadata."""


def metadata_version(features: Mapping[str, int]) -> int:
    """Return the level of `metadata.version`. Raises LevelError where it is absent or unknown."""
    level = features.get(METADATA_VERSION)
    if level is None or not OLDEST_METADATA_VERSION <= level <= NEWEST_METADATA_VERSION:
        raise LevelError(
            f"metadata.version is {level}, expected {OLDEST_METADATA_VERSION} (3.9-IV0) to "
            f"{NEWEST_METADATA_VERSION} (4.4-IV2): choose a release of Kafka from 3.9 to 4.4"
        )
    return level


def has_eligible_replicas(features: Mapping[str, int]) -> bool:
    """Return whether partitions have eligible leader replicas (KIP-966)."""
    return features.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0


def has_group_settings(level: int) -> bool:
    """Return whether groups have settings (KIP-848). `level`: of `metadata.version`."""
    return level >= _WITH_GROUP_SETTINGS


def partition_record_version(level: int) -> int:
    """Return the version of PartitionRecord and PartitionChangeRecord. `level`: 21 or more."""
    return 2 if level >= _WITH_ELR else 1


def broker_record_version(level: int) -> int:
    """Return the version of RegisterBrokerRecord. `level`: of `metadata.version`, 21 or more."""
    return 4 if level >= _WITH_CORDONED else 3
