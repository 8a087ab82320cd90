"""Batches of a Produce request before their append, and checks that take too long for the loop: of
large batches, compressed ones that unfold to much, those that are built anew.

On the way of a Produce request, before its records get their offsets. The connection waits until
the worker is done, so its requests keep their order; then the loop numbers and appends
(`storage.validator`). There are three workers: one for what takes some ms, and two for the rest, so
that a batch that takes seconds delays no small one, and one client's batches do not delay all large
ones. Each worker has one batch in hand at a time: that bounds the memory that batches unfold to.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

from minibroker.broker.partitions.cold_reads import ColdError
from minibroker.broker.storage.record_checks import HEADERS_AT_ONCE_MAX, is_quick
from minibroker.broker.storage.validator import check_before_append
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.records.produce_rules import LargeBatchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.broker.partitions.partition import Partition
    from minibroker.broker.storage.record_checks import AppendRules, Checked
    from minibroker.broker.worker import Runner, Workers
    from minibroker.kafka.records.batch import BatchHeader

SHORT_BYTES_MAX: Final = 16 << 10
SHORT_RECORDS_MAX: Final = 10_000
"""A compressed batch of so many bytes and records is checked in some ms, and in a third of a second
at worst (`record_checks.unfolded_headers_max`)."""
QUICK_BYTES_MAX: Final = 2 * HEADERS_AT_ONCE_MAX
_FORMAT_0: Final = 0
_FORMAT_2: Final = 2

Home = TypeVar("Home", bound="Partition | None")
"""The partition of a batch, None where this broker does not lead it."""


class ReceivedBatch(Generic[Home]):
    """The records of one partition in a Produce request, from the request to the append; their
    header is read once. Owned by the loop.
    """

    __slots__ = ("checked", "header", "partition", "records")

    def __init__(self, partition: Home, records: memoryview, header: BatchHeader | None) -> None:
        """Take `records` and their header, as `records.batch.read_produced_header` gives it."""
        self.partition = partition
        """The partition to append to, None: it is not led here."""
        self.records = records
        self.header = header
        self.checked: Checked | None = None
        """The outcome of a check before the append; None: the append checks them."""

    @property
    def cold_producers(self) -> ColdError | None:
        """Return the work to be done before the append where the batch has a producer and needs
        producers of the log that are on the disk only; else None.
        """
        if self.partition is None or self.header is None or self.header.producer_id < 0:
            return None
        try:
            self.partition.require_producers(self.header)
        except ColdError as cold:
            return cold
        except KafkaError:
            return None  # the append meets the same error, and answers it
        return None

    def check(self, now_ms: int) -> bool:
        """Check the batch, unless the append does it in no time or the topic has format 0. Return
        whether that takes too long for the loop; then `Checker.check_large` is to be called.
        """
        partition = self.partition
        if partition is None:
            return False
        rules = partition.log.rules
        if self._needs_no_check(rules) or rules.magic == _FORMAT_0:
            return False
        try:
            self.checked = check_before_append(
                self.records, rules, now_ms, partition, is_bounded=True, header=self.header
            )
        except LargeBatchError:
            return True
        return False

    def _needs_no_check(self, rules: AppendRules) -> bool:
        """Return whether the append may check it: few records, and no room for many headers."""
        return is_quick(self.header, rules) and len(self.records) <= QUICK_BYTES_MAX

    def check_repeatably(self, now_ms: int) -> bool:
        """Check the batch like `check`. Return False where it takes too long for the loop, where
        another check of the same bytes would find something else, or where there is
        `cold_producers`.
        """
        assert self.partition is not None
        if self.cold_producers is not None:
            return False
        rules = self.partition.log.rules
        if self._needs_no_check(rules) or (rules.is_append_time and is_quick(self.header, rules)):
            return True
        if rules.magic != _FORMAT_2 or rules.is_append_time:
            return False
        return not self.check(now_ms)

    def checked_for(self, partition: Partition) -> Checked | None:
        """Return the outcome of the check, None: there was none.

        Raises KafkaError(NOT_LEADER_OR_FOLLOWER) where it was for another partition of that name.
        """
        if self.checked is not None and self.partition is not partition:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{partition} was made again")
        return self.checked


AnyBatch: TypeAlias = "ReceivedBatch[Partition | None]"


def is_short(records: memoryview, header: BatchHeader | None) -> bool:
    """Return whether the check of a batch takes little time, whatever is in it. A message set
    (None) does not say how many messages it holds."""
    return (
        header is not None and len(records) <= SHORT_BYTES_MAX and header.count <= SHORT_RECORDS_MAX
    )


class _Lane:
    """A worker, and how many batches it has in hand or in its queue."""

    __slots__ = ("waiting", "worker")

    def __init__(self, worker: Runner) -> None:
        self.worker = worker
        self.waiting = 0


class Checker:
    """Checks of batches on workers. Belongs to the loop."""

    __slots__ = ("_long", "_short")

    def __init__(self, workers: Workers) -> None:
        """Take the workers whose `checks` and `long_checks` are used."""
        self._short = _Lane(workers.checks)
        self._long = [_Lane(worker) for worker in workers.long_checks]

    async def check_large(self, batches: Sequence[AnyBatch], now_ms: int) -> None:
        """Check batches that would hold the loop, one after the other."""
        for batch in batches:
            partition = batch.partition
            assert partition is not None
            batch.checked = await self.check(
                batch.records, partition.log.rules, now_ms, str(partition), batch.header
            )

    def check(
        self,
        records: memoryview,
        rules: AppendRules,
        now_ms: int,
        partition: str,
        header: BatchHeader | None,
    ) -> asyncio.Future[Checked]:
        """Check `records`, which nobody else uses meanwhile; `partition` is for messages only."""
        lane = self._short
        if not is_short(records, header):
            lane = min(self._long, key=lambda long: long.waiting)
        future: asyncio.Future[Checked] = asyncio.get_running_loop().create_future()
        outcome: list[Checked | Exception] = []

        def task() -> None:
            from minibroker.broker.storage.tasks import (  # noqa: PLC0415
                collector_at_rest,
                quick_switches,
            )

            try:
                with quick_switches(), collector_at_rest():
                    outcome.append(
                        check_before_append(records, rules, now_ms, partition, header=header)
                    )
            except Exception as error:  # told to whoever waits, who answers it
                outcome.append(error)

        def done(_failure: object) -> None:
            lane.waiting -= 1
            if future.done():
                return  # the connection is gone
            [checked] = outcome
            if isinstance(checked, Exception):
                future.set_exception(checked)
            else:
                future.set_result(checked)

        lane.waiting += 1
        lane.worker.run_then(task, done)
        return future
