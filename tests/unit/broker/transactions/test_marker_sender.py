"""Markers on their way: here, elsewhere, tried again, overtaken."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker import slices
from minibroker.broker.partitions.markers import EndOfTransaction
from minibroker.broker.timers import Timers
from minibroker.broker.transactions.marker_sender import MARKERS_AT_ONCE, RETRY_MS, MarkerSender
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.ids import TopicPartition
from tests.support.in_process import ManualClock
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

OWN, ELSEWHERE = 0, 1
MARKER = EndOfTransaction(5, 0, 0, is_commit=True)
A, B = TopicPartition("a", 0), TopicPartition("b", 0)


class Fixture:
    """A sender among scripted partitions: `codes` are what each write answers next."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.leaders = {"a": OWN, "b": OWN}
        self.codes: dict[TopicPartition, list[ErrorCode]] = {}
        self.markers: list[tuple[int, list[TopicPartition]]] = []
        self.done: list[str] = []
        self.answers: asyncio.Event = asyncio.Event()
        self.answers.set()
        cluster: Any = SimpleNamespace(broker_id=OWN, image=self)
        self.sender = MarkerSender(
            writer=self,  # type: ignore[arg-type]
            cluster=cluster,
            timers=Timers(self.clock),
            send=self.send,
        )

    def partition(self, topic: str, index: int) -> Any:
        """Return the only partition of a topic, as the image has it."""
        if index or topic not in self.leaders:
            return None
        return SimpleNamespace(leader=self.leaders[topic])

    def _next(self, name: TopicPartition) -> ErrorCode:
        script = self.codes.get(name)
        return script.pop(0) if script else ErrorCode.NONE

    def write(
        self,
        marker: EndOfTransaction,
        partitions: Iterable[TopicPartition],
        then: Callable[[dict[TopicPartition, ErrorCode]], None],
    ) -> None:
        assert marker == MARKER
        self.markers.append((OWN, list(partitions)))
        then({name: self._next(name) for name in partitions})

    async def send(
        self, broker_id: int, marker: EndOfTransaction, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        assert marker == MARKER
        await self.answers.wait()
        self.markers.append((broker_id, partitions))
        return {name: self._next(name) for name in partitions}

    def add(self, *partitions: TopicPartition, name: str = "x") -> None:
        self.sender.add(name, MARKER, partitions, lambda: self.done.append(name))


@pytest.fixture
async def world() -> Fixture:
    return Fixture()


async def turns(count: int = 5) -> None:
    """Let the loop go round."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_many_markers_are_written_in_short_steps(
    world: Fixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    count = 2 * MARKERS_AT_ONCE + 1
    world.leaders = {f"{index:04}": OWN for index in range(count)}
    names = [TopicPartition(topic, 0) for topic in world.leaders]
    world.codes[names[-1]] = [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    world.add(*names)
    await eventually(lambda: len(world.markers) == 3)
    assert [len(part) for _, part in world.markers] == [MARKERS_AT_ONCE, MARKERS_AT_ONCE, 1]
    assert world.done == []
    world.clock.advance(RETRY_MS)
    assert world.markers[3:] == [(OWN, [names[-1]])]
    assert world.done == ["x"]


async def test_no_more_markers_are_written_for_what_another_coordinator_has(
    world: Fixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    world.leaders = {f"{index:04}": OWN for index in range(2 * MARKERS_AT_ONCE)}
    world.add(*(TopicPartition(topic, 0) for topic in world.leaders))
    await eventually(lambda: bool(world.markers))
    world.sender.forget("x")
    await turns()
    assert len(world.markers) == 1
    assert world.done == []


async def test_markers_are_written_behind_what_runs_now(world: Fixture) -> None:
    world.add(B, A)
    assert world.markers == []
    await turns()
    assert world.markers == [(OWN, [A, B])]
    assert world.done == ["x"]
    assert len(world.sender) == 0


async def test_a_transaction_without_partitions_is_done_at_once(world: Fixture) -> None:
    world.add()
    await turns()
    assert (world.markers, world.done) == ([], ["x"])


@pytest.mark.parametrize(
    "code", [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.KAFKA_STORAGE_ERROR]
)
async def test_only_failed_partitions_are_tried_again(world: Fixture, code: ErrorCode) -> None:
    world.codes[B] = [code, code]
    world.add(A, B)
    await turns()
    assert world.done == []
    world.clock.advance(RETRY_MS)
    assert world.done == []
    world.clock.advance(RETRY_MS)
    assert world.done == ["x"]
    assert [names for _, names in world.markers] == [[A, B], [B], [B]]


async def test_partitions_of_other_brokers_are_sent_there(world: Fixture) -> None:
    world.leaders["b"] = ELSEWHERE
    world.codes[B] = [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    world.add(A, B)
    await turns()
    assert world.markers == [(OWN, [A]), (ELSEWHERE, [B])]
    world.leaders["b"] = OWN
    world.clock.advance(RETRY_MS)
    assert world.markers[2:] == [(OWN, [B])]
    assert world.done == ["x"]


async def test_a_partition_that_is_gone_needs_no_marker(world: Fixture) -> None:
    del world.leaders["a"]
    world.add(A, B, TopicPartition("b", 7))
    await turns()
    assert (world.markers, world.done) == ([(OWN, [B])], ["x"])


async def test_a_partition_without_a_leader_is_waited_for(world: Fixture) -> None:
    world.leaders["a"] = -1
    world.add(A)
    await turns()
    assert world.done == []
    world.leaders["a"] = OWN
    world.clock.advance(RETRY_MS)
    assert world.done == ["x"]


@pytest.mark.parametrize(
    "code", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED]
)
async def test_a_newer_epoch_takes_the_transaction_away(world: Fixture, code: ErrorCode) -> None:
    world.codes[A] = [code]
    world.add(A, B)
    await turns()
    world.clock.advance(10 * RETRY_MS)
    assert (len(world.markers), world.done, len(world.sender)) == (1, [], 0)


async def test_old_formats_have_no_markers(world: Fixture) -> None:
    world.codes[A] = [ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT]
    world.add(A)
    await turns()
    assert world.done == ["x"]


async def test_a_forgotten_transaction_is_not_ended_by_a_late_answer(world: Fixture) -> None:
    world.leaders["a"] = ELSEWHERE
    world.answers.clear()
    world.add(A)
    await turns()
    world.sender.forget("x")
    world.answers.set()
    await turns()
    assert world.done == []


async def test_close_waits_for_nobody(world: Fixture) -> None:
    world.leaders["a"] = ELSEWHERE
    world.answers.clear()
    world.add(A)
    await turns()
    await world.sender.close()
    assert (world.done, len(world.sender)) == ([], 0)


async def test_a_late_answer_does_not_end_the_same_decision_of_a_later_term(world: Fixture) -> None:
    """Another coordinator had the transaction in between, and its marker fences the first request
    of this one. This broker coordinates the transaction again by then.
    """
    world.leaders["a"] = ELSEWHERE
    world.codes[A] = [ErrorCode.TRANSACTION_COORDINATOR_FENCED, ErrorCode.NONE]
    world.answers.clear()
    world.add(A)
    await turns()
    world.sender.forget("x")
    world.add(A)
    await turns()
    world.answers.set()
    await eventually(lambda: len(world.markers) == 2)
    await turns()
    assert world.done == ["x"]
