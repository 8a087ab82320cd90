"""The inter-broker protocol: what the brokers of a cluster may send each other.

`inter.broker.protocol.version` names a release of Kafka, the oldest one in the cluster. Newer
brokers send no newer requests, and write nothing that the oldest could not read. Pure.

Source: Kafka MetadataVersion, AbstractControllerBrokerRequestBatch.
"""

from __future__ import annotations

from typing import Final, Self

_LAST: Final = 9
"""Stands for the last internal version of a release, which its name alone means."""

_Since = tuple[tuple[tuple[int, int, int], int], ...]
"""(release, version of a request), the newest first; the last one is that of 2.8."""

_FETCH: Final[_Since] = (
    ((3, 9, 0), 17),
    ((3, 7, 4), 16),
    ((3, 5, 1), 15),
    ((3, 5, 0), 14),
    ((3, 1, 0), 13),
    ((2, 7, 1), 12),
)
_LIST_OFFSETS: Final[_Since] = (
    ((3, 9, 0), 9),
    ((3, 5, 0), 8),
    ((3, 0, 1), 7),
    ((2, 8, 0), 6),
)
_LEADER_AND_ISR: Final[_Since] = (((3, 4, 0), 7), ((3, 2, 0), 6), ((2, 8, 1), 5))
_UPDATE_METADATA: Final[_Since] = (((3, 4, 0), 8), ((2, 8, 1), 7))
_STOP_REPLICA: Final[_Since] = (((3, 4, 0), 4), ((2, 6, 0), 3))


class InterBrokerProtocol(tuple[int, int, int]):
    """A release and its internal version: they compare by age.

    The properties are the newest version of a request. Before 2.8 they are those of 2.8, the oldest
    that minibroker sends.
    """

    __slots__ = ()

    def __new__(cls, major: int, minor: int, internal: int = _LAST) -> Self:
        """Return a release with its internal version, by default the last one."""
        return super().__new__(cls, (major, minor, internal))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the protocol of a checked value: `3.7`, `3.7.1`, `3.7-IV2`."""
        release, _, internal = text.partition("-IV")
        major, minor = release.split(".")[:2]
        return cls(int(major), int(minor), int(internal[0]) if internal else _LAST)

    @property
    def asks_controller(self) -> bool:
        """Return whether leaders send AlterPartition; before, they wrote the tree."""
        return self >= (2, 7, 2)

    @property
    def marks_recovery(self) -> bool:
        """Return whether a state says that its leader was elected uncleanly (KIP-704)."""
        return self >= (3, 2, 0)

    @property
    def fetch(self) -> int:
        """Return that of Fetch."""
        return self._newest(_FETCH)

    @property
    def list_offsets(self) -> int:
        """Return that of ListOffsets."""
        return self._newest(_LIST_OFFSETS)

    @property
    def leader_and_isr(self) -> int:
        """Return that of LeaderAndIsr."""
        return self._newest(_LEADER_AND_ISR)

    @property
    def update_metadata(self) -> int:
        """Return that of UpdateMetadata."""
        return self._newest(_UPDATE_METADATA)

    @property
    def stop_replica(self) -> int:
        """Return that of StopReplica."""
        return self._newest(_STOP_REPLICA)

    def _newest(self, since: _Since) -> int:
        return next((version for release, version in since if self >= release), since[-1][1])
