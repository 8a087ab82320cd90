"""The groups of a cluster and their offsets, with the errors of the pipeline.

Kafka ─► Groups ─► client.groups
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from minibroker.client import groups as client_groups
from minibroker.client.client import CLIENT_ERRORS
from minibroker.client.coordinators import CoordinatorClient
from minibroker.client.group_details import group_details
from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.preflight import client_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from minibroker.client.groups import GroupListing, GroupOffset
    from minibroker.pipeline.kafka.cluster import Kafka
    from minibroker.pipeline.offsets import Offsets

ANSWER_TIMEOUT_S: Final = 30
_STATES: Final[Mapping[str, str]] = {
    "": "unknown",
    "PreparingRebalance": "preparing_rebalancing",
    "CompletingRebalance": "completing_rebalancing",
}
"""Kafka's names that are not shown in lower case as they are."""
DEAD: Final = "dead"


class Groups:
    """The groups of a cluster; used by one thread."""

    def __init__(self, kafka: Kafka) -> None:
        """Raise PipelineError for a setting of the client that is refused."""
        self._client = client_of(kafka)
        self._brokers = kafka.bootstrap
        self._listings: dict[str, GroupListing] = {}

    def states(self) -> dict[str, str]:
        """Return group → state. Raises PipelineError: the brokers do not answer."""
        with self._pipeline_errors():
            listings = client_groups.list_groups(self._client, _deadline())
        self._listings = {group.name: group for group in listings}
        return {group.name: _word(group.state) for group in self._listings.values()}

    def committed(self, names: Iterable[str]) -> Iterator[tuple[str, Offsets]]:
        """Yield each of these groups with its committed offsets; one that is gone is left out.

        The last `states` has them all. Raises PipelineError.
        """
        groups = [self._listings[name] for name in names]
        with self._pipeline_errors():
            for name, parts in client_groups.committed_offsets_of(
                self._client, groups, _deadline()
            ):
                yield name, _by_place(parts)

    def state_of(self, name: str) -> str:
        """Return the state of a group, `DEAD` if it is not there. Raises PipelineError."""
        with self._pipeline_errors():
            return _word(group_details(self._coordinator(name), _deadline()).state)

    def offsets_of(self, name: str) -> Offsets:
        """Return the committed offsets of a group, none without it. Raises PipelineError."""
        with self._pipeline_errors():
            return _by_place(client_groups.committed_offsets(self._coordinator(name), _deadline()))

    def commit(self, name: str, offsets: Offsets) -> None:
        """Commit offsets of a group that has no members.

        Raises PipelineError: it has some, or a partition is refused; others may be committed.
        """
        try:
            client_groups.commit_offsets(self._coordinator(name), offsets, _deadline())
        except CLIENT_ERRORS as error:
            raise _not_committed(self._brokers, name, str(error)) from error

    def _coordinator(self, name: str) -> CoordinatorClient:
        return CoordinatorClient(self._client, name)

    @contextmanager
    def _pipeline_errors(self) -> Iterator[None]:
        """Raise PipelineError for the errors of the client."""
        try:
            yield
        except CLIENT_ERRORS as error:
            raise _not_had(self._brokers, str(error)) from error


def _word(state: str) -> str:
    """Return how a state of Kafka is shown."""
    return _STATES.get(state, state.lower())


def _by_place(parts: Iterable[GroupOffset]) -> Offsets:
    return {TopicPartition(part.topic, part.partition): part.offset for part in parts}


def _deadline() -> float:
    return time.monotonic() + ANSWER_TIMEOUT_S


def _not_had(brokers: str, reason: str) -> PipelineError:
    return PipelineError(f"the groups of {brokers} are not to be had: {reason}")


def _not_committed(brokers: str, group: str, reason: str) -> PipelineError:
    return PipelineError(f"the offsets of group {group} are not committed at {brokers}: {reason}")
