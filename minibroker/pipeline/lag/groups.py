"""The groups of a cluster, and how far they have read: asked for by the pipeline's own client.

    Kafka ─► wire_settings ─► WireGroups ─► wire.groups
                  └─ a login or setting that is librdkafka's alone ─► LibrdkafkaGroups

librdkafka's client for such questions has ended a process by SIGSEGV (librdkafka #5315), so it is
used only where the own one cannot log in.
"""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any, Final, Protocol

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException
from confluent_kafka import KafkaError as LibrdkafkaError

from minibroker.errors import ConfigError, KafkaError, ProtocolError
from minibroker.pipeline.client_settings import BOOTSTRAP, for_admin
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.offsets import TopicPartition
from minibroker.pipeline.wire import groups as wire_groups
from minibroker.pipeline.wire.client import WireClient
from minibroker.pipeline.wire.settings import UnservedError, WireSettings, wire_settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from minibroker.pipeline.offsets import Offsets
    from minibroker.pipeline.plan import Kafka
    from minibroker.pipeline.preflight import Admin
    from minibroker.pipeline.wire.groups import KnownGroup

ANSWER_TIMEOUT_S: Final = 30
_STATES: Final[Mapping[str, str]] = {
    "": "unknown",
    "PreparingRebalance": "preparing_rebalancing",
    "CompletingRebalance": "completing_rebalancing",
}
"""Kafka's names that are not shown in lower case as they are; librdkafka has the same words."""


class Groups(Protocol):
    """The groups of a cluster; used by one thread."""

    def states(self) -> dict[str, str]:
        """Return group → state. Raises PipelineError: the brokers do not answer."""

    def committed(self, names: Iterable[str]) -> Iterator[tuple[str, Offsets]]:
        """Yield each of these groups with its committed offsets; one that is gone is left out.

        The last `states` has them all. Raises PipelineError.
        """


def groups_of(kafka: Kafka, admin: Admin) -> Groups:
    """Return the groups of a cluster; `admin` is a client of it, for where it is needed."""
    settings = {**for_admin(kafka.settings), BOOTSTRAP: kafka.bootstrap}
    try:
        return WireGroups(wire_settings(settings), kafka.bootstrap)
    except UnservedError:
        return LibrdkafkaGroups(admin, kafka.bootstrap)


class WireGroups:
    """Groups that are asked for by the own client."""

    def __init__(self, settings: WireSettings, where: str) -> None:
        """`where`: the cluster, for sentences."""
        patience_s = min(settings.timeout_s, ANSWER_TIMEOUT_S)
        self._client = WireClient(settings._replace(timeout_s=patience_s))
        self._where = where
        self._known: dict[str, KnownGroup] = {}

    def states(self) -> dict[str, str]:
        try:
            found = wire_groups.listed(self._client, _deadline())
        except (KafkaError, OSError, ProtocolError, ConfigError) as error:
            raise _not_had(self._where, str(error)) from error
        self._known = {group.name: group for group in found}
        return {
            group.name: _STATES.get(group.state, group.state.lower())
            for group in self._known.values()
        }

    def committed(self, names: Iterable[str]) -> Iterator[tuple[str, Offsets]]:
        groups = [self._known[name] for name in names]
        try:
            for name, offsets in wire_groups.committed_of(self._client, groups, _deadline()):
                yield (
                    name,
                    {
                        TopicPartition(found.topic, found.partition): found.offset
                        for found in offsets
                    },
                )
        except (KafkaError, OSError, ProtocolError, ConfigError) as error:
            raise _not_had(self._where, str(error)) from error


class LibrdkafkaGroups:
    """Groups that are asked for by librdkafka, some at a time."""

    def __init__(self, admin: Admin, where: str) -> None:
        """`where`: the cluster, for sentences."""
        self._admin = admin
        self._where = where

    def states(self) -> dict[str, str]:
        try:
            listed = self._admin.list_consumer_groups(request_timeout=ANSWER_TIMEOUT_S).result()
        except KafkaException as error:
            raise _not_had(self._where, error.args[0].str()) from error
        if listed.errors:
            raise _not_had(self._where, listed.errors[0].str())
        return {group.group_id: group.state.name.lower() for group in listed.valid}

    def committed(self, names: Iterable[str]) -> Iterator[tuple[str, Offsets]]:
        left = iter(names)
        while some := list(itertools.islice(left, wire_groups.AT_ONCE)):
            asked: dict[str, Any] = {}
            for name in some:
                asked |= self._admin.list_consumer_group_offsets(
                    [ConsumerGroupTopicPartitions(name)], request_timeout=ANSWER_TIMEOUT_S
                )
            for name, answer in asked.items():
                try:
                    positions = answer.result().topic_partitions or ()
                except KafkaException as error:
                    if error.args[0].code() == LibrdkafkaError.GROUP_ID_NOT_FOUND:
                        continue
                    raise _not_had(self._where, error.args[0].str()) from error
                yield (
                    name,
                    {
                        TopicPartition(position.topic, position.partition): position.offset
                        for position in positions
                        if position.error is None and position.offset >= 0
                    },
                )


def _deadline() -> float:
    return time.monotonic() + ANSWER_TIMEOUT_S


def _not_had(where: str, reason: str) -> PipelineError:
    return PipelineError(f"the groups of {where} are not to be had: {reason}")
