"""Quotas beside Apache Kafka: the same limits and requests, the same delays.

Delays are compared, not waited for: an answer says at once how long its client has to wait. A delay
gets shorter while a broker works, and brokers differ in speed. So a delay is compared together with
the time that had passed.
"""

from __future__ import annotations

import itertools
import math
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.support.broker import Minibroker
from tests.support.in_process import batch_of
from tests.support.peers import KafkaPeer
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Broker = KafkaPeer | Minibroker

pytestmark = [pytest.mark.java, pytest.mark.slow]

READY_SECONDS = 180.0
TOLERANCE = 0.15
TOLERANCE_MS = 20
WINDOW_MS = 1000
QUOTA_EXCEEDED = 89
EARLY_MS = 10
"""A broker's clock counts whole milliseconds and may end a wait this much early."""
TRIES = 20
USER = "ANONYMOUS"
TOPIC = "quotas"
NOW_MS = int(time.time() * 1000)  # older records go by the default retention
BURST = batch_of(b"x" * 100_000, timestamp=NOW_MS)
SMALL = batch_of(b"x" * 300, timestamp=NOW_MS)
CANARY_DELAY_MS = 300_000
SECOND_MS = 1_050
"""A window, and a little for the machine."""
KAFKA_LOOKS_MS = 500
"""Longest sleep of Kafka's acceptor, which closes due connections when it wakes."""
_numbers = itertools.count()


def new_id(word: str) -> str:
    """Return a client id that no broker has seen."""
    return f"{word}-{next(_numbers)}"


def produce(client: WireClient, records: bytes | bytearray, acks: int = 1) -> dict[str, Any]:
    """Return the fields of the answer to one Produce request at version 7."""
    data = [{"name": TOPIC, "partition_data": [{"index": 0, "records": bytes(records)}]}]
    fields = {"acks": acks, "timeout_ms": 10_000, "topic_data": data}
    if not acks:
        client.send("produce", 7, **fields)
        return {}
    answer = client.call("produce", 7, **fields)
    assert answer["responses"][0]["partition_responses"][0]["error_code"] == 0, answer
    return answer


def produce_delay_ms(broker: Broker, client_id: str, records: bytes | bytearray) -> int:
    """Return `throttle_time_ms` of one request on a connection of its own."""
    with WireClient(broker.host, broker.port, client_id=client_id) as client:
        return int(produce(client, records)["throttle_time_ms"])


class Canary:
    """A client with a limit of its own in the strongest scope, so that no other limit applies to
    it.

    Brokers apply changes in order, so the canary's limit is changed last. By turns it delays the
    canary's next request for minutes or not at all: the delay shows when a broker has applied all
    changes. Before its first limit the canary may count for weaker scopes.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._client_id = new_id("canary")
        self._is_delayed = False
        self.entity: dict[str, str | None] = {"user": USER, "client-id": self._client_id}

    def next_limit(self) -> float:
        """Return its next limit."""
        self._is_delayed = not self._is_delayed
        return 1.0 if self._is_delayed else 1e12

    def wait(self) -> None:
        """Wait until the broker applies this limit."""
        deadline = time.monotonic() + READY_SECONDS
        while self._is_delayed != (
            produce_delay_ms(self._broker, self._client_id, SMALL) >= CANARY_DELAY_MS
        ):
            assert time.monotonic() < deadline, "the quotas are not applied"


_canaries: dict[Any, Canary] = {}
"""Broker → its canary."""


def alter(broker: Broker, *quotas: tuple[dict[str, str | None], str, float | None]) -> None:
    """Set (None: remove) quotas, and wait until the broker applies them."""
    canary = _canaries.get(broker)
    if canary is None:
        canary = _canaries[broker] = Canary(broker)
        alter(broker)  # it has a limit before anybody is measured
    set_quotas(broker, *quotas, (canary.entity, "producer_byte_rate", canary.next_limit()))
    canary.wait()


def set_quotas(broker: Broker, *quotas: tuple[dict[str, str | None], str, float | None]) -> None:
    """Make the broker store quotas, one after the other."""
    with WireClient(broker.host, broker.port, client_id="admin") as admin:
        for entity, key, value in quotas:
            entry = {
                "entity": [
                    {"entity_type": kind, "entity_name": name} for kind, name in entity.items()
                ],
                "ops": [{"key": key, "value": value or 0.0, "remove": value is None}],
            }
            answer = admin.call("alter_client_quotas", 1, entries=[entry], validate_only=False)
            assert answer["entries"][0]["error_code"] == 0, answer


@pytest.fixture(scope="module")
def brokers(
    kafka_39: KafkaPeer, kafka_44: KafkaPeer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Broker]]:
    """Yield both Kafkas and a minibroker of this module's own, each with the topic."""
    directory = tmp_path_factory.mktemp("quotas")
    ours = Minibroker(directory / "data", directory / "broker.log").start()
    peers: dict[str, Broker] = {"3.9.1": kafka_39, "4.4.0": kafka_44, "minibroker": ours}
    for broker in peers.values():
        topic = {"name": TOPIC, "num_partitions": 1, "replication_factor": 1}
        with WireClient(broker.host, broker.port) as client:
            client.call("create_topics", 4, topics=[topic], timeout_ms=30_000)
            deadline = time.monotonic() + READY_SECONDS
            while True:
                answer = client.call(
                    "metadata", 8, topics=[{"name": TOPIC}], allow_auto_topic_creation=False
                )
                if answer["topics"][0]["partitions"]:
                    break
                assert time.monotonic() < deadline, "the topic has no leader"
    yield peers
    for broker in peers.values():
        canary = _canaries.pop(broker, None)
        if canary is not None:
            set_quotas(broker, (canary.entity, "producer_byte_rate", None))
    ours.stop()


def compared(brokers: dict[str, Broker], measure: Callable[[Broker], list[int]]) -> list[int]:
    """Measure each broker; ours must be within 15 % of both Kafkas (and 0 where they say 0)."""
    delays = {name: measure(broker) for name, broker in brokers.items()}
    for name in ("3.9.1", "4.4.0"):
        assert len(delays["minibroker"]) == len(delays[name])
        for ours, theirs in zip(delays["minibroker"], delays[name], strict=True):
            assert ours == pytest.approx(theirs, rel=TOLERANCE, abs=TOLERANCE_MS), delays
    return delays["minibroker"]


class Delay(NamedTuple):
    """The delay that an answer told, and when the broker handled its request.

    The broker alone knows that time. It lies between these two, ms after the first request.
    """

    told_ms: int
    earliest_ms: float
    latest_ms: float

    def windows(self) -> list[tuple[float, float]]:
        """Return the ranges in which the delay of a window's first moment lies.

        A rate is a total by ten windows and by the part of the present one that has passed. So the
        delay and this part have the same sum on every broker, however slow. A delay of 0 only says
        that the sum is not larger than the part.
        """
        earliest_part, latest_part = self.earliest_ms % WINDOW_MS, self.latest_ms % WINDOW_MS
        if self.earliest_ms // WINDOW_MS == self.latest_ms // WINDOW_MS:
            parts = [(earliest_part, latest_part)]
        elif self.latest_ms - self.earliest_ms < WINDOW_MS:
            parts = [(earliest_part, float(WINDOW_MS)), (0.0, latest_part)]
        else:
            parts = [(0.0, float(WINDOW_MS))]
        if not self.told_ms:
            return [(-math.inf, latest) for _, latest in parts]
        return [(self.told_ms + earliest, self.told_ms + latest) for earliest, latest in parts]

    def ends(self) -> list[tuple[float, float]]:
        """Return the range in which the end of the delay lies, after the first request."""
        if not self.told_ms:
            return [(-math.inf, 0.0)]
        return [(self.told_ms + self.earliest_ms, self.told_ms + self.latest_ms)]


class Timeline:
    """The delays that the answers to one client told, in order."""

    def __init__(self) -> None:
        self.delays: list[Delay] = []
        self._first = (0.0, 0.0)
        """When the first request was sent, and when it was answered, ms."""

    def ask(
        self, request: Callable[[], dict[str, Any]], *, is_muted: bool = False
    ) -> dict[str, Any]:
        """Send one more request and return its answer.

        `is_muted`: it is on the connection of the one before, which the broker does not read for as
        long as that one is delayed.
        """
        asked_ms = time.monotonic() * 1000
        answer = request()
        answered_ms = time.monotonic() * 1000
        if not self.delays:
            self._first = asked_ms, answered_ms
        sent_ms, done_ms = self._first
        earliest_ms = max(0.0, asked_ms - done_ms)
        if is_muted and self.delays:
            last_delay = self.delays[-1]
            earliest_ms = max(earliest_ms, last_delay.earliest_ms + last_delay.told_ms - EARLY_MS)
        latest_ms = answered_ms - sent_ms if self.delays else 0.0
        assert earliest_ms <= latest_ms, "a delayed client was served"
        self.delays.append(Delay(answer["throttle_time_ms"], earliest_ms, latest_ms))
        return answer


def compared_in_time(
    brokers: dict[str, Broker],
    measure: Callable[[Broker], list[Delay]],
    places: Callable[[Delay], list[tuple[float, float]]] = Delay.windows,
) -> list[Delay]:
    """Measure each broker; ours must be within 15 % of both Kafkas. Return our delays.

    `places`: the ranges in which the same value lies on every broker.
    """
    delays = {name: measure(broker) for name, broker in brokers.items()}
    for name in ("3.9.1", "4.4.0"):
        assert len(delays["minibroker"]) == len(delays[name])
        for ours, theirs in zip(delays["minibroker"], delays[name], strict=True):
            apart_ms = min(
                max(begin - other_end, other_begin - end)
                for begin, end in places(ours)
                for other_begin, other_end in places(theirs)
            )
            assert apart_ms <= max(TOLERANCE * theirs.told_ms, TOLERANCE_MS), delays
    return delays["minibroker"]


def scopes(client_id: str) -> list[dict[str, str | None]]:
    """Return the entities that apply to this client, the weakest first."""
    return [
        {"client-id": None},
        {"client-id": client_id},
        {"user": None},
        {"user": None, "client-id": None},
        {"user": None, "client-id": client_id},
        {"user": USER},
        {"user": USER, "client-id": None},
        {"user": USER, "client-id": client_id},
    ]


def test_the_eight_scopes_have_kafkas_order(brokers: dict[str, Broker]) -> None:
    def measure(broker: Broker) -> list[int]:
        delays = []
        try:
            # Each is stronger than those before, which stay: a wrong order shows.
            for place in range(8):
                client_id = new_id("scope")
                limit = 2000.0 + 1000 * place
                alter(broker, (scopes(client_id)[place], "producer_byte_rate", limit))
                delays.append(produce_delay_ms(broker, client_id, BURST))
        finally:
            alter(
                broker, *((entity, "producer_byte_rate", None) for entity in scopes(new_id("gone")))
            )
        return delays

    # The last two are the worked example: a pair of user and client id has its own limit, whatever
    # the user has.
    assert len(set(compared(brokers, measure))) == 8


def test_a_pattern_of_requests_is_delayed_alike(brokers: dict[str, Broker]) -> None:
    def measure(broker: Broker) -> list[Delay]:
        client_id = new_id("pattern")
        alter(broker, ({"client-id": client_id}, "producer_byte_rate", 50_000.0))
        timeline = Timeline()
        with WireClient(broker.host, broker.port, client_id=client_id) as client:
            for _ in range(8):
                timeline.ask(partial(produce, client, BURST), is_muted=True)
        return timeline.delays

    delays = [delay.told_ms for delay in compared_in_time(brokers, measure)]
    assert delays[:4] == [0] * 4
    assert delays[5] > 0


def test_fetches_are_delayed_alike_and_empty(brokers: dict[str, Broker]) -> None:
    def measure(broker: Broker) -> list[Delay]:
        client_id = new_id("reader")
        produce_delay_ms(broker, new_id("writer"), BURST)
        alter(broker, ({"client-id": client_id}, "consumer_byte_rate", 25_000.0))
        part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 100_200}
        timeline = Timeline()
        with WireClient(broker.host, broker.port, client_id=client_id) as client:
            fetch = partial(
                client.call,
                "fetch",
                11,
                replica_id=-1,
                max_wait_ms=0,
                min_bytes=1,
                max_bytes=1_000_000,
                session_epoch=-1,
                topics=[{"topic": TOPIC, "partitions": [part]}],
            )
            for _ in range(4):
                answer = timeline.ask(fetch, is_muted=True)
                assert bool(answer["responses"]) == (not answer["throttle_time_ms"])
        return timeline.delays

    assert compared_in_time(brokers, measure)[2].told_ms > 0


def test_acks_0_is_delayed_as_well(brokers: dict[str, Broker]) -> None:
    """A busy machine only lengthens a wait, so the shortest of some tries is compared."""

    def waited_ms(broker: Broker) -> float:
        client_id = new_id("silent")
        alter(broker, ({"client-id": client_id}, "producer_byte_rate", 9_000.0))
        with WireClient(broker.host, broker.port, client_id=client_id) as client:
            started = time.monotonic()
            produce(client, BURST, acks=0)
            client.call("api_versions", 0)
            return (time.monotonic() - started) * 1000

    def are_alike() -> bool:
        ours = shortest_ms["minibroker"]
        kafkas = (shortest_ms["3.9.1"], shortest_ms["4.4.0"])
        return all(ours == pytest.approx(theirs, rel=TOLERANCE) for theirs in kafkas)

    shortest_ms = {name: waited_ms(broker) for name, broker in brokers.items()}
    for _ in range(TRIES):
        if are_alike():
            break
        for name, broker in brokers.items():
            shortest_ms[name] = min(shortest_ms[name], waited_ms(broker))
    assert are_alike(), shortest_ms
    assert shortest_ms["minibroker"] > 500


def create(broker: Broker, name: str, partitions: int, client_id: str, version: int = 7) -> Any:
    """Send one CreateTopics request and return its answer."""
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1}
    with WireClient(broker.host, broker.port, client_id=client_id) as client:
        return client.call("create_topics", version, topics=[topic], timeout_ms=30_000)


def make_topics(broker: Broker, *counts: int) -> list[str]:
    """Make topics of these sizes with a client without limits; return once they are known."""
    names = [new_id("victim") for _ in counts]
    for name, count in zip(names, counts, strict=True):
        assert create(broker, name, count, "admin")["topics"][0]["error_code"] == 0
    with WireClient(broker.host, broker.port, client_id="admin") as client:
        deadline = time.monotonic() + READY_SECONDS
        while True:
            topics = [{"name": name} for name in names]
            answer = client.call("metadata", 8, topics=topics, allow_auto_topic_creation=False)
            if [len(topic["partitions"]) for topic in answer["topics"]] == list(counts):
                return names
            assert time.monotonic() < deadline, "the topics are not there"


class Mutations:
    """The answers to one client's changes, in order: their errors, and their delays."""

    def __init__(self) -> None:
        self.errors: list[int] = []
        self._timeline = Timeline()

    @property
    def delays(self) -> list[Delay]:
        """Return the delays that the answers told."""
        return self._timeline.delays

    def ask(self, results: str, request: Callable[[], dict[str, Any]]) -> None:
        """Send one more request."""
        answer = self._timeline.ask(request)
        self.errors.append(answer[results][0]["error_code"])


def compared_mutations(
    brokers: dict[str, Broker], measure: Callable[[Broker], Mutations]
) -> tuple[list[int], list[Delay]]:
    """Measure each broker; errors must be equal. Return our errors and our delays."""
    errors: dict[str, list[int]] = {}

    def delays_of(broker: Broker) -> list[Delay]:
        mutations = measure(broker)
        errors[broker.address] = mutations.errors
        return mutations.delays

    delays = compared_in_time(brokers, delays_of, Delay.ends)
    ours, *theirs = (errors[brokers[name].address] for name in ("minibroker", "3.9.1", "4.4.0"))
    assert theirs == [ours, ours]
    return ours, delays


def test_creations_are_refused_alike(brokers: dict[str, Broker]) -> None:
    def measure(broker: Broker) -> Mutations:
        client_id = new_id("maker")
        alter(broker, ({"client-id": client_id}, "controller_mutation_rate", 0.5))
        mutations = Mutations()
        for count, version in ((7, 7), (1, 7), (1, 5)):
            name = new_id("made")
            mutations.ask("topics", partial(create, broker, name, count, client_id, version))
        return mutations

    errors, delays = compared_mutations(brokers, measure)
    assert errors[:2] == [0, QUOTA_EXCEEDED]
    assert delays[0].told_ms == 0


def test_deletions_are_refused_alike(brokers: dict[str, Broker]) -> None:
    def measure(broker: Broker) -> Mutations:
        client_id = new_id("eraser")
        first, second, third = make_topics(broker, 7, 1, 1)
        alter(broker, ({"client-id": client_id}, "controller_mutation_rate", 0.5))
        mutations = Mutations()
        for name, version in ((first, 5), (second, 5), (third, 4)):
            fields = {"topic_names": [name], "timeout_ms": 30_000}
            with WireClient(broker.host, broker.port, client_id=client_id) as client:
                request = partial(client.call, "delete_topics", version, **fields)
                mutations.ask("responses", request)
        return mutations

    errors, (first, second, third) = compared_mutations(brokers, measure)
    assert errors == [0, QUOTA_EXCEEDED, 0]
    assert first.told_ms == 0 < second.told_ms
    assert third.told_ms + third.earliest_ms > second.told_ms + second.earliest_ms


def test_additions_of_partitions_are_refused_alike(brokers: dict[str, Broker]) -> None:
    def measure(broker: Broker) -> Mutations:
        client_id = new_id("grower")
        first, second, third = make_topics(broker, 1, 1, 1)
        alter(broker, ({"client-id": client_id}, "controller_mutation_rate", 0.5))
        mutations = Mutations()
        for name, total, version in ((first, 8, 3), (second, 2, 3), (third, 2, 2)):
            topic = {"name": name, "count": total, "assignments": None}
            fields = {"topics": [topic], "timeout_ms": 30_000}
            with WireClient(broker.host, broker.port, client_id=client_id) as client:
                request = partial(client.call, "create_partitions", version, **fields)
                mutations.ask("results", request)
        return mutations

    errors, (first, second, third) = compared_mutations(brokers, measure)
    assert errors == [0, QUOTA_EXCEEDED, 0]
    assert first.told_ms == 0 < second.told_ms
    assert third.told_ms + third.earliest_ms > second.told_ms + second.earliest_ms


def test_without_a_limit_nobody_waits_and_connections_share_one(brokers: dict[str, Broker]) -> None:
    def measure(broker: Broker) -> list[Delay]:
        client_id = new_id("shared")
        timeline = Timeline()

        def produce_on_new_connection() -> None:
            with WireClient(broker.host, broker.port, client_id=client_id) as client:
                timeline.ask(partial(produce, client, BURST))

        for _ in range(6):
            produce_on_new_connection()
        alter(broker, ({"client-id": client_id}, "producer_byte_rate", 50_000.0))
        for _ in range(7):
            produce_on_new_connection()
        return timeline.delays

    delays = [delay.told_ms for delay in compared_in_time(brokers, measure)]
    assert delays[:6] == [0] * 6
    assert delays[-1] > 0


def test_request_time_over_its_share_waits_one_window(brokers: dict[str, Broker]) -> None:
    """Every request exceeds the share: the delay is a whole window, however slow the broker."""

    def measure(broker: Broker) -> list[int]:
        client_id = new_id("busy")
        alter(broker, ({"client-id": client_id}, "request_percentage", 0.0001))
        requests: list[tuple[str, int, dict[str, Any]]] = [
            ("metadata", 8, {"topics": [{"name": TOPIC}], "allow_auto_topic_creation": False}),
            ("list_offsets", 2, {"replica_id": -1, "topics": []}),
            ("describe_cluster", 0, {}),
            ("delete_topics", 5, {"topic_names": [], "timeout_ms": 1000}),
        ]
        delays = []
        for api, version, fields in requests:
            with WireClient(broker.host, broker.port, client_id=client_id) as client:
                delays.append(client.call(api, version, **fields)["throttle_time_ms"])
        with WireClient(broker.host, broker.port, client_id=client_id) as client:
            delays.append(produce(client, SMALL)["throttle_time_ms"])
        return delays

    assert compared(brokers, measure) == [1000] * 5


def test_connections_over_the_rate_of_their_address_are_closed_unserved(
    brokers: dict[str, Broker],
) -> None:
    """A burst from one address: the limit is served, the others end a window later."""
    address = "127.0.0.2"
    closings: dict[Broker, tuple[int, int]] = {}

    def measure(broker: Broker) -> list[int]:
        alter(broker, ({"ip": address}, "connection_creation_rate", 2.0))
        served, waits, first_ms = 0, list[int](), 0
        begin_s = time.monotonic()
        try:
            # The shortest of three; of ours of more, while the machine lets none end in time.
            while len(waits) < 3 or (
                broker is brokers["minibroker"] and min(waits) > SECOND_MS and len(waits) < 12
            ):
                assert served < 100, "nobody is refused"
                started = time.monotonic()
                with WireClient(broker.host, broker.port, source=address) as client:
                    try:
                        client.call("api_versions", 0)
                        served += not waits
                    except ConnectionError:
                        now = time.monotonic()
                        waits.append(round((now - started) * 1000))
                        first_ms = first_ms or round((now - begin_s) * 1000)
        finally:
            alter(broker, ({"ip": address}, "connection_creation_rate", None))
        closings[broker] = first_ms, min(waits)
        return [served * 100]

    # At most 2 a second over ten windows and the one that has begun.
    assert 1900 <= compared(brokers, measure)[0] <= 2300
    first_ms, ours_ms = closings[brokers["minibroker"]]
    # The first one over the limit belongs half a second behind the first of all.
    assert first_ms >= 495
    for name in ("3.9.1", "4.4.0"):
        _, theirs_ms = closings[brokers[name]]
        assert theirs_ms - KAFKA_LOOKS_MS < ours_ms < theirs_ms * (1 + TOLERANCE)


# Kafka's own tools.
