"""Two sessions of one transactional id do anything in any order; readers see whole transactions.

Hypothesis chooses the steps: begin, write, commit, abort, wait too long, a restart of the broker. A
model notes the acknowledged steps. In the end every record of a committed transaction is read, and
none of any other; once a session was answered, no earlier one writes.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.records.batch import iterate_headers
from minibroker.kafka.records.record import decode_records
from tests.support.in_process import InProcessBroker
from tests.support.transactions import SETTINGS, TIMEOUT_MS, World, transactional_world

if TYPE_CHECKING:
    from collections.abc import Sequence

NONE = ErrorCode.NONE
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("begin"), st.integers(0, 1)),
        st.tuples(st.just("write"), st.integers(0, 1), st.integers(0, 1)),
        st.tuples(st.just("write"), st.integers(0, 1), st.integers(0, 1)),
        st.tuples(st.just("commit"), st.integers(0, 1)),
        st.tuples(st.just("abort"), st.integers(0, 1)),
        st.tuples(st.just("wait too long")),
        st.tuples(st.just("restart")),
    ),
    min_size=4,
    max_size=25,
)


class Session:
    """One client's view."""

    def __init__(self) -> None:
        self.producer: tuple[int, int] | None = None
        self.sequences = [0, 0]
        self.open: list[bytes] = []
        self.is_current = False

    def begin(self, producer: tuple[int, int]) -> None:
        self.producer = producer
        self.sequences = [0, 0]
        self.open = []
        self.is_current = True


class Model:
    """Plays the steps against a broker."""

    def __init__(self, world: World, directory: Path, *, is_second: bool) -> None:
        self.world = world
        self.directory = directory
        self.is_second = is_second
        self.sessions = [Session(), Session()]
        self.committed: set[bytes] = set()
        self.dropped: set[bytes] = set()
        self.count = 0

    async def play(self, step: Sequence[object]) -> None:
        match step:
            case ["begin", int(number)]:
                await self.begin(number)
            case ["write", int(number), int(index)]:
                await self.write(self.sessions[number], index)
            case ["commit" | "abort" as how, int(number)]:
                await self.end(self.sessions[number], how == "commit")
            case ["wait too long"]:
                self.world.clock.advance(TIMEOUT_MS + 10_001)
                await self.world.fetch()
                for session in self.sessions:
                    if session.open:
                        self.drop(session)
            case ["restart"]:
                await self.restart()

    async def begin(self, number: int) -> None:
        producer = await self.world.begin()
        for session in self.sessions:
            self.drop(session)
            session.is_current = False
        self.sessions[number].begin(producer)

    async def write(self, session: Session, index: int) -> None:
        if session.producer is None:
            return
        self.count += 1
        value = f"{self.count}".encode()
        if not self.is_second and NONE not in await self.world.add(session.producer, index):
            assert not session.is_current or not session.open
            return
        code = await self.world.produce(
            session.producer,
            value,
            sequence=session.sequences[index],
            index=index,
            version=12 if self.is_second else 9,
        )
        assert session.is_current or code != NONE, "an old session wrote"
        if code == NONE:
            session.sequences[index] += 1
            session.open.append(value)

    async def end(self, session: Session, is_commit: bool) -> None:
        if session.producer is None:
            return
        version = 5 if self.is_second else 4
        answer = await self.world.end(session.producer, commit=is_commit, version=version)
        if answer.error_code != NONE:
            return
        if self.is_second:
            session.producer = answer.producer_id, answer.producer_epoch
            session.sequences = [0, 0]
        (self.committed if is_commit else self.dropped).update(session.open)
        session.open = []

    def drop(self, session: Session) -> None:
        """Note that the session's open transaction will be aborted."""
        self.dropped.update(session.open)
        session.open = []

    async def restart(self) -> None:
        await self.world.client.close()
        await self.world.running.stop()
        again = InProcessBroker(self.directory, SETTINGS, clock=self.world.clock)
        await again.__aenter__()
        self.world.running, self.world.client = again, await again.connect()
        while True:  # until the journal is read
            answer = await self.world.add((-1, -1), 0)
            if answer != [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]:
                return

    async def check(self) -> None:
        await self.begin(0)  # aborts what is open
        for number in (0, 1):
            records = await self.world.fetch(index=number)
            assert records.last_stable_offset == records.high_watermark
        values = set()
        for number in (0, 1):
            values.update(await self.read(number))
        assert values == self.committed

    async def read(self, index: int) -> list[bytes]:
        """Return the values that a reader of committed records gets."""
        fetched = await self.world.fetch(index=index)
        aborted = sorted(
            (transaction.first_offset, transaction.producer_id)
            for transaction in fetched.aborted_transactions or ()
        )
        data = memoryview(fetched.records)
        values: list[bytes] = []
        skipped: set[int] = set()
        for position, header in iterate_headers(data):
            while aborted and aborted[0][0] <= header.base_offset:
                skipped.add(aborted.pop(0)[1])
            if header.is_control:
                skipped.discard(header.producer_id)
            elif header.producer_id not in skipped:
                records = decode_records(data, position, header=header)
                values += [record.value or b"" for record in records]
        assert len(set(values)) == len(values), "a record twice"
        return values


async def run(steps: list[tuple[object, ...]], *, is_second: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        async with transactional_world(directory) as world:
            model = Model(world, directory, is_second=is_second)
            try:
                for step in steps:
                    await model.play(step)
                await model.check()
            finally:
                await model.world.client.close()
                await model.world.running.stop()


@pytest.mark.parametrize("is_second", [False, True], ids=["first protocol", "second protocol"])
@settings(max_examples=20)
@given(steps=STEPS)
def test_readers_see_whole_transactions_of_the_current_session(
    steps: list[tuple[object, ...]], is_second: bool
) -> None:
    asyncio.run(run(steps, is_second=is_second))
