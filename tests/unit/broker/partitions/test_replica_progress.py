"""Progress of replicas: the high watermark, and who joins or leaves the ISR."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from minibroker.broker.partitions.replica_progress import (
    ReplicaProgress,
    fetched,
    high_watermark,
    is_caught_up,
    is_of_former_process,
    isr_size_min_of,
    low_watermark,
    may_join,
    out_of_sync,
    progress_at_beginning,
    was_at_end,
)

LAG_MS = 30_000
NOW_MS = 1_000_000


def fetch(
    progress: ReplicaProgress, offset: int, leader_end_offset: int, now_ms: int = NOW_MS
) -> ReplicaProgress:
    return fetched(
        progress, now_ms, offset=offset, log_start_offset=0, leader_end_offset=leader_end_offset
    )


def watermark(
    current: int, end: int, followers: dict[int, ReplicaProgress], isr: set[int], minimum: int = 1
) -> int:
    return high_watermark(
        current,
        end,
        followers=followers,
        isr=isr,
        isr_size_min=minimum,
        now_ms=NOW_MS,
        lag_ms_max=LAG_MS,
    )


# One follower.


def test_a_fetch_from_the_end_means_caught_up_now() -> None:
    progress = fetch(ReplicaProgress(), 10, 10)
    assert progress == ReplicaProgress(10, 0, 10, NOW_MS, NOW_MS)


def test_a_fetch_from_the_end_of_the_last_fetch_means_caught_up_then() -> None:
    first = fetch(ReplicaProgress(), 5, 10, NOW_MS)
    second = fetch(first, 10, 20, NOW_MS + 700)
    assert first.caught_up_ms == 0
    assert second.caught_up_ms == NOW_MS


def test_a_lagging_follower_does_not_catch_up() -> None:
    progress = fetch(ReplicaProgress(), 10, 10)
    for _ in range(3):
        progress = fetch(progress, 8, 30, NOW_MS + 5000)
    assert progress.caught_up_ms == NOW_MS
    assert is_caught_up(progress, 30, NOW_MS + LAG_MS, LAG_MS)
    assert not is_caught_up(progress, 30, NOW_MS + LAG_MS + 1, LAG_MS)


def test_a_follower_with_every_record_is_caught_up_however_long_ago() -> None:
    assert is_caught_up(ReplicaProgress(log_end_offset=7), 7, NOW_MS, LAG_MS)


def test_a_new_leader_knows_no_offsets() -> None:
    assert progress_at_beginning(NOW_MS, in_isr=True) == ReplicaProgress(caught_up_ms=NOW_MS)
    assert progress_at_beginning(NOW_MS, in_isr=False) == ReplicaProgress()


def test_offsets_of_an_older_registration_are_those_of_a_former_process() -> None:
    progress = ReplicaProgress(10, 0, 10, NOW_MS, NOW_MS, broker_epoch=7)
    assert is_of_former_process(progress, 8)
    assert not is_of_former_process(progress, 7)
    assert not is_of_former_process(progress, 6)  # the registration is news that comes late
    assert not is_of_former_process(ReplicaProgress(), 8)


# All of them.


def test_alone_the_high_watermark_is_the_end() -> None:
    assert watermark(3, 9, {}, {0}) == 9


def test_the_slowest_in_the_isr_holds_the_high_watermark() -> None:
    followers = {1: fetch(ReplicaProgress(), 5, 9), 2: fetch(ReplicaProgress(), 7, 9)}
    assert watermark(3, 9, followers, {0, 1, 2}) == 5
    assert watermark(3, 9, followers, {0, 2}) == 7
    assert watermark(6, 9, followers, {0, 1, 2}) == 6


def test_a_follower_about_to_join_holds_the_high_watermark_too() -> None:
    caught_up = ReplicaProgress(5, 0, 5, NOW_MS, NOW_MS)
    assert watermark(3, 9, {1: caught_up}, {0}) == 5
    assert watermark(3, 9, {1: caught_up._replace(caught_up_ms=0)}, {0}) == 9


def test_too_few_in_sync_hold_the_high_watermark() -> None:
    assert watermark(3, 9, {}, {0}, minimum=2) == 3
    assert isr_size_min_of(2, 1) == 1
    assert isr_size_min_of(2, 3) == 2


def test_a_follower_that_is_not_confirmed_is_not_enough_for_min_insync_replicas() -> None:
    """Its end counts all the same, once enough are confirmed."""
    lagging = {1: ReplicaProgress(5, 0, 5, NOW_MS, 0), 2: ReplicaProgress(9, 0, 9, NOW_MS, NOW_MS)}

    def of(isr: set[int]) -> int:
        return high_watermark(
            3,
            9,
            followers=lagging,
            isr=isr,
            joining={1},
            isr_size_min=2,
            now_ms=NOW_MS + 2 * LAG_MS,
            lag_ms_max=LAG_MS,
        )

    assert of({0}) == 3
    assert of({0, 2}) == 5


def test_a_joining_follower_has_the_committed_records_and_the_start_of_the_epoch() -> None:
    progress = ReplicaProgress(log_end_offset=7)
    assert may_join(progress, 7, 7)
    assert not may_join(progress, 8, 0)
    assert not may_join(progress, 0, 8)


def test_a_lagging_or_silent_follower_has_to_leave_the_isr() -> None:
    followers = {
        1: ReplicaProgress(9, caught_up_ms=0),
        2: ReplicaProgress(5, caught_up_ms=NOW_MS - LAG_MS),
        3: ReplicaProgress(5, caught_up_ms=NOW_MS - LAG_MS - 1),
    }
    leaving = out_of_sync(
        0,
        followers=followers,
        isr={0, 1, 2, 3, 4},
        leader_end_offset=9,
        now_ms=NOW_MS,
        lag_ms_max=LAG_MS,
    )
    assert leaving == {3, 4}


class Partition:
    """A leader and its followers, moved by events as Kafka's leader is."""

    def __init__(self) -> None:
        self.now_ms = NOW_MS
        self.end = self.high_watermark = self.epoch_start = 0
        self.isr = {0, 1, 2}
        self.followers = {1: ReplicaProgress(), 2: ReplicaProgress()}
        self.elect()

    def elect(self) -> None:
        self.epoch_start = self.end
        for broker_id in self.followers:
            in_isr = broker_id in self.isr
            self.followers[broker_id] = progress_at_beginning(self.now_ms, in_isr=in_isr)

    def append(self, count: int) -> None:
        self.end += count
        self.advance()

    def fetch(self, broker_id: int, lag: int) -> None:
        progress = self.followers[broker_id]
        offset = max(progress.log_end_offset, self.end - lag, 0)
        self.followers[broker_id] = fetch(progress, offset, self.end, self.now_ms)
        if may_join(self.followers[broker_id], self.high_watermark, self.epoch_start):
            self.isr.add(broker_id)
        self.advance()

    def wait(self, ms: int) -> None:
        self.now_ms += ms
        self.isr -= out_of_sync(
            0,
            followers=self.followers,
            isr=self.isr,
            leader_end_offset=self.end,
            now_ms=self.now_ms,
            lag_ms_max=LAG_MS,
        )
        self.advance()

    def advance(self) -> None:
        first_watermark = self.high_watermark
        self.high_watermark = high_watermark(
            first_watermark,
            self.end,
            followers=self.followers,
            isr=self.isr,
            isr_size_min=1,
            now_ms=self.now_ms,
            lag_ms_max=LAG_MS,
        )
        assert first_watermark <= self.high_watermark <= self.end
        if self.high_watermark > first_watermark:
            ends = [self.followers[replica].log_end_offset for replica in self.isr if replica]
            assert all(self.high_watermark <= end for end in ends)


EVENTS = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 5)),
    st.tuples(st.just("fetch"), st.integers(1, 2), st.integers(0, 6)),
    st.tuples(st.just("wait"), st.integers(1, LAG_MS)),
    st.tuples(st.just("elect")),
)


@settings(max_examples=150)
@given(st.lists(EVENTS, max_size=40))
def test_the_high_watermark_goes_forward_and_never_beyond_the_isr(
    events: list[tuple[str, *tuple[int, ...]]],
) -> None:
    partition = Partition()
    for name, *arguments in events:
        getattr(partition, name)(*arguments)


def test_a_follower_that_asked_for_the_end_again_was_caught_up_then() -> None:
    progress = ReplicaProgress(20, 0, 20, fetch_ms=5, caught_up_ms=5)
    assert was_at_end(progress, 9) == ReplicaProgress(20, 0, 20, fetch_ms=9, caught_up_ms=9)
    assert was_at_end(progress, 3) == progress
    assert was_at_end(ReplicaProgress(), 9) == ReplicaProgress()


def test_the_low_watermark_is_the_lowest_start_of_the_live_replicas() -> None:
    followers = {1: ReplicaProgress(log_start_offset=4), 2: ReplicaProgress(log_start_offset=2)}
    assert low_watermark(3, followers=followers, is_alive=lambda _: True) == 2
    assert low_watermark(3, followers=followers, is_alive=lambda other: other != 2) == 3
    followers[1] = ReplicaProgress()  # it has not fetched from this leader
    assert low_watermark(3, followers=followers, is_alive=lambda _: True) == -1
