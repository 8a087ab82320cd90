"""The program beside a Kafka 4.4 whose brokers learn of each change after its controller answers.

`make late-kafka` runs the other tests beside such Kafkas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.memory import directory_in_memory
from tests.support.peers import KafkaPeer
from tests.unit.verbs.conftest import Program

if TYPE_CHECKING:
    from collections.abc import Iterator

LATE_MS = 250
VALUES = b"".join(b"%d\n" % number for number in range(100))


@pytest.fixture
def late_program() -> Iterator[Program]:
    """Yield the program with the address of such a Kafka."""
    with directory_in_memory() as directory:
        peer = KafkaPeer("4.4.0", directory / "kafka")
        peer.late_ms = LATE_MS
        peer.start()
        try:
            yield Program(peer.address)
        finally:
            peer.kill()


@pytest.mark.java
def test_each_change_of_a_topic_is_there_for_the_next_command(late_program: Program) -> None:
    for _ in range(2):
        assert late_program.run("topics", "--create", "late:2").lines == ["late is made"]
        assert late_program.run("topics", "late").code == 0
        ran = late_program.feed(VALUES, "produce", "late", "--no-create")
        assert (ran.code, ran.errors) == (0, "")
        assert sorted(late_program.run("consume", "late").lines, key=int) == VALUES.decode().split()
        ran = late_program.run("topics", "late", "--partitions", "3")
        assert ran.lines == ["late has 3 partitions"]
        assert late_program.run("consume", "late", "--partition", "2").code == 0
        assert late_program.run("topics", "late", "--delete").lines == ["late is deleted"]
        assert late_program.run("consume", "late").code == 1
