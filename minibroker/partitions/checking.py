"""Batches that take too long for the loop are checked beside it: large ones, compressed ones that
unfold to much, those that are built anew.

On the way of a Produce request, before its records get their offsets. The connection holds still
until the worker is done, so its requests keep their order; then the loop numbers and appends
(`storage.validator`). The worker has one batch in hand at a time: so much memory is all that
batches can unfold to.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError
from minibroker.records.produce_rules import LargeBatchError
from minibroker.storage.record_checks import is_quick
from minibroker.storage.validator import check

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from minibroker.partitions.flushing import RunThen
    from minibroker.partitions.partition import Partition
    from minibroker.storage.append_rules import AppendRules
    from minibroker.storage.validator import CheckedRecords

_FORMAT_0: Final = 0


class Checks:
    """The batches of one request that were checked before their append. Owned by the loop."""

    __slots__ = ("_checked", "_large")

    def __init__(self) -> None:
        self._checked: dict[int, tuple[Partition, CheckedRecords]] = {}
        self._large: list[tuple[Partition, memoryview]] = []

    def look(self, partition: Partition, records: memoryview, now_ms: int) -> None:
        """Check a batch for `partition`; not one that the append checks in no time, nor one for
        format 0."""
        rules = partition.log.rules
        if is_quick(records, rules) or rules.magic == _FORMAT_0:
            return
        try:
            checked = check(records, rules, now_ms, partition, is_bounded=True)
        except LargeBatchError:
            self._large.append((partition, records))
        else:
            self._checked[id(records)] = partition, checked

    def of(self, partition: Partition, records: memoryview) -> CheckedRecords | None:
        """The outcome for `records`, None: they were not looked at.

        Raises KafkaError(NOT_LEADER_OR_FOLLOWER) where the partition was another one then.
        """
        found = self._checked.get(id(records))
        if found is None:
            return None
        if found[0] is not partition:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{partition} was made again")
        return found[1]

    def rest(self, checker: Checker, now_ms: int) -> Awaitable[None] | None:
        """Have the large ones checked beside the loop; None: there are none."""
        return self._check_large(checker, now_ms) if self._large else None

    async def _check_large(self, checker: Checker, now_ms: int) -> None:
        for partition, records in self._large:
            checked = await checker.check(records, partition.log.rules, now_ms, str(partition))
            self._checked[id(records)] = partition, checked


class Checker:
    """Belongs to the loop; what it checks, the worker does."""

    __slots__ = ("_run_then",)

    def __init__(self, run_then: RunThen) -> None:
        """`run_then`: a task for a worker, and who is told on the loop how it ended."""
        self._run_then = run_then

    def check(
        self, records: memoryview, rules: AppendRules, now_ms: int, partition: str
    ) -> asyncio.Future[CheckedRecords]:
        """Check `records`, which nobody else touches meanwhile, and only name `partition`."""
        future: asyncio.Future[CheckedRecords] = asyncio.get_running_loop().create_future()
        outcome: list[CheckedRecords | Exception] = []

        def task() -> None:
            from minibroker.storage.compaction.pace import quick_switches  # noqa: PLC0415

            try:
                with quick_switches():
                    outcome.append(check(records, rules, now_ms, partition))
            except Exception as error:  # told to whoever waits, who answers it
                outcome.append(error)

        def done(_failure: object) -> None:
            if future.done():
                return  # the connection is gone
            [checked] = outcome
            if isinstance(checked, Exception):
                future.set_exception(checked)
            else:
                future.set_result(checked)

        self._run_then(task, done)
        return future
