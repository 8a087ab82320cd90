"""The followers of one partition that this broker leads: how far they are, who is in sync, and the
answers that wait until all in sync have a record (acks=all).

Stands between the Fetch requests of followers and the high watermark. The rules are pure
(`replica_progress`), here is what they are applied to. A partition with one replica has none of
this.

A follower may be started again within an epoch of the leader, with a log that begins earlier or
ends earlier than it told. Its broker has a new registration then, and the leader forgets what the
former process told, when it next needs it.

Two sets of replicas matter (KIP-497). `isr` is what the metadata say: acks=all counts it. A replica
that this leader has asked to take in counts for the high watermark at once, before anybody
confirms it: the next leader may be that replica.

`RecordDeletions` are the DeleteRecords requests that wait until all live replicas have deleted too
(Kafka: DelayedDeleteRecords). A leader has them beside the acks=all answers. Each follower takes
the leader's log start offset with a Fetch answer, and tells its own with its next Fetch. A
partition with one replica has none of this.

Source: Kafka Partition.updateFollowerFetchState, Partition.maybeIncrementLeaderHW,
Partition.checkEnoughReplicasReachOffset, DelayedProduce.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from minibroker.broker.partitions.replica_progress import (
    ReplicaProgress,
    fetched,
    high_watermark,
    is_of_former_process,
    isr_size_min_of,
    low_watermark,
    may_join,
    out_of_sync,
    progress_at_beginning,
    was_at_end,
)
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.ids import NO_BROKER_EPOCH

if TYPE_CHECKING:
    from asyncio import TimerHandle
    from collections.abc import Callable, Iterator, Mapping

    from minibroker.broker.cluster.image import BrokerInfo
    from minibroker.broker.partitions.role import Leader


INVALID_LOW_WATERMARK: Final = -1


class DeletionResult(Protocol):
    """The part of an answer for one partition; no error until one is known."""

    error_code: int
    low_watermark: int


class _WaitingDeletion:
    """One partition of a DeleteRecords request."""

    __slots__ = ("future", "offset", "result", "timer")

    def __init__(
        self, offset: int, result: DeletionResult, future: asyncio.Future[None], timer: TimerHandle
    ) -> None:
        self.offset = offset
        self.result = result
        self.future = future
        self.timer = timer


class RecordDeletions:
    """The waiting deletions of one partition. Owned by the loop."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[_WaitingDeletion] = []

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._waiting)

    def wait(self, offset: int, result: DeletionResult, timeout_ms: int) -> asyncio.Future[None]:
        """Return what is done when the low watermark has reached `offset`; `result` has it then.

        After `timeout_ms` it is done, too: the error is REQUEST_TIMED_OUT then, and the followers
        delete later.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(timeout_ms / 1000, self._time_out, future)
        self._waiting.append(_WaitingDeletion(offset, result, future, timer))
        return future

    def complete(self, low_watermark: int) -> None:
        """Answer those whose offset the low watermark has reached."""
        for waiting in [due for due in self._waiting if due.offset <= low_watermark]:
            waiting.result.low_watermark = low_watermark
            self._end(waiting)

    def refuse(self, code: ErrorCode) -> None:
        """Answer all with this error: this broker leads no more, or stops."""
        for waiting in list(self._waiting):
            waiting.result.error_code = int(code)
            waiting.result.low_watermark = INVALID_LOW_WATERMARK
            self._end(waiting)

    def _time_out(self, future: asyncio.Future[None]) -> None:
        waiting = next(waiting for waiting in self._waiting if waiting.future is future)
        waiting.result.error_code = int(ErrorCode.REQUEST_TIMED_OUT)
        self._end(waiting)

    def _end(self, waiting: _WaitingDeletion) -> None:
        self._waiting.remove(waiting)
        waiting.timer.cancel()
        if not waiting.future.done():  # the client may have hung up
            waiting.future.set_result(None)


class ReplicaRules(NamedTuple):
    """The settings and the clock that followers are judged by."""

    broker_id: int
    now_ms: Callable[[], int]
    """The broker's clock, milliseconds."""
    lag_ms_max: Callable[[], int]
    """`replica.lag.time.max.ms`, as it is now."""
    brokers: Callable[[], Mapping[int, BrokerInfo]]
    """The registered brokers by id: only they may join. A change makes another mapping."""

    def is_alive(self, broker_id: int) -> bool:
        """Return whether a broker is registered."""
        return broker_id in self.brokers()


class FollowerId(NamedTuple):
    """A broker that fetches, and the epoch of its registration (-1: it does not tell, KIP-903)."""

    broker_id: int
    broker_epoch: int


class Claim(Protocol):
    """A part of an answer that says "written", until it is known that it is not."""

    error_code: int


class _Waiting:
    """One answer that waits until all replicas in sync have what it claims."""

    __slots__ = ("answer", "end_offset", "future", "timer")

    def __init__(
        self, end_offset: int, answer: Claim, future: asyncio.Future[None], timer: TimerHandle
    ) -> None:
        self.end_offset = end_offset
        self.answer = answer
        self.future = future
        self.timer = timer


class Replicas:
    """Owned by the loop."""

    __slots__ = (
        "_brokers",
        "_epoch_start_offset",
        "_isr_has_others",
        "_joining",
        "_on_forgotten",
        "_replica_count",
        "_rules",
        "_waiting",
        "deletions",
        "followers",
        "isr",
        "own_end_offset",
    )

    def __init__(self, rules: ReplicaRules, on_forgotten: Callable[[], None]) -> None:
        """Call `on_forgotten` when a follower has to tell its offsets again."""
        self._rules = rules  # constant after construction, as is the next
        self._on_forgotten = on_forgotten
        self._brokers = rules.brokers()
        """The registrations that `followers` were compared with."""
        self.followers: dict[int, ReplicaProgress] = {}
        """Broker id → progress, of each replica but this broker. `forget_restarted` comes before a
        decision from it."""
        self.isr: frozenset[int] = frozenset()
        """Replicas in sync, as the metadata say."""
        self.own_end_offset = 0
        """The end of what this broker has itself: written, or synced where that is asked for."""
        self._joining: frozenset[int] = frozenset()
        """Replicas that were asked into the ISR and are not confirmed."""
        self._replica_count = 1
        self._isr_has_others = False
        """True while the ISR has a broker that is no replica: a controller of Kafka 3.9 says so at
        the end of a move, until it has taken that one out."""
        self._epoch_start_offset = 0
        self._waiting: deque[_Waiting] = deque()
        """By end offset: a log grows in order, and so do those who wait."""
        self.deletions = RecordDeletions()
        """Those that the followers have not done yet."""

    # The role.

    def lead(self, role: Leader, log_end_offset: int, *, is_new_epoch: bool) -> None:
        """Take the replicas and the ISR of `role`; in a new epoch followers begin anew."""
        rules = self._rules
        self.isr = frozenset(role.metadata_isr)
        self._joining -= self.isr
        self._replica_count = len(role.replicas)
        others = [broker_id for broker_id in role.replicas if broker_id != rules.broker_id]
        now_ms = rules.now_ms()
        if is_new_epoch:
            self._joining = frozenset()
            self._epoch_start_offset = role.start_offset
            self.own_end_offset = log_end_offset
        self.followers = {
            broker_id: self.followers[broker_id]
            if broker_id in self.followers and not is_new_epoch
            else progress_at_beginning(now_ms, in_isr=broker_id in self.isr)
            for broker_id in others
        }
        self._isr_has_others = not self.isr <= {rules.broker_id, *others}

    def refuse_waiting(self, code: ErrorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER) -> None:
        """Refuse the answers that wait: this broker leads no more, or stops."""
        waiting, self._waiting = self._waiting, deque()
        for answer in waiting:
            self._finish(answer, code)
        self.deletions.refuse(code)

    # Followers.

    def forget_restarted(self) -> None:
        """Forget the offsets of followers that are registered anew since they told them."""
        brokers = self._rules.brokers()
        if brokers is self._brokers:
            return
        self._brokers = brokers
        restarted_ids = [
            broker_id
            for broker_id, progress in self.followers.items()
            if broker_id in brokers and is_of_former_process(progress, brokers[broker_id].epoch)
        ]
        for broker_id in restarted_ids:
            self.followers[broker_id] = progress_at_beginning(
                self._rules.now_ms(), in_isr=broker_id in self.isr
            )
        if restarted_ids:
            self._on_forgotten()

    def note_fetch(
        self, follower: FollowerId, offset: int, log_start_offset: int, leader_end_offset: int
    ) -> bool:
        """Note that a follower fetches from `offset`.

        False: this broker has no replica, or was started again since it sent the request. Source:
        Kafka 4 Replica.updateFetchStateOrThrow.
        """
        self.forget_restarted()
        broker_id, broker_epoch = follower
        progress = self.followers.get(broker_id)
        if progress is None:
            return False
        broker = self._brokers.get(broker_id)
        if broker is not None:
            if broker_epoch == NO_BROKER_EPOCH:
                broker_epoch = broker.epoch
            elif broker_epoch < broker.epoch:
                return False
        self.followers[broker_id] = fetched(
            progress,
            self._rules.now_ms(),
            offset=offset,
            log_start_offset=log_start_offset,
            leader_end_offset=leader_end_offset,
            broker_epoch=broker_epoch,
        )
        return True

    def was_at_end(self, broker_id: int, at_ms: int) -> None:
        """Note that a follower had everything at `at_ms`: until then each fetch of its session
        asked for the end of the log, without naming it.
        """
        progress = self.followers.get(broker_id)
        if progress is not None:
            self.followers[broker_id] = was_at_end(progress, at_ms)

    def committed(self, current: int, min_insync_replicas: int) -> int:
        """Return the high watermark: what all replicas in sync have, never below `current`.

        A follower that is about to join counts, too. While the ISR has a broker that is no replica,
        nothing is known of that one: the high watermark stays. Source: Kafka
        Partition.isReplicaIsrEligible. Differs from Kafka, which commits without that one.
        """
        if self._isr_has_others:
            return current
        self.forget_restarted()
        rules = self._rules
        return high_watermark(
            current,
            self.own_end_offset,
            followers=self.followers,
            isr=self.isr,
            joining=self._joining,
            isr_size_min=self.isr_size_min(min_insync_replicas),
            now_ms=rules.now_ms(),
            lag_ms_max=rules.lag_ms_max(),
            is_alive=rules.is_alive,
        )

    def isr_size_min(self, min_insync_replicas: int) -> int:
        """Return how many replicas must be in sync for acks=all."""
        return isr_size_min_of(min_insync_replicas, self._replica_count)

    def isr_with(self, broker_id: int, high_watermark: int) -> list[int] | None:
        """Return the ISR with this follower, if it may join now; None: no change.

        From now on the high watermark does not pass it.
        """
        if broker_id in self.isr or broker_id in self._joining:
            return None
        if not may_join(self.followers[broker_id], high_watermark, self._epoch_start_offset):
            return None
        self._joining |= {broker_id}
        return sorted(self.isr | self._joining)

    def isr_without_slow(self, log_end_offset: int) -> list[int] | None:
        """Return the ISR without those that fell behind; None: nobody did."""
        self.forget_restarted()
        slow_replicas = out_of_sync(
            self._rules.broker_id,
            followers=self.followers,
            isr=self.isr,
            leader_end_offset=log_end_offset,
            now_ms=self._rules.now_ms(),
            lag_ms_max=self._rules.lag_ms_max(),
        )
        return sorted(self.isr - slow_replicas) if slow_replicas else None

    def give_up_joining(self) -> None:
        """Have followers ask again with their next fetch: the change of the ISR was not
        confirmed.
        """
        self._joining = frozenset()

    def in_sync_at(self, offset: int) -> Iterator[tuple[int, ReplicaProgress]]:
        """Yield broker id and progress of the followers in sync whose log has `offset`, or ends
        there.

        Others may stay behind for ever, and so would a consumer that reads from them. Source: Kafka
        ReplicaManager.findPreferredReadReplica.
        """
        self.forget_restarted()
        for broker_id, progress in self.followers.items():
            is_there = progress.log_start_offset <= offset <= progress.log_end_offset
            if is_there and broker_id in self.isr:
                yield broker_id, progress

    # Deleted records.

    def low_watermark(self, leader_start_offset: int) -> int:
        """Return the lowest log start offset of all live replicas."""
        self.forget_restarted()
        return low_watermark(
            leader_start_offset, followers=self.followers, is_alive=self._rules.is_alive
        )

    def complete_deletions(self, leader_start_offset: int) -> None:
        """Answer the DeleteRecords requests that all live replicas have done."""
        if self.deletions:
            self.deletions.complete(self.low_watermark(leader_start_offset))

    # Answers that wait (acks=all).

    def wait(self, end_offset: int, answer: Claim, timeout_ms: int) -> asyncio.Future[None]:
        """Return what is done when all in sync have everything below `end_offset`.

        After `timeout_ms` it is done, too: the answer is REQUEST_TIMED_OUT then, the records stay.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(timeout_ms / 1000, self._time_out, future)
        self._waiting.append(_Waiting(end_offset, answer, future, timer))
        return future

    def complete(self, high_watermark: int, min_insync_replicas: int) -> None:
        """Tell the answers whose records are committed now.

        Where fewer than `min.insync.replicas` are in sync meanwhile they say so: the records are in
        the log, and may be lost.
        """
        waiting = self._waiting
        is_enough = len(self.isr) >= self.isr_size_min(min_insync_replicas)
        while waiting and waiting[0].end_offset <= high_watermark:
            self._finish(
                waiting.popleft(),
                ErrorCode.NONE if is_enough else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
            )

    def _time_out(self, future: asyncio.Future[None]) -> None:
        waiting = next(waiting for waiting in self._waiting if waiting.future is future)
        self._waiting.remove(waiting)
        self._finish(waiting, ErrorCode.REQUEST_TIMED_OUT)

    @staticmethod
    def _finish(waiting: _Waiting, code: ErrorCode) -> None:
        waiting.timer.cancel()
        if code and not waiting.answer.error_code:
            waiting.answer.error_code = int(code)
        if not waiting.future.done():  # the client may have hung up
            waiting.future.set_result(None)
