"""`ConsumerWaits`: a test waits for its consumers. A `Broker` has these calls, and a `Cluster`.

Each has an async form, for a test that runs in a loop of its own; in such a loop the plain form
raises RuntimeError.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from minibroker.rig.faults import refuse_in_loop
from minibroker.testing.loop_thread import WAIT_TIMEOUT_S, LoopCalls, is_for_test

if TYPE_CHECKING:
    from collections.abc import Iterable

    from minibroker.rig.group_views import GroupMember
    from minibroker.rig.waits import Waits

__tracebackhide__ = is_for_test


class ConsumerWaits(LoopCalls):
    """The waits for consumers, for the thread of the test."""

    @property
    @abstractmethod
    def _waits(self) -> Waits:
        """Return the waits, for the loop. Raises RuntimeError if nothing runs."""

    def wait_for_group(
        self, group: str, members: int | None = None, *, timeout_s: float = WAIT_TIMEOUT_S
    ) -> list[GroupMember]:
        """Wait until a group reads: a record that is written then is read, also with
        `auto.offset.reset=latest`. Return its members in the order in which they joined.

        The group is Stable with exactly `members` members (None: one or more). Each has its
        assignment, each partition of the topics that they subscribe to has a member, and each
        member has fetched from each of its partitions. The group and its topics need not exist yet.

        Raises TimeoutError, which says what there is: state, members, positions; ValueError for
        `members` below 1; RuntimeError in a running event loop, which needs `wait_for_group_async`.
        """
        refuse_in_loop("wait_for_group")
        ready: list[GroupMember] = self._await(
            self._waits.for_group(group, members, timeout_s), timeout_s
        )
        return ready

    async def wait_for_group_async(
        self, group: str, members: int | None = None, *, timeout_s: float = WAIT_TIMEOUT_S
    ) -> list[GroupMember]:
        """Wait like `wait_for_group`, for a test that runs in a loop."""
        ready: list[GroupMember] = await self._awaited(
            self._waits.for_group(group, members, timeout_s)
        )
        return ready

    def wait_until_read(
        self, group: str, *, fetched: bool = False, timeout_s: float = WAIT_TIMEOUT_S
    ) -> dict[tuple[str, int], int]:
        """Wait until a group has read every record (lag 0); return (topic, partition) → offset.

        A record is read once the group has committed an offset behind it; with `fetched`, once a
        member has fetched it. It looks at all partitions of the topics that the members subscribe
        to, without members at those with a committed offset. Markers of transactions do not count,
        nor records of transactions that were aborted or are open. Where nothing is committed,
        records before the first Fetch do not count, as with `auto.offset.reset=latest`.

        Raises TimeoutError, which says what is left; RuntimeError in a running event loop, which
        needs `wait_until_read_async`.
        """
        refuse_in_loop("wait_until_read")
        offsets: dict[tuple[str, int], int] = self._await(
            self._waits.until_read(group, fetched=fetched, timeout_s=timeout_s), timeout_s
        )
        return offsets

    async def wait_until_read_async(
        self, group: str, *, fetched: bool = False, timeout_s: float = WAIT_TIMEOUT_S
    ) -> dict[tuple[str, int], int]:
        """Wait like `wait_until_read`, for a test that runs in a loop."""
        offsets: dict[tuple[str, int], int] = await self._awaited(
            self._waits.until_read(group, fetched=fetched, timeout_s=timeout_s)
        )
        return offsets

    def consumer_ready(
        self,
        topic: str,
        *,
        partitions: Iterable[int] | None = None,
        client_id: str | None = None,
        timeout_s: float = WAIT_TIMEOUT_S,
    ) -> dict[tuple[str, int], int]:
        """Wait until a consumer reads these partitions of a topic (None: all of them).

        For a consumer that assigns partitions to itself, without a group; members of groups count
        too. `client_id`: only consumers of this `client.id`. Return (topic, partition) → offset
        that is fetched next. A connection counts until it is closed.

        Raises TimeoutError, which says who reads what; RuntimeError in a running event loop, which
        needs `consumer_ready_async`.
        """
        refuse_in_loop("consumer_ready")
        wait = self._waits.for_consumer(
            topic, partitions=partitions, client_id=client_id, timeout_s=timeout_s
        )
        offsets: dict[tuple[str, int], int] = self._await(wait, timeout_s)
        return offsets

    async def consumer_ready_async(
        self,
        topic: str,
        *,
        partitions: Iterable[int] | None = None,
        client_id: str | None = None,
        timeout_s: float = WAIT_TIMEOUT_S,
    ) -> dict[tuple[str, int], int]:
        """Wait like `consumer_ready`, for a test that runs in a loop."""
        wait = self._waits.for_consumer(
            topic, partitions=partitions, client_id=client_id, timeout_s=timeout_s
        )
        offsets: dict[tuple[str, int], int] = await self._awaited(wait)
        return offsets
