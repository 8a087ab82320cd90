"""A follower takes what its leader has, from wherever it stands."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.config.inter_broker import InterBrokerProtocol
from minibroker.broker.partitions.manager import PartitionManager
from minibroker.broker.storage.checkpoints import Checkpoints
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.fetch import FetchRequest
from tests.support.in_process import batch_of
from tests.support.waiting import eventually
from tests.unit.broker.partitions.conftest import Claim
from tests.unit.broker.replication.records import append, content, until_equal

if TYPE_CHECKING:
    from minibroker.broker.partitions.fetch_session import FetchSession
    from minibroker.kafka.protocol.messages.fetch import FetchResponse
    from tests.unit.broker.replication.conftest import Pair


OLD_FORMAT = {"message.format.version": "0.10.2"}


async def test_a_follower_gets_every_batch_as_it_is(pair: Pair) -> None:
    await pair.create()
    append(pair, b"a", b"b")
    append(pair, b"c")
    await until_equal(pair)
    assert pair.on(1).log_end_offset == 3
    assert pair.on(1).log.epochs.history.entries == [(0, 0)]


async def test_a_follower_goes_on_after_a_stop(pair: Pair) -> None:
    await pair.create()
    append(pair, b"a")
    await until_equal(pair)
    await pair.stop(1)
    append(pair, b"b")
    await pair.start(1)
    append(pair, b"c")
    await until_equal(pair)
    assert pair.on(1).log_end_offset == 3


async def test_a_follower_begins_anew_where_its_leader_begins(pair: Pair) -> None:
    """The leader has deleted what the follower misses."""
    await pair.create()
    append(pair, b"a")
    await until_equal(pair)
    await pair.stop(1)
    for value in (b"b", b"c", b"d"):
        append(pair, value)
    await eventually(lambda: pair.on(0).high_watermark == 4)  # the other one has left the ISR
    leader = pair.by_id[0].partitions
    leader.delete_records(leader.get("t", 0), 3)
    await pair.start(1)
    await until_equal(pair)
    assert pair.on(1).log_start_offset == 3


async def test_a_leader_that_comes_back_follows_and_drops_what_nobody_else_has(pair: Pair) -> None:
    await pair.create()
    append(pair, b"on both")
    await until_equal(pair)
    await pair.by_id[1].broker.replication.close()  # it fetches nothing any more
    append(pair, b"on one")
    await pair.stop(0)
    await eventually(lambda: pair.on(1).is_leader)
    append(pair, b"instead", broker_id=1)
    await pair.start(0)
    await until_equal(pair)
    assert b"instead" in content(pair.on(0))
    assert b"on one" not in content(pair.on(0))
    assert pair.on(0).log.epochs.history.entries == pair.on(1).log.epochs.history.entries


@pytest.mark.parametrize("lost", [[b"on one", b"and this", b"and that"], [b"on one"]])
async def test_a_log_that_parts_where_its_leader_begins_keeps_nothing(
    pair: Pair, lost: list[bytes]
) -> None:
    """The leader has deleted what is below, so nobody compares it. Also where this log ends there:
    a crash of both would bring the older starts back, and other records at one offset.
    """
    await pair.create()
    append(pair, b"on both")
    await until_equal(pair)
    await pair.by_id[1].broker.replication.close()  # it fetches nothing any more
    for value in lost:
        append(pair, value)
    await pair.stop(0)
    await eventually(lambda: pair.on(1).is_leader)
    append(pair, b"instead", broker_id=1)
    append(pair, b"and more", broker_id=1)
    await eventually(lambda: pair.on(1).high_watermark == 3)
    leader = pair.by_id[1].partitions
    leader.delete_records(leader.get("t", 0), 2)
    await pair.start(0)
    await until_equal(pair)
    assert pair.on(0).log_start_offset == 2
    assert pair.on(0).log.segments.first.base_offset == 2


async def test_records_without_epochs_are_cut_to_what_is_committed(pair: Pair) -> None:
    """The leader that comes back cannot ask where its log parts from the other one."""
    await pair.create(**OLD_FORMAT)
    append(pair, b"on both")
    await until_equal(pair)
    await pair.by_id[1].broker.replication.close()  # it fetches nothing any more
    append(pair, b"on one")
    await pair.stop(0)
    await eventually(lambda: pair.on(1).is_leader)
    append(pair, b"instead", broker_id=1)
    append(pair, b"and more", broker_id=1)
    await pair.start(0)
    await until_equal(pair)
    assert b"on one" not in content(pair.on(0))
    assert pair.on(0).log.epochs.history.entries == []


async def test_a_follower_of_an_old_format_that_led_without_a_record_goes_on(pair: Pair) -> None:
    """Its own epoch has no record, and the leader knows no epoch at all."""
    await pair.create(**OLD_FORMAT)
    append(pair, b"a")
    await until_equal(pair)
    cluster = pair.by_id[0].broker.cluster
    for leader in (1, 0):
        await cluster.leadership.move("t", 0, leader)
        await eventually(lambda leader=leader: pair.on(leader).is_leader)  # type: ignore[misc]
    append(pair, b"b")
    await until_equal(pair)
    assert pair.on(1).log_end_offset == 2


async def test_a_partition_that_cannot_be_fetched_rests_and_the_others_go_on(pair: Pair) -> None:
    await pair.create()
    await pair.by_id[0].broker.cluster.create_topic("u", assignment={0: [0, 1]})
    other = pair.by_id[1].partitions
    await eventually(lambda: other.replica("u", 0) is not None)
    append(pair, b"a")
    leading = pair.by_id[0].partitions
    removed_topic = leading._topics["u"]
    leading._topics["u"] = {}  # the leader knows nothing of it for a moment
    append(pair, b"b")
    await until_equal(pair)
    leading._topics["u"] = removed_topic
    leading.get("u", 0).append(memoryview(batch_of(b"c")), 1, pair.clock.now_ms(), Claim())
    leading.commit()
    await eventually(lambda: other.replica("u", 0).log_end_offset == 1)  # type: ignore[union-attr]


@pytest.mark.parametrize("step", ["append_as_follower", "replica"])
async def test_a_bug_costs_one_partition_and_the_others_go_on(
    pair: Pair, step: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await pair.create()
    await pair.by_id[0].broker.cluster.create_topic("u", assignment={0: [0, 1]})
    following = pair.by_id[1].partitions
    await eventually(lambda: following.replica("u", 0) is not None)
    broken = following.replica("u", 0)
    original = getattr(PartitionManager, step)

    def fail(manager: PartitionManager, *args: Any, **kwargs: Any) -> Any:
        if manager is following and args[0] in {broken, "u"}:
            raise AssertionError("a bug")
        return original(manager, *args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(PartitionManager, step, fail)
        leading = pair.by_id[0].partitions
        leading.get("u", 0).append(memoryview(batch_of(b"c")), 1, pair.clock.now_ms(), Claim())
        leading.commit()
        for value in (b"a", b"b", b"c"):
            append(pair, value)
            await until_equal(pair)
        await eventually(lambda: "a bug" in caplog.text)
        assert "cannot fetch from broker" not in caplog.text
    assert broken is not None
    await eventually(lambda: broken.log_end_offset == 1)


async def test_a_follower_appends_when_the_checkpoints_have_followed_its_truncation(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker writes them. The loop waits for no disk."""
    await pair.create()
    append(pair, b"on both")
    await until_equal(pair)
    await pair.by_id[1].broker.replication.close()  # it fetches nothing any more
    append(pair, b"on one")
    await pair.stop(0)
    await eventually(lambda: pair.on(1).is_leader)
    append(pair, b"instead", broker_id=1)
    writers: list[threading.Thread] = []
    write_cut = Checkpoints.write_cut

    def note(*args: Any) -> None:
        writers.append(threading.current_thread())
        write_cut(*args)

    monkeypatch.setattr(Checkpoints, "write_cut", note)
    await pair.start(0)
    await until_equal(pair)
    assert b"instead" in content(pair.on(0))
    assert writers
    assert threading.main_thread() not in writers


async def test_a_deleted_partition_is_asked_for_no_more(pair: Pair) -> None:
    await pair.create()
    append(pair, b"a")
    await until_equal(pair)
    (fetcher,) = pair.by_id[1].broker.replication._fetchers.values()
    await pair.by_id[0].broker.cluster.delete_topic("t")
    await eventually(lambda: pair.replica(1) is None)
    fetcher._wake.set()
    await eventually(lambda: fetcher.is_idle)


async def test_a_leader_that_is_away_is_logged_once(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    await pair.create()
    append(pair, b"a")
    await until_equal(pair)
    (fetcher,) = pair.by_id[1].broker.replication._fetchers.values()
    tries = 0

    async def refuse(*_: object, **__: object) -> None:
        nonlocal tries
        tries += 1
        raise ConnectionError("refused")

    fetcher._peers = SimpleNamespace(call=refuse)  # type: ignore[assignment]
    await eventually(lambda: tries == 3)
    lines = [record.getMessage() for record in caplog.records]
    assert lines.count("cannot fetch from broker 0: refused") == 1


async def test_an_end_that_the_leader_does_not_tell_is_a_malformed_answer(pair: Pair) -> None:
    await pair.create()
    append(pair, b"a")
    await until_equal(pair)
    (fetcher,) = pair.by_id[1].broker.replication._fetchers.values()

    async def empty(_broker_id: int, _request: Any, response: Any, **_: object) -> Any:
        return response()

    fetcher._peers = SimpleNamespace(call=empty)  # type: ignore[assignment]
    with pytest.raises(ProtocolError, match=r"leaves .* out"):
        await fetcher._offset_of(TopicPartition("t", 0), 0, -1)


async def test_a_partition_that_leaves_during_a_failed_request_does_not_rest(pair: Pair) -> None:
    """Otherwise the fetcher would look for the end of that rest without a pause, for ever."""
    await pair.create()
    append(pair, b"a")
    await until_equal(pair)
    (fetcher,) = pair.by_id[1].broker.replication._fetchers.values()
    is_asked, may_fail = asyncio.Event(), asyncio.Event()

    async def fail_later(*_: object, **__: object) -> None:
        is_asked.set()
        await may_fail.wait()
        raise ConnectionError("reset")

    fetcher._peers = SimpleNamespace(call=fail_later)  # type: ignore[assignment]
    await is_asked.wait()
    fetcher.remove(TopicPartition("t", 0))
    may_fail.set()
    await eventually(lambda: fetcher._is_failing)
    assert fetcher._rest_ends_s == {}


async def test_a_follower_of_an_old_protocol_names_topics_and_goes_on(pair: Pair) -> None:
    """Fetch 12, as between brokers of Kafka 2.8: no topic ids, no broker epochs."""
    pair.by_id[1].broker.config.inter_broker_protocol = InterBrokerProtocol(2, 8)
    await pair.create()
    append(pair, b"a")
    await until_equal(pair)
    wire = Wire(pair)
    append(pair, b"b")
    await until_equal(pair)
    assert {request.replica_id for request in wire.requests} == {1}
    assert {(more["oldest"], more["newest"]) for more in wire.versions} == {(12, 12)}
    assert {topic.topic for answer in wire.answers for topic in answer.responses} == {"t"}
    await pair.by_id[0].broker.cluster.delete_topic("t")
    await eventually(lambda: pair.replica(1) is None)
    wire.fetcher._wake.set()
    await eventually(lambda: wire.fetcher.is_idle)


# The session with the leader.


class Wire:
    """The requests that broker 1 sends as a follower of broker 0, noted on their way."""

    def __init__(self, pair: Pair) -> None:
        (self.fetcher,) = pair.by_id[1].broker.replication._fetchers.values()
        self.requests: list[FetchRequest] = []
        self.answers: list[FetchResponse] = []
        self.versions: list[dict[str, Any]] = []
        """The bounds of the version of each request."""
        self._peers = self.fetcher._peers
        self.fetcher._peers = self  # type: ignore[assignment]

    async def call(self, broker_id: int, request: Any, response: Any, **more: Any) -> Any:
        is_fetch = isinstance(request, FetchRequest)
        if is_fetch:
            self.requests.append(request)
            self.versions.append(more)
        answer = await self._peers.call(broker_id, request, response, **more)
        if is_fetch:
            self.answers.append(answer)
        return answer

    def partitions(self, first: int = 0) -> list[tuple[str, int]]:
        """Return (how it is named, partition) of what the requests from `first` on name."""
        return [
            (kind, index)
            for request in self.requests[first:]
            for kind, indexes in (
                (
                    "asked",
                    [part.partition for topic in request.topics for part in topic.partitions],
                ),
                (
                    "forgotten",
                    [i for topic in request.forgotten_topics_data for i in topic.partitions],
                ),
            )
            for index in indexes
        ]

    async def more(self, count: int = 2) -> None:
        """Wait for some rounds."""
        count_in_all = len(self.answers) + count
        await eventually(lambda: len(self.answers) >= count_in_all)


def sessions_of(pair: Pair) -> dict[int, FetchSession]:
    """Return the fetch sessions that broker 0 keeps."""
    return pair.by_id[0].broker.services.fetch_sessions._sessions


async def test_a_request_names_only_what_changed(pair: Pair) -> None:
    await pair.create()
    append(pair, b"a")
    await until_equal(pair)
    wire = Wire(pair)
    await wire.more(3)
    quiet = len(wire.requests)
    assert wire.partitions(2) == []
    append(pair, b"b")
    await until_equal(pair)
    assert wire.partitions(quiet) == [("asked", 0)]
    assert len(sessions_of(pair)) == 1


async def test_a_session_that_the_leader_forgot_is_begun_anew_at_once(pair: Pair) -> None:
    await pair.create()
    append(pair, b"a")
    await until_equal(pair)
    wire = Wire(pair)
    await wire.more()
    (forgotten,) = sessions_of(pair)
    pair.by_id[0].broker.services.fetch_sessions._end(forgotten)
    append(pair, b"b")
    await until_equal(pair)
    codes = [answer.error_code for answer in wire.answers]
    assert codes.count(ErrorCode.FETCH_SESSION_ID_NOT_FOUND) == 1
    lost = codes.index(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    anew = wire.requests[lost + 1]
    assert (anew.session_id, anew.session_epoch) == (0, 0)
    assert wire.fetcher._rest_ends_s == {}


async def test_a_session_in_another_epoch_is_ended_and_begun_anew(pair: Pair) -> None:
    await pair.create()
    append(pair, b"a")
    await until_equal(pair)
    wire = Wire(pair)
    await wire.more()
    ((lost, session),) = sessions_of(pair).items()
    session.epoch += 5
    append(pair, b"b")
    await until_equal(pair)
    codes = [answer.error_code for answer in wire.answers]
    at = codes.index(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    anew = wire.requests[at + 1]
    assert (anew.session_id, anew.session_epoch) == (lost, 0)
    assert lost not in sessions_of(pair)


async def test_a_leader_without_room_for_sessions_is_asked_for_everything(pair: Pair) -> None:
    await pair.create()
    pair.by_id[0].broker.services.fetch_sessions.slots_max = 0
    for session_id in list(sessions_of(pair)):
        pair.by_id[0].broker.services.fetch_sessions._end(session_id)
    wire = Wire(pair)
    append(pair, b"a")
    await until_equal(pair)
    await wire.more(3)
    assert wire.partitions()[-2:] == [("asked", 0), ("asked", 0)]
    assert {request.session_epoch for request in wire.requests[-2:]} == {0}


async def test_many_partitions_are_told_in_several_requests(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minibroker.broker.replication.fetcher.NAMED_MAX", 2)
    await pair.by_id[0].broker.cluster.create_topic("t", assignment={n: [0, 1] for n in range(5)})
    other = pair.by_id[1].partitions
    await eventually(lambda: all(other.replica("t", n) is not None for n in range(5)))
    wire = Wire(pair)
    wire.fetcher._give_up()
    leading = pair.by_id[0].partitions
    for index in range(5):
        leading.get("t", index).append(memoryview(batch_of(b"x")), 1, pair.clock.now_ms(), Claim())
    leading.commit()
    await eventually(lambda: all(other.replica("t", n).log_end_offset == 1 for n in range(5)))  # type: ignore[union-attr]
    assert {len(r.topics[0].partitions) for r in wire.requests if r.topics} <= {1, 2}
    await eventually(
        lambda: set(wire.fetcher._session.positions) == set(wire.fetcher._followed_partitions)
    )


async def test_a_partition_that_rests_or_is_gone_is_taken_back(pair: Pair) -> None:
    await pair.create()
    append(pair, b"a")
    await until_equal(pair)
    wire = Wire(pair)
    await wire.more()
    name = TopicPartition("t", 0)
    wire.fetcher._rest(name)
    wire.fetcher._rest_ends_s[name] += 3600  # longer than the test
    await eventually(lambda: wire.partitions()[-1:] == [("forgotten", 0)])
    wire.fetcher.add(name, pair.on(1))
    await eventually(lambda: wire.partitions()[-1] == ("asked", 0))
    wire.fetcher.remove(name)
    await eventually(lambda: wire.partitions()[-1] == ("forgotten", 0))
    await eventually(lambda: sessions_of(pair) == {})
    await eventually(lambda: wire.fetcher._session.is_full)


async def test_the_leader_is_told_where_the_log_of_the_follower_starts(pair: Pair) -> None:
    await pair.create()
    append(pair, b"a")
    append(pair, b"b")
    await until_equal(pair)
    wire = Wire(pair)
    await wire.more()
    follower = pair.on(1)
    follower.log.advance_log_start(1, follower.high_watermark)

    def start_offset() -> int:
        replicas = pair.on(0).replicas
        assert replicas is not None
        return replicas.followers[1].log_start_offset

    await eventually(lambda: start_offset() == 1)


async def test_a_follower_without_news_counts_as_caught_up_until_its_last_request(
    pair: Pair,
) -> None:
    await pair.create()
    append(pair, b"a")
    await until_equal(pair)
    wire = Wire(pair)
    await wire.more()
    (session,) = sessions_of(pair).values()
    assert session.news == {}
    pair.clock.advance(600_000)
    await eventually(lambda: session.last_used_ms == pair.clock.now_ms())
    append(pair, b"b")
    leader = pair.on(0)
    assert leader.replicas is not None
    assert leader.replicas.followers[1].log_end_offset == 1
    assert leader.replicas.isr_without_slow(leader.log_end_offset) is None


async def test_a_follower_that_left_the_isr_joins_again_without_news(pair: Pair) -> None:
    await pair.create()
    append(pair, b"a")
    await until_equal(pair)
    wire = Wire(pair)
    await wire.more()
    role = pair.on(0).role
    assert await pair.by_id[0].broker.cluster.leadership.change_isr(
        TopicPartition("t", 0), [0], leader_epoch=role.epoch, partition_epoch=role.partition_epoch
    )
    image = pair.by_id[0].broker.cluster.image
    first_epoch = role.partition_epoch
    await eventually(
        lambda: (
            image.topics["t"].partitions[0].partition_epoch > first_epoch + 1
            and sorted(image.topics["t"].partitions[0].isr) == [0, 1]
        )
    )


# Throttled replication (KIP-73): a replica that is behind gets its records at the given rate.


RATE = 1000
VALUE = b"x" * 400
BATCH_BYTES = len(batch_of(VALUE))
BATCHES = 10
ONE_BATCH = {"replica.fetch.max.bytes": str(BATCH_BYTES)}
ROUNDS = 5


async def fall_behind(pair: Pair, side: str) -> None:
    """Let broker 1 miss ten batches of `t`, which is throttled on the side `leader` or `follower`.

    It is started again, and the side has its rate.
    """
    await pair.create(**{f"{side}.replication.throttled.replicas": "*"})
    append(pair, b"first")
    await until_equal(pair)
    await pair.stop(1)
    for _ in range(BATCHES):
        append(pair, VALUE)
    await eventually(lambda: pair.on(0).high_watermark == BATCHES + 1)
    limit(pair, 0, side)


def limit(pair: Pair, broker_id: int, side: str) -> None:
    dynamic = pair.by_id[broker_id].broker.dynamic
    dynamic.set_broker({f"{side}.replication.throttled.rate": str(RATE)})


async def rounds(pair: Pair, count: int = ROUNDS) -> None:
    """Wait until broker 1 has looked `count` times at what it may ask for."""
    (fetcher,) = pair.by_id[1].broker.replication._fetchers.values()
    looks = 0
    look = type(fetcher)._look

    async def counted(self: object) -> object:
        nonlocal looks
        looks += 1
        return await look(self)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(fetcher), "_look", counted)
        await eventually(lambda: looks >= count)


async def catch_up(pair: Pair) -> tuple[int, int]:
    """Move the clock by 500 ms again and again; return the ms and the bytes of the way."""
    began_ms, began_offset = pair.clock.now_ms(), pair.on(1).log_end_offset
    while pair.on(1).log_end_offset < pair.on(0).log_end_offset:
        pair.clock.advance(500)
        await rounds(pair, 2)
    return pair.clock.now_ms() - began_ms, (BATCHES + 1 - began_offset) * BATCH_BYTES


@pytest.mark.parametrize("side", ["leader", "follower"])
async def test_a_replica_that_is_behind_is_filled_at_the_rate(pair: Pair, side: str) -> None:
    await fall_behind(pair, side)
    await pair.start(1, **ONE_BATCH, **{"replica.fetch.response.max.bytes": "1"})
    limit(pair, 1, side)
    quota = pair.by_id[0 if side == "leader" else 1].broker.replication_quotas
    throttle = quota.leader if side == "leader" else quota.follower
    await eventually(lambda: throttle.is_exceeded or pair.on(1).log_end_offset == BATCHES + 1)

    await rounds(pair)
    held_at = pair.on(1).log_end_offset
    await rounds(pair)
    assert pair.on(1).log_end_offset == held_at < BATCHES + 1

    elapsed_ms, size_bytes = await catch_up(pair)
    assert size_bytes <= RATE * elapsed_ms / 1000 + 2 * BATCH_BYTES
    await until_equal(pair)
    await eventually(lambda: sorted(pair.on(0).replicas.isr) == [0, 1])  # type: ignore[union-attr]


@pytest.mark.parametrize("side", ["leader", "follower"])
async def test_a_replica_in_sync_is_not_throttled(pair: Pair, side: str) -> None:
    await pair.create(**{f"{side}.replication.throttled.replicas": "0:0,0:1"})
    append(pair, b"first")
    await until_equal(pair)
    for broker_id in (0, 1):
        limit(pair, broker_id, side)
        quotas = pair.by_id[broker_id].broker.replication_quotas
        quotas.leader.record(1 << 30)
        quotas.follower.record(1 << 30)
    for _ in range(3):
        append(pair, VALUE)
        await until_equal(pair)


async def test_the_throttle_of_another_partition_holds_nobody(pair: Pair) -> None:
    await pair.create(**{"follower.replication.throttled.replicas": "7:1"})
    limit(pair, 1, "follower")
    pair.by_id[1].broker.replication_quotas.follower.record(1 << 30)
    append(pair, VALUE)
    await until_equal(pair)
