"""Histories of the clients of the exactly-once test, and the check for impossible ones.

A history is the lines of every client (`tests/support/java/Fire.java`) and the committed records in
the end. The checks are those of Jepsen's Kafka workload that make sense for unique values that were
written in transactions:

| found        | meaning                                                              |
|--------------|----------------------------------------------------------------------|
| lost         | committed for sure, and not there                                    |
| aborted read | of a transaction that was aborted for sure, or never ended, and there |
| torn         | one value of a transaction is there, another is not                  |
| duplicate    | one value at two offsets                                             |
| reordered    | two values of a writer in the wrong order in a partition             |
| misplaced    | a value in another partition than it was sent to                     |
| inconsistent | a reader found another value at an offset than is there in the end   |
| not moved    | committed to the input, and not in the output                        |
"""

from __future__ import annotations

from typing import NamedTuple

Read = list[list[tuple[int, int]]]
"""Partition → (offset, value) of everything committed, in order."""


class Transaction(NamedTuple):
    """A transaction that a client was about to end; `outcome` is commit, abort or unknown."""

    values: tuple[tuple[int, int], ...]
    """(partition, value)."""
    outcome: str


class History:
    """The lines of one client, in order."""

    def __init__(self) -> None:
        self.transactions: dict[int, Transaction] = {}
        self.polled: list[tuple[int, int, int]] = []
        """(partition, offset, value)."""
        self.errors: list[str] = []

    def add(self, line: str) -> None:
        """Add a line of Fire.java; the last line may be cut where the client was killed."""
        word, *rest = line.split()
        if word == "txn":
            values = tuple(_numbers(word) for word in rest[1:])
            # Without another word it may have been committed.
            self.transactions[int(rest[0])] = Transaction(values, "unknown")  # type: ignore[arg-type]
        elif word in {"commit", "abort", "unknown"}:
            number = int(rest[0])
            self.transactions[number] = self.transactions[number]._replace(outcome=word)
        elif word == "poll":
            self.polled += [_numbers(word) for word in rest]  # type: ignore[misc]
        elif word == "error":
            self.errors.append(line)


def _numbers(word: str) -> tuple[int, ...]:
    return tuple(int(part) for part in word.split(":"))


def check_writers(writers: list[History], read: Read) -> list[str]:
    """Return the faults of the topic that `writers` wrote."""
    wrong = _check_topic("input", read)
    in_partition = [{value for _, value in partition} for partition in read]
    readable = set().union(*in_partition)
    ended_values: set[int] = set()
    for writer in writers:
        for transaction in writer.transactions.values():
            values = {value for _, value in transaction.values}
            ended_values |= values
            read_values = values & readable
            if transaction.outcome == "commit" and read_values != values:
                wrong.append(f"lost: {sorted(values - read_values)}")
            elif transaction.outcome == "abort" and read_values:
                wrong.append(f"aborted read: {sorted(read_values)}")
            elif read_values and read_values != values:
                wrong.append(
                    f"torn: {sorted(read_values)} is there, {sorted(values - read_values)} is not"
                )
            wrong += [
                f"misplaced: {value} is not in partition {partition}"
                for partition, value in transaction.values
                if value in read_values and value not in in_partition[partition]
            ]
    if readable - ended_values:
        wrong.append(
            f"aborted read: {sorted(readable - ended_values)} belong to no ended transaction"
        )
    return wrong


def check_movers(movers: list[History], source: Read, target: Read) -> list[str]:
    """Return the faults of the records that went from the input to the output."""
    wrong = _check_topic("output", target)
    for index, (source_part, target_part) in enumerate(zip(source, target, strict=True)):
        values = [value for _, value in source_part]
        moved = [value for _, value in target_part]
        missing, extra = set(values) - set(moved), set(moved) - set(values)
        if missing:
            wrong.append(f"not moved: {sorted(missing)} of partition {index}")
        if extra:
            wrong.append(f"aborted read: {sorted(extra)} moved to partition {index}")
        if not missing and not extra and values != moved:
            wrong.append(f"reordered: partition {index} of the output is not as the input's")
    at = [dict(partition) for partition in source]
    for mover in movers:
        for partition, offset, value in mover.polled:
            if at[partition].get(offset) != value:
                wrong.append(
                    f"inconsistent: a reader found {value} at offset {offset} of partition "
                    f"{partition}, where {at[partition].get(offset)} is"
                )
    return wrong


def _check_topic(name: str, read: Read) -> list[str]:
    """Return repeated values, and values of a writer (they grow) out of order."""
    wrong = []
    values: set[int] = set()
    for index, partition in enumerate(read):
        last: dict[int, int] = {}
        for offset, value in partition:
            if value in values:
                wrong.append(f"duplicate: {value} again at offset {offset} of {name}-{index}")
            values.add(value)
            writer = value // VALUES_PER_WRITER
            if value < last.get(writer, -1):
                wrong.append(f"reordered: {value} behind {last[writer]} in {name}-{index}")
            last[writer] = value
    return wrong


VALUES_PER_WRITER = 10**9
"""Writer N begins at N times this."""
