"""The groups of a cluster and their offsets, by the pipeline's own client.

    Kafka ─► wire_settings ─► WireGroups ─► client.groups
                  └─ a login or setting that is librdkafka's alone ─► LibrdkafkaGroups

librdkafka's client for such questions has ended a process by SIGSEGV (librdkafka #5315), so it is
used only where the own one cannot log in.
"""

from __future__ import annotations

import itertools
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException
from confluent_kafka import KafkaError as LibrdkafkaError
from confluent_kafka import TopicPartition as LibrdkafkaPartition

from minibroker.client import groups as wire_groups
from minibroker.client.client import CLIENT_ERRORS, Client
from minibroker.client.coordinators import CoordinatorClient
from minibroker.client.settings import ClientSettings, UnservedError, wire_settings
from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka import preflight
from minibroker.pipeline.kafka.client_settings import BOOTSTRAP, for_admin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from minibroker.client.groups import GroupOffset, KnownGroup
    from minibroker.pipeline.kafka.cluster import Kafka
    from minibroker.pipeline.kafka.preflight import Admin
    from minibroker.pipeline.offsets import Offsets

ANSWER_TIMEOUT_S: Final = 30
_STATES: Final[Mapping[str, str]] = {
    "": "unknown",
    "PreparingRebalance": "preparing_rebalancing",
    "CompletingRebalance": "completing_rebalancing",
}
"""Kafka's names that are not shown in lower case as they are; librdkafka has the same words."""
DEAD: Final = "dead"
_UNKNOWN: Final = (LibrdkafkaError.GROUP_ID_NOT_FOUND, LibrdkafkaError.INVALID_GROUP_ID)


class Groups(Protocol):
    """The groups of a cluster; used by one thread."""

    def states(self) -> dict[str, str]:
        """Return group → state. Raises PipelineError: the brokers do not answer."""

    def committed(self, names: Iterable[str]) -> Iterator[tuple[str, Offsets]]:
        """Yield each of these groups with its committed offsets; one that is gone is left out.

        The last `states` has them all. Raises PipelineError.
        """

    def state_of(self, name: str) -> str:
        """Return the state of a group, `DEAD` if it is not there. Raises PipelineError."""

    def offsets_of(self, name: str) -> Offsets:
        """Return the committed offsets of a group, none without it. Raises PipelineError."""

    def commit(self, name: str, offsets: Offsets) -> None:
        """Commit offsets of a group that has no members.

        Raises PipelineError: it has some, or a partition is refused; others may be committed.
        """


def groups_of(kafka: Kafka, admin: Admin | None = None) -> Groups:
    """Return the groups of a cluster.

    Args:
        kafka: the cluster.
        admin: a client of it, for where librdkafka is needed; None: one is made then.

    Raises PipelineError: librdkafka refuses a setting.
    """
    settings = {**for_admin(kafka.settings), BOOTSTRAP: kafka.bootstrap}
    try:
        return WireGroups(wire_settings(settings), kafka.bootstrap)
    except UnservedError:
        # By its length a client without events is false.
        own = preflight.admin_of(kafka) if admin is None else admin
        return LibrdkafkaGroups(own, kafka.bootstrap)


class WireGroups:
    """Groups that are asked for by the own client."""

    def __init__(self, settings: ClientSettings, where: str) -> None:
        """`where`: the cluster, for sentences."""
        patience_s = min(settings.timeout_s, ANSWER_TIMEOUT_S)
        self._client = Client(settings._replace(timeout_s=patience_s))
        self._where = where
        self._known: dict[str, KnownGroup] = {}

    def states(self) -> dict[str, str]:
        with self._told():
            found = wire_groups.listed(self._client, _deadline())
        self._known = {group.name: group for group in found}
        return {group.name: _word(group.state) for group in self._known.values()}

    def committed(self, names: Iterable[str]) -> Iterator[tuple[str, Offsets]]:
        groups = [self._known[name] for name in names]
        with self._told():
            for name, found in wire_groups.committed_of(self._client, groups, _deadline()):
                yield name, _by_place(found)

    def state_of(self, name: str) -> str:
        with self._told():
            return _word(wire_groups.state_of(self._coordinator(name), _deadline()))

    def offsets_of(self, name: str) -> Offsets:
        with self._told():
            return _by_place(wire_groups.committed(self._coordinator(name), _deadline()))

    def commit(self, name: str, offsets: Offsets) -> None:
        try:
            wire_groups.commit(self._coordinator(name), offsets, _deadline())
        except CLIENT_ERRORS as error:
            raise _not_committed(self._where, name, str(error)) from error

    def _coordinator(self, name: str) -> CoordinatorClient:
        return CoordinatorClient(self._client, name)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Raise PipelineError for the errors of the client."""
        try:
            yield
        except CLIENT_ERRORS as error:
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

    def state_of(self, name: str) -> str:
        asked = self._admin.describe_consumer_groups([name], request_timeout=ANSWER_TIMEOUT_S)
        try:
            return str(asked[name].result().state.name.lower())
        except KafkaException as error:
            if error.args[0].code() in _UNKNOWN:
                return DEAD
            raise _not_had(self._where, error.args[0].str()) from error

    def offsets_of(self, name: str) -> Offsets:
        return dict(self.committed([name])).get(name, {})

    def commit(self, name: str, offsets: Offsets) -> None:
        wanted = [LibrdkafkaPartition(*where, offset) for where, offset in sorted(offsets.items())]
        asked = self._admin.alter_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(name, wanted)], request_timeout=ANSWER_TIMEOUT_S
        )
        try:
            answered = asked[name].result().topic_partitions
        except KafkaException as error:
            raise _not_committed(self._where, name, error.args[0].str()) from error
        for place in answered:
            if place.error is not None:
                reason = f"{place.error.name()}: {place.topic}-{place.partition}"
                raise _not_committed(self._where, name, reason)


def _word(state: str) -> str:
    """Return how a state of Kafka is shown."""
    return _STATES.get(state, state.lower())


def _by_place(found: Iterable[GroupOffset]) -> Offsets:
    return {TopicPartition(part.topic, part.partition): part.offset for part in found}


def _deadline() -> float:
    return time.monotonic() + ANSWER_TIMEOUT_S


def _not_had(where: str, reason: str) -> PipelineError:
    return PipelineError(f"the groups of {where} are not to be had: {reason}")


def _not_committed(where: str, group: str, reason: str) -> PipelineError:
    return PipelineError(f"the offsets of group {group} are not committed at {where}: {reason}")
