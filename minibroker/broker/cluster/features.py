"""Features of the cluster and the levels that are in force (KIP-584), kept in /feature.

A level says how far the whole cluster may go: `transaction.version` 2 lets clients use the second
transaction protocol, `group.version` 1 the new group protocol. ApiVersions tells clients the levels
from version 3 on; UpdateFeatures changes them. A level that was never changed is that of a fresh
cluster of the release, or that of the configuration (`--set transaction.version=1`).

The node is Kafka's, with `features` empty. Our levels stand under a key of their own, in the same
form. A Kafka 3.9 broker with ZooKeeper knows no feature and does not start if it finds one
finalized, but it ignores unknown keys.

Where a broker of Apache Kafka is registered, the second transaction protocol is out of force, also
when that broker has gone again: `stay_below_kafka` writes it down. A client of 4.0 or newer takes
the protocol from whichever broker it asks, and a coordinator on Kafka 3.9 does not raise the
producer's epoch with each transaction. Offsets of the next transaction would be committed with the
last one.

Source: Kafka FeatureControlManager, QuorumFeatures, Feature and its enums; FeatureZNode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import decode_features, encode_features
from minibroker.broker.cluster.tree import BadVersion, NodeExists, NoNode
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from minibroker.broker.cluster.context import ClusterContext
    from minibroker.broker.cluster.feature_update import FeatureUpdate

TRANSACTION_VERSION: Final = "transaction.version"
GROUP_VERSION: Final = "group.version"
METADATA_VERSION: Final = "metadata.version"
ELIGIBLE_LEADER_REPLICAS: Final = "eligible.leader.replicas.version"
"""KIP-966. With one replica nobody else is eligible; in force, it fixes `min.insync.replicas` for
the whole cluster (`Cluster.update_features`)."""

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
"""Kinds of change in UpdateFeatures."""

_METADATA_OLDEST: Final = 7
_METADATA_NEWEST: Final = {"4.0": 25, "4.1": 27, "4.2": 29, "4.3": 30, "4.4": 33}
"""Release → its metadata version; the releases in front of these had features in KRaft only."""
_METADATA_CHANGED: Final = (23, 30, 32, 33)
"""Metadata versions since 4.0 that changed records: Kafka does not go back across one of them."""
_NEWEST_RELEASE: Final = "4.4"
_WITH_ELR: Final = 27
"""Metadata version of 4.1, from which on a cluster may have eligible leader replicas."""
_LEVEL_MIN: Final = -1


def initial_levels(
    release: str | None, configured: Mapping[str, int], *, is_shared: bool
) -> dict[str, int]:
    """Return the levels of a cluster of this release (None: the newest) in which nobody changed
    one: those of the configuration, else the release's.
    """
    newest = _METADATA_NEWEST.get(release or _NEWEST_RELEASE)
    if newest is None:
        return {}
    levels = {GROUP_VERSION: 1, METADATA_VERSION: newest, TRANSACTION_VERSION: 2}
    # Kafka 3.9 would take the cluster-wide min.insync.replicas over, so not where it can come.
    if newest >= _WITH_ELR and not is_shared:
        levels[ELIGIBLE_LEADER_REPLICAS] = 0
    return {name: configured.get(name, level) for name, level in levels.items()}


class Features:
    """Supported ranges and levels of features. Only a change asks the tree.

    Args:
        release: the release that this broker passes for, None for the newest. Before 4.0 there are
            no features, as in Kafka with ZooKeeper.
        initial: levels from the configuration, for features that nobody changed yet.
    """

    __slots__ = ("_context", "_initial", "_stored_levels", "epoch", "supported")

    def __init__(
        self,
        context: ClusterContext,
        *,
        release: str | None = None,
        initial: Mapping[str, int] | None = None,
    ) -> None:
        self._context = context
        self.supported: dict[str, tuple[int, int]] = {}
        """Name → lowest and highest level that this broker can run."""
        newest = _METADATA_NEWEST.get(release or _NEWEST_RELEASE)
        if newest is not None:
            self.supported = {
                GROUP_VERSION: (0, 1),
                METADATA_VERSION: (_METADATA_OLDEST, newest),
                TRANSACTION_VERSION: (0, 2),
            }
        is_shared = context.tree.is_shared
        self._initial = initial_levels(release, initial or {}, is_shared=is_shared)
        if ELIGIBLE_LEADER_REPLICAS in self._initial:
            self.supported[ELIGIBLE_LEADER_REPLICAS] = (0, 1)
        self._stored_levels: dict[str, int] = {}
        self.epoch = -1
        """Grows with every change; -1 before the tree was read."""

    def level(self, name: str) -> int:
        """Return the level in force, 0 if the feature is not."""
        if name not in self.supported or (name == TRANSACTION_VERSION and self._kafkas):
            return 0
        low, high = self.supported[name]
        # Another release's levels may lie in the tree: take the nearest one that is supported.
        return min(max(self._stored_levels.get(name, self._initial[name]), low), high)

    def finalized(self) -> dict[str, int]:
        """Return every feature in force with its level."""
        levels = {name: self.level(name) for name in self.supported}
        return {name: level for name, level in levels.items() if level}

    async def load(self) -> None:
        """Read the node. Call it under the cluster's lock."""
        (node,) = await self._context.tree.get_many((paths.FEATURE,))
        if node is None:
            self._stored_levels, self.epoch = {}, -1
        else:
            self._stored_levels = decode_features(paths.FEATURE, node[0])
            self.epoch = node[1].version

    @property
    def _kafkas(self) -> list[int]:
        """Return the registered brokers that are Apache Kafka."""
        brokers = self._context.updater.image.brokers
        return [broker.id for broker in brokers.values() if not broker.is_minibroker]

    async def stay_below_kafka(self) -> None:
        """Read the node. Where a broker of Apache Kafka is registered, write that the second
        transaction protocol is not in force. Clients hear of it by the epoch, which grows. Call it
        under the cluster's lock. Raises CoordinationError.
        """
        await self.load()
        while TRANSACTION_VERSION in self.supported and self._kafkas and self._stored_level:
            self._context.log.info(
                "transaction.version is 0 from now on: broker %s is Apache Kafka", self._kafkas[0]
            )
            if not await self._write({**self._stored_levels, TRANSACTION_VERSION: 0}):
                await self.load()

    @property
    def _stored_level(self) -> int:
        """Return the transaction protocol in force but for brokers of Kafka."""
        return self._stored_levels.get(TRANSACTION_VERSION, self._initial[TRANSACTION_VERSION])

    async def update(self, updates: Sequence[FeatureUpdate], *, validate_only: bool) -> None:
        """Change levels, all or none; they are in force when this returns.

        Raises KafkaError INVALID_UPDATE_VERSION for the first that may not be.
        """
        async with self._context.lock:
            while True:
                await self.load()
                levels = dict(self._stored_levels)
                for update in updates:
                    self._check(update)
                    levels[update.name] = update.level
                if validate_only or levels == self._stored_levels or await self._write(levels):
                    return

    async def _write(self, levels: dict[str, int]) -> bool:
        """Write the node if it is still the one that was read."""
        tree = self._context.tree
        data = encode_features(levels)
        try:
            if self.epoch < 0:
                await tree.create(paths.FEATURE, data)
                self.epoch = 0
            else:
                self.epoch = await tree.set(paths.FEATURE, data, self.epoch)
        except (BadVersion, NodeExists, NoNode):
            return False
        self._stored_levels = levels
        return True

    def _check(self, update: FeatureUpdate) -> None:
        if not UPGRADE <= update.kind <= UNSAFE_DOWNGRADE:
            raise _refusal(update, "The controller does not support the given upgrade type.")
        if update.level < 0:
            raise _refusal(update, "A feature version cannot be less than 0.")
        low, high = self.supported.get(update.name, (0, _LEVEL_MIN))
        if not low <= update.level <= high:
            broker_name = f"Local controller {self._context.broker_id}"
            if high < low:
                raise _refusal(update, f"{broker_name} does not support this feature.")
            raise _refusal(update, f"{broker_name} only supports versions {low}-{high}")
        if update.name == TRANSACTION_VERSION and update.level and self._kafkas:
            raise _refusal(update, f"Broker {self._kafkas[0]} does not support this feature.")
        current = self.level(update.name)
        if update.level < current and update.kind == UPGRADE:
            raise _refusal(
                update,
                "Can't downgrade the version of this feature without setting the upgrade type to"
                " either safe or unsafe downgrade.",
            )
        if update.level > current and update.kind != UPGRADE:
            raise _refusal(update, "Can't downgrade to a newer version.")
        if update.name == METADATA_VERSION and any(
            update.level < threshold <= current for threshold in _METADATA_CHANGED
        ):
            raise KafkaError(
                ErrorCode.INVALID_UPDATE_VERSION,
                f"Unsupported metadata.version downgrade from {current} to {update.level}. Refusing"
                " to perform the requested downgrade because it might delete metadata information.",
            )


def _refusal(update: FeatureUpdate, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Invalid update version {update.level} for feature {update.name}. {reason}",
    )
