"""Producer state against a model that remembers everything, with sends, repeats and failures in any
order.

The model keeps all batches of a producer's current epoch and judges a batch by the text of the
rules. Writes are staged: some fail, and then the state must be that of the last success.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from minibroker.broker.storage.producer_state import ProducerState
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.records.batch import SEQUENCE_MAX, BatchHeader
from minibroker.kafka.records.control import TransactionMarker

PRODUCERS = st.integers(0, 2)
BATCHES_MAX = 5
LONG_MAX = 2**63 - 1


class SentBatch(NamedTuple):
    first_sequence: int
    count: int
    first_offset: int


class Producer(NamedTuple):
    """The model's knowledge: epoch, batches in order, start of the transaction (-1: none)."""

    epoch: int
    batches: tuple[SentBatch, ...]
    open_at: int


class Model(NamedTuple):
    producers: dict[int, Producer]
    ended: tuple[tuple[int, int], ...]  # (first offset, marker's offset), not yet stable
    end_offset: int


def next_sequence(batch: SentBatch) -> int:
    return (batch.first_sequence + batch.count) % (SEQUENCE_MAX + 1)


class ProducerStateMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.state = ProducerState("topic-0")
        self.model = Model({}, (), 0)
        self.written = self.model
        self.high_watermark = 0

    def header(
        self, producer: int, epoch: int, sequence: int, count: int, transactional: bool
    ) -> BatchHeader:
        return BatchHeader(
            self.model.end_offset,
            100,
            0,
            2,
            0,
            0x10 if transactional else 0,
            count - 1,
            5,
            5,
            producer,
            epoch,
            sequence,
            count,
        )

    def send(
        self, producer: int, epoch: int, sequence: int, count: int, transactional: bool
    ) -> None:
        """Give one batch to both; their verdicts must be equal."""
        expected = self.expect(producer, epoch, sequence, count, transactional)
        try:
            repeated = self.state.append(
                self.header(producer, epoch, sequence, count, transactional)
            )
            outcome = "new" if repeated is None else repeated.first_offset
        except KafkaError as error:
            outcome = error.code.name
        assert outcome == expected
        if outcome == "new":
            self.note(
                producer, epoch, SentBatch(sequence, count, self.model.end_offset), transactional
            )

    def expect(
        self, producer: int, epoch: int, sequence: int, count: int, transactional: bool
    ) -> str | int:
        producer_state = self.model.producers.get(producer)
        if producer_state is None:
            return "new"
        if epoch == producer_state.epoch:
            for batch in producer_state.batches[-BATCHES_MAX:]:
                if (batch.first_sequence, batch.count) == (sequence, count):
                    return batch.first_offset
        if epoch < producer_state.epoch:
            return "INVALID_PRODUCER_EPOCH"
        is_fresh = epoch > producer_state.epoch or not producer_state.batches
        if sequence != (0 if is_fresh else next_sequence(producer_state.batches[-1])):
            return "OUT_OF_ORDER_SEQUENCE_NUMBER"
        return "INVALID_TXN_STATE" if producer_state.open_at >= 0 and not transactional else "new"

    def note(self, producer: int, epoch: int, batch: SentBatch, transactional: bool) -> None:
        producer_state = self.model.producers.get(producer, Producer(epoch, (), -1))
        earlier = producer_state.batches if producer_state.epoch == epoch else ()
        open_at = (
            batch.first_offset
            if transactional and producer_state.open_at < 0
            else producer_state.open_at
        )
        self.model = Model(
            {**self.model.producers, producer: Producer(epoch, (*earlier, batch), open_at)},
            self.model.ended,
            self.model.end_offset + batch.count,
        )

    @rule(producer=PRODUCERS, count=st.integers(1, 3), transactional=st.booleans())
    def send_the_next(self, producer: int, count: int, transactional: bool) -> None:
        producer_state = self.model.producers.get(producer, Producer(0, (), -1))
        sequence = next_sequence(producer_state.batches[-1]) if producer_state.batches else 0
        self.send(
            producer,
            producer_state.epoch,
            sequence,
            count,
            transactional or producer_state.open_at >= 0,
        )

    @rule(producer=PRODUCERS, back=st.integers(1, 8))
    def repeat_an_earlier_one(self, producer: int, back: int) -> None:
        producer_state = self.model.producers.get(producer)
        if producer_state is not None and len(producer_state.batches) >= back:
            batch = producer_state.batches[-back]
            self.send(
                producer,
                producer_state.epoch,
                batch.first_sequence,
                batch.count,
                producer_state.open_at >= 0,
            )

    @rule(
        producer=PRODUCERS,
        epoch=st.integers(0, 3),
        sequence=st.integers(0, 6) | st.integers(SEQUENCE_MAX - 3, SEQUENCE_MAX),
        count=st.integers(1, 3),
        transactional=st.booleans(),
    )
    def send_anything(
        self, producer: int, epoch: int, sequence: int, count: int, transactional: bool
    ) -> None:
        self.send(producer, epoch, sequence, count, transactional)

    @rule(producer=PRODUCERS, is_commit=st.booleans(), step=st.integers(-1, 1))
    def end_a_transaction(self, producer: int, is_commit: bool, step: int) -> None:
        producer_state = self.model.producers.get(producer, Producer(-1, (), -1))
        epoch = max(producer_state.epoch + step, 0)
        marker = TransactionMarker(is_commit, 0)
        header = self.header(producer, epoch, -1, 1, True)
        if epoch < producer_state.epoch:
            with pytest.raises(KafkaError, match="INVALID_PRODUCER_EPOCH"):
                self.state.append_marker(header, marker)
            return
        completed = self.state.append_marker(header, marker)
        offset = self.model.end_offset
        batches = producer_state.batches if epoch == producer_state.epoch else ()
        ended = self.model.ended
        if producer_state.open_at < 0:
            assert completed is None
        else:
            assert completed is not None
            still_open = [
                other.open_at
                for key, other in self.model.producers.items()
                if other.open_at >= 0 and key != producer
            ]
            stable = min(still_open, default=offset + 1)
            assert completed == (producer, producer_state.open_at, offset, not is_commit, stable)
            ended = (*ended, (producer_state.open_at, offset))
        producers = {**self.model.producers, producer: Producer(epoch, batches, -1)}
        self.model = Model(producers, ended, offset + 1)

    @rule()
    def write_succeeds(self) -> None:
        self.state.commit()
        self.written = self.model

    @rule()
    def write_fails(self) -> None:
        self.state.rollback()
        self.model = self.written

    @precondition(lambda self: self.written.end_offset > self.high_watermark)
    @rule(part=st.floats(0, 1))
    def replicas_catch_up(self, part: float) -> None:
        gap = self.written.end_offset - self.high_watermark
        self.high_watermark += round(gap * part)
        self.state.on_high_watermark(self.high_watermark)
        self.model = self.without_stable(self.model)
        self.written = self.without_stable(self.written)

    def without_stable(self, model: Model) -> Model:
        ended = tuple(pair for pair in model.ended if pair[1] >= self.high_watermark)
        return model._replace(ended=ended)

    @precondition(lambda self: self.model == self.written)
    @rule()
    def restart(self) -> None:
        """Restart cleanly: only the last batch of each producer is remembered."""
        self.high_watermark = self.model.end_offset
        snapshot = self.state.to_snapshot()
        self.state = ProducerState("topic-0")
        self.state.load_snapshot(snapshot, 0, 0, LONG_MAX)
        assert self.state.to_snapshot() == snapshot
        producers = {
            key: state._replace(batches=state.batches[-1:])
            for key, state in self.model.producers.items()
        }
        self.model = self.written = Model(producers, (), self.model.end_offset)

    @invariant()
    def the_first_unstable_offset_is_the_models(self) -> None:
        unstable = [state.open_at for state in self.model.producers.values() if state.open_at >= 0]
        unstable += [first for first, _ in self.model.ended]
        assert self.state.first_unstable_offset == min(unstable, default=None)


ProducerStateMachine.TestCase.settings = settings(
    max_examples=200, stateful_step_count=40, deadline=None
)
TestP3P4ProducerState = ProducerStateMachine.TestCase
