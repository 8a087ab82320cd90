"""Fetch sessions: their ends, what an incremental answer leaves out, who gives way."""

from __future__ import annotations

from collections import OrderedDict
from types import SimpleNamespace

import pytest

from minibroker.broker import slices
from minibroker.broker.partitions.fetch_session import (
    CONSUMER,
    EPOCH_MAX,
    EVICTION_MS,
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchContext,
    FetchPartition,
    FetchSessionCache,
    PartitionKey,
    next_epoch,
)
from minibroker.broker.partitions.partition import Partition
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.fetch import EpochEndOffset, PartitionData
from tests.support.in_process import ManualClock

KEYS = [("t", index) for index in range(8)]


@pytest.fixture(autouse=True)
def one_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a loop the end of a session has to fit into one slice, on a busy machine too."""
    monkeypatch.setattr(slices, "SLICE_S", 60.0)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def cache(clock: ManualClock) -> FetchSessionCache:
    return FetchSessionCache(3, clock)


def partition(key: PartitionKey, offset: int = 0, max_bytes: int = 100) -> FetchPartition:
    return FetchPartition(
        topic=str(key[0]),
        topic_id=bytes(16),
        index=key[1],
        fetch_offset=offset,
        max_bytes=max_bytes,
        current_leader_epoch=-1,
        last_fetched_epoch=-1,
    )


def asking(*keys: PartitionKey, offset: int = 0) -> OrderedDict[PartitionKey, FetchPartition]:
    return OrderedDict((key, partition(key, offset)) for key in keys)


def result(
    *,
    error: int = 0,
    high_watermark: int = 10,
    start: int = 0,
    size: int = 0,
    diverges: bool = False,
) -> PartitionData:
    return PartitionData(
        error_code=error,
        high_watermark=high_watermark,
        log_start_offset=start,
        records=bytes(size),
        diverging_epoch=EpochEndOffset() if diverges else None,
    )


def ask(
    cache: FetchSessionCache,
    session_id: int,
    epoch: int,
    *keys: PartitionKey,
    offset: int = 0,
    forget: tuple[PartitionKey, ...] = (),
    ids: bool = False,
    isolation_level: int = 0,
    follower_id: int = CONSUMER,
) -> FetchContext:
    return cache.context(
        session_id,
        epoch,
        asking(*keys, offset=offset),
        forget,
        uses_topic_ids=ids,
        isolation_level=isolation_level,
        follower_id=follower_id,
    )


def answer(context: FetchContext, **results: PartitionData) -> list[PartitionKey]:
    """The partitions that are sent; `p0=…` is the result of ("t", 0), others have nothing new."""
    results_in_order = [(key, place, results.get(f"p{key[1]}", result())) for key, place in context]
    return [
        key
        for (key, *_), is_sent in zip(
            results_in_order, context.select(results_in_order), strict=True
        )
        if is_sent
    ]


def begin(
    cache: FetchSessionCache, *keys: PartitionKey, ids: bool = False, follower_id: int = CONSUMER
) -> int:
    """A session whose client was told everything once."""
    context = ask(cache, 0, INITIAL_EPOCH, *keys, ids=ids, follower_id=follower_id)
    assert answer(context) == list(keys)
    return context.session_id()


# The table.


def test_epoch_minus_1_ends_the_session_named(cache: FetchSessionCache) -> None:
    session_id = begin(cache, KEYS[0])
    context = ask(cache, session_id, FINAL_EPOCH, KEYS[1])
    assert answer(context) == [KEYS[1]]
    assert context.session_id() == NO_SESSION
    assert len(cache) == 0


def test_epoch_0_with_an_id_ends_that_session_and_begins_another(cache: FetchSessionCache) -> None:
    old = begin(cache, KEYS[0])
    new = ask(cache, old, INITIAL_EPOCH, KEYS[1]).session_id()
    assert new not in (old, NO_SESSION)
    assert len(cache) == 1
    assert ask(cache, old, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("begun_with_ids", [True, False])
def test_names_and_ids_do_not_mix_in_a_session(
    cache: FetchSessionCache, begun_with_ids: bool
) -> None:
    session_id = begin(cache, KEYS[0], ids=begun_with_ids)
    context = ask(cache, session_id, 1, ids=not begun_with_ids)
    assert context.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_the_epoch_after_the_last_is_1(cache: FetchSessionCache) -> None:
    assert next_epoch(INITIAL_EPOCH) == 1
    assert next_epoch(EPOCH_MAX - 1) == EPOCH_MAX
    assert next_epoch(EPOCH_MAX) == 1
    session_id = begin(cache, KEYS[0])
    cache._sessions[session_id].epoch = EPOCH_MAX
    assert ask(cache, session_id, EPOCH_MAX).error_code == 0
    assert ask(cache, session_id, 1).error_code == 0


# What a session holds.


def test_a_session_without_partitions_ends(cache: FetchSessionCache) -> None:
    session_id = begin(cache, KEYS[0])
    context = ask(cache, session_id, 1, forget=(KEYS[0],))
    assert context.error_code == 0
    assert list(context) == []
    assert context.session_id() == NO_SESSION
    assert len(cache) == 0


def test_only_what_changed_is_sent(cache: FetchSessionCache) -> None:
    session_id = begin(cache, *KEYS[:4])
    partitions = answer(
        ask(cache, session_id, 1),
        p1=result(high_watermark=11),
        p2=result(start=1),
        p3=result(size=50),
    )
    assert partitions == [KEYS[1], KEYS[2], KEYS[3]]
    assert answer(ask(cache, session_id, 2), p1=result(high_watermark=11), p2=result(start=1)) == []


def test_a_diverging_epoch_is_sent(cache: FetchSessionCache) -> None:
    session_id = begin(cache, KEYS[0], KEYS[1])
    assert answer(ask(cache, session_id, 1), p1=result(diverges=True)) == [KEYS[1]]


def test_a_partition_that_a_follower_names_is_sent_though_nothing_changed(
    cache: FetchSessionCache,
) -> None:
    """A follower drops an answer when its role or its log changed meanwhile."""
    session_id = begin(cache, KEYS[0], KEYS[1], follower_id=2)
    assert answer(ask(cache, session_id, 1, KEYS[0], offset=5)) == [KEYS[0]]
    assert answer(ask(cache, session_id, 2)) == []
    of_consumer = begin(cache, KEYS[0])
    assert answer(ask(cache, of_consumer, 1, KEYS[0], offset=5)) == []


def test_an_error_is_sent_each_time_and_so_is_its_end(cache: FetchSessionCache) -> None:
    session_id = begin(cache, KEYS[0], KEYS[1])
    failed = result(error=6, high_watermark=-1, start=-1)
    assert answer(ask(cache, session_id, 1), p0=failed) == [KEYS[0]]
    assert answer(ask(cache, session_id, 2), p0=failed) == [KEYS[0]]
    assert answer(ask(cache, session_id, 3)) == [KEYS[0]]
    assert answer(ask(cache, session_id, 4)) == []


def test_a_partition_that_gave_records_goes_to_the_end_of_the_queue(
    cache: FetchSessionCache,
) -> None:
    session_id = begin(cache, *KEYS[:3])
    answer(ask(cache, session_id, 1), p0=result(size=10), p1=result(high_watermark=12))
    assert [key for key, _ in ask(cache, session_id, 2)] == [KEYS[1], KEYS[2], KEYS[0]]


def test_a_fetch_that_waited_while_its_client_went_on_is_refused(cache: FetchSessionCache) -> None:
    session_id = begin(cache, KEYS[0])
    waiting = ask(cache, session_id, 1)
    assert waiting.refusal() == 0
    going_on = ask(cache, session_id, 2)
    assert waiting.refusal() == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert going_on.refusal() == 0
    assert ask(cache, 0, FINAL_EPOCH, KEYS[0]).refusal() == 0


def test_a_partition_forgotten_while_a_fetch_waits_is_left_out(cache: FetchSessionCache) -> None:
    session_id = begin(cache, KEYS[0], KEYS[1])
    waiting = ask(cache, session_id, 1)
    results_in_order = [(key, place, result(size=5)) for key, place in waiting]
    ask(cache, session_id, 2, forget=(KEYS[0],))
    assert waiting.select(results_in_order) == [False, True]


# Room.


def test_a_full_cache_gives_no_session(cache: FetchSessionCache) -> None:
    for _ in range(3):
        begin(cache, KEYS[0])
    context = ask(cache, 0, INITIAL_EPOCH, *KEYS)
    assert answer(context) == KEYS
    assert context.session_id() == NO_SESSION
    assert len(cache) == 3


def test_a_cache_of_no_slots_gives_no_session(clock: ManualClock) -> None:
    assert ask(FetchSessionCache(0, clock), 0, INITIAL_EPOCH, KEYS[0]).session_id() == NO_SESSION


def test_a_silent_session_gives_way(cache: FetchSessionCache, clock: ManualClock) -> None:
    silent = begin(cache, *KEYS)
    others = [begin(cache, KEYS[0]), begin(cache, KEYS[0])]
    clock.advance(EVICTION_MS)
    for session_id in others:
        assert ask(cache, session_id, 1).error_code == 0
    assert ask(cache, 0, INITIAL_EPOCH, KEYS[0]).session_id() == NO_SESSION
    clock.advance(1)
    assert ask(cache, 0, INITIAL_EPOCH, KEYS[0]).session_id() != NO_SESSION
    assert ask(cache, silent, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    for session_id in others:
        assert ask(cache, session_id, 2).error_code == 0


def test_an_old_smaller_session_gives_way_to_a_larger_one(
    cache: FetchSessionCache, clock: ManualClock
) -> None:
    small, middle, large = (begin(cache, *KEYS[:count]) for count in (2, 3, 4))
    for epoch in (1, 2):
        clock.advance(EVICTION_MS // 2 + 1)
        for session_id in (small, middle, large):
            assert ask(cache, session_id, epoch).error_code == 0
    assert ask(cache, 0, INITIAL_EPOCH, *KEYS[:2]).session_id() == NO_SESSION
    assert ask(cache, 0, INITIAL_EPOCH, *KEYS[:3]).session_id() != NO_SESSION
    assert ask(cache, small, 3).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert ask(cache, middle, 3).error_code == 0


def test_a_session_that_was_not_used_since_it_is_old_is_not_weighed_by_size(
    cache: FetchSessionCache, clock: ManualClock
) -> None:
    sessions = [begin(cache, KEYS[0]) for _ in range(3)]
    clock.advance(EVICTION_MS - 10)
    for session_id in sessions:
        ask(cache, session_id, 1)
    clock.advance(20)
    assert ask(cache, 0, INITIAL_EPOCH, *KEYS).session_id() == NO_SESSION


# Partitions without news.


def read_to_its_end() -> Partition:
    """Return a partition whose watchers are told by `tell_readers`: it needs no log for that."""
    no_appends = SimpleNamespace()
    return Partition(no_appends, topic="t", index=0, topic_id=bytes(16))  # type: ignore[arg-type]


class Counting:
    """A fetch that waits, and counts how often it is told."""

    def __init__(self) -> None:
        self.count = 0

    def on_progress(self) -> None:
        self.count += 1

    def complete(self) -> None:
        """Not called here."""


def settle(context: FetchContext) -> dict[PartitionKey, Partition]:
    """Answer with nothing, all partitions read to their ends; what they watch now."""
    watched: dict[PartitionKey, Partition] = {}
    for key, partition in context:
        watched[key] = partition.read_to_end_of = read_to_its_end()
    answer(context)
    return watched


def test_a_partition_read_to_the_end_has_no_turn_before_it_changes(
    cache: FetchSessionCache,
) -> None:
    session_id = begin(cache, *KEYS[:4])
    watched = settle(ask(cache, session_id, 1))
    context = ask(cache, session_id, 2)
    assert (list(context), context.has_settled) == ([], True)
    for index in (3, 0, 2):
        watched[KEYS[index]].tell_readers()
    context = ask(cache, session_id, 3)
    assert [key for key, _ in context] == [KEYS[0], KEYS[2], KEYS[3]]
    answer(context, p0=result(size=5))
    context = ask(cache, session_id, 4)
    assert [key for key, _ in context][-1] == KEYS[0]


@pytest.mark.parametrize(
    "outcome",
    [result(error=5), result(size=3), result(diverges=True)],
    ids=["error", "records", "diverges"],
)
def test_a_partition_with_more_records_keeps_its_turn(
    cache: FetchSessionCache, outcome: PartitionData
) -> None:
    session_id = begin(cache, KEYS[0])
    context = ask(cache, session_id, 1)
    for _, partition in context:
        partition.read_to_end_of = read_to_its_end()
    answer(context, p0=outcome)
    context = ask(cache, session_id, 2)
    assert ([key for key, _ in context], context.has_settled) == ([KEYS[0]], False)


def test_a_partition_that_the_request_names_is_read(cache: FetchSessionCache) -> None:
    session_id = begin(cache, *KEYS[:2])
    watched = settle(ask(cache, session_id, 1))
    assert [key for key, _ in ask(cache, session_id, 2, KEYS[1], offset=7)] == [KEYS[1]]
    assert not watched[KEYS[1]].watchers
    assert watched[KEYS[0]].watchers


def test_another_isolation_level_looks_at_everything(cache: FetchSessionCache) -> None:
    session_id = begin(cache, *KEYS[:2])
    settle(ask(cache, session_id, 1))
    assert len(list(ask(cache, session_id, 2, isolation_level=1))) == 2


def test_a_session_that_ends_watches_nothing(cache: FetchSessionCache) -> None:
    session_id = begin(cache, *KEYS[:2])
    watched = settle(ask(cache, session_id, 1))
    ask(cache, session_id, FINAL_EPOCH)
    assert not any(partition.watchers for partition in watched.values())


def test_a_fetch_that_waits_hears_of_news_once(cache: FetchSessionCache) -> None:
    session_id = begin(cache, *KEYS[:2])
    watched = settle(ask(cache, session_id, 1))
    context = ask(cache, session_id, 2)
    assert list(context) == []
    waiter = Counting()
    context.hang(waiter)
    watched[KEYS[1]].tell_readers()
    assert waiter.count == 1
    assert [partition.index for partition in context.more()] == [1]
    assert context.more() == []
    context.leave(waiter)
    watched[KEYS[0]].tell_readers()
    assert waiter.count == 1
