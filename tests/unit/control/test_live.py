"""Live streams of records and requests, with clients behind them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from minibroker.control import tails
from minibroker.control.access import Access
from minibroker.control.api import ControlApi
from minibroker.control.records import partitions_of
from minibroker.control.registry_view import RegistryView
from minibroker.control.request_feed import SCANNED_MAX, RequestFeed
from minibroker.control.shapes import FeedQuery, TailQuery
from minibroker.control.tails import TopicTail
from minibroker.rig.request_log import RequestLog, SeenRequest, UnansweredRequest
from minibroker.testing import Cluster
from tests.support.event_stream import EventStreamReader
from tests.support.waiting import wait_until
from tests.unit.control.conftest import serve, serve_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from minibroker.testing import Broker
    from tests.unit.control.conftest import Control


def values_of(event: dict[str, Any]) -> list[str]:
    return [record["value"] for record in event["records"]]


async def next_event(pieces: AsyncGenerator[bytes, None]) -> dict[str, Any]:
    """Return the data of the next event."""
    event: dict[str, Any] = json.loads((await anext(pieces)).partition(b"data: ")[2])
    return event


@pytest.mark.kafka(topics=["orders:2"])
def test_a_tail_shows_the_last_records_and_then_those_that_come(control: Control) -> None:
    for number in range(5):
        control.broker.produce("orders", b"%d" % number, partition=0)
    with EventStreamReader(control.port, "/live/records?topic=orders&tail=2") as stream:
        assert stream.next("records")["skipped"] == 0
        control.broker.produce("orders", b"new", key=b"k", partition=1)
        event = stream.next("records")
        assert (values_of(event), event["records"][0]["partition"]) == (["new"], 1)
    (partition, _) = partitions_of(control.api.scope.nodes, "orders", None)
    wait_until(lambda: not partition.watchers, "the tail watches nothing any more")
    wait_until(lambda: control.api.scope.streams.count == 0, "the stream is over")


@pytest.mark.kafka(topics=["orders"])
def test_a_tail_shows_only_the_last_records_at_first(control: Control) -> None:
    for number in range(5):
        control.broker.produce("orders", b"%d" % number)
    with EventStreamReader(control.port, "/live/records?topic=orders&tail=2") as stream:
        assert values_of(stream.next("records")) == ["3", "4"]


@pytest.mark.kafka(topics=["orders"])
def test_a_tail_of_one_key_leaves_the_others_out(control: Control) -> None:
    with EventStreamReader(control.port, "/live/records?topic=orders&key=b") as stream:
        for key in (b"a", b"b", b"c"):
            control.broker.produce("orders", key, key=key)
        assert values_of(stream.next("records")) == ["b"]


@pytest.mark.kafka(topics=["orders"])
def test_a_tail_ends_with_its_topic(control: Control) -> None:
    with EventStreamReader(control.port, "/live/records?topic=orders") as stream:
        control.broker.delete_topic("orders")
        assert stream.next("end") == {"reason": "there is no topic 'orders'"}
    assert control.ask("GET", "/live/records?topic=orders")[0] == 404


@pytest.mark.kafka(topics=["orders"])
def test_a_tail_of_a_fast_topic_takes_what_the_rate_allows_and_counts_the_rest(
    kafka_broker: Broker,
) -> None:
    """The first look begins at the end; whatever came until the second one is 5,000 records."""
    values = [b"%d" % number for number in range(5000)]

    async def look() -> dict[str, Any]:
        query = TailQuery(topic="orders", tail=0, rate=40)
        pieces = TopicTail(
            ControlApi(kafka_broker._node).scope.nodes, query, RegistryView()
        ).pieces()
        await kafka_broker._node.inspector.produce(
            "orders", key=None, values=values, headers=(), index=0, timestamp=None
        )
        event = await next_event(pieces)
        await pieces.aclose()
        return event

    event = kafka_broker.await_node(lambda _: look())
    assert 1 <= len(event["records"]) <= 40
    assert len(event["records"]) + event["skipped"] == 5000
    assert values_of(event)[-1] == "4999"


@pytest.mark.kafka(topics=["orders"])
def test_an_event_of_a_tail_is_bounded_in_bytes(
    kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tails, "EVENT_BYTES_MAX", 2500)
    for _ in range(10):
        kafka_broker.produce("orders", b"x" * 1000)

    async def look() -> dict[str, Any]:
        query = TailQuery(topic="orders", tail=10, value_bytes_max=None)
        pieces = TopicTail(
            ControlApi(kafka_broker._node).scope.nodes, query, RegistryView()
        ).pieces()
        event = await next_event(pieces)
        await pieces.aclose()
        return event

    event = kafka_broker.await_node(lambda _: look())
    assert (len(event["records"]), event["skipped"]) == (3, 7)


@pytest.mark.kafka(topics=["orders"])
def test_records_of_a_secured_broker_are_not_streamed_without_a_token(
    kafka_broker: Broker,
) -> None:
    control, server = serve(kafka_broker, Access(is_secured=lambda: True))
    assert control.ask("GET", "/live/records?topic=orders")[0] == 403
    kafka_broker.await_node(lambda _: server.close())


# Requests.


@pytest.mark.kafka(topics=["orders"])
def test_requests_are_streamed_as_they_come(control: Control) -> None:
    path = "/live/requests?api=Produce&client_id=mine&last=0"
    with EventStreamReader(control.port, path) as stream:
        assert stream.next("requests") == {"skipped": 0, "requests": [], "open": []}
        producer = Producer(
            {"bootstrap.servers": control.broker.bootstrap, "client.id": "mine", "log_level": 0}
        )
        producer.produce("orders", b"v")
        assert producer.flush(60) == 0
        while not (requests := stream.next("requests")["requests"]):
            pass  # it still waits for its answer
        (request,) = requests
        assert (request["api"], request["client_id"]) == ("Produce", "mine")
        assert (request["broker_id"], request["error"]) == (0, None)
    wait_until(lambda: not control.broker._node.request_log._waiting, "nobody waits any more")


def request_of(api: str, at_ms: int = 0, duration_ms: float = 1.0, error: str | None = None) -> Any:
    return SeenRequest(api, 9, "mine", "127.0.0.1:1", at_ms, duration_ms, error)


async def test_requests_beyond_the_rate_are_counted() -> None:
    log = RequestLog()
    log.note(request_of("Metadata"))
    pieces = RequestFeed({0: log}, FeedQuery(rate=4)).pieces()
    first = await next_event(pieces)
    assert [request["api"] for request in first["requests"]] == ["Metadata"]
    for number in range(SCANNED_MAX + 100):
        log.note(request_of("Fetch", number))
    event = await next_event(pieces)
    assert len(event["requests"]) + event["skipped"] == SCANNED_MAX + 100
    assert 1 <= len(event["requests"]) <= 2
    assert event["requests"][-1]["at_ms"] == SCANNED_MAX + 99
    await pieces.aclose()
    assert not log._waiting


async def test_a_feed_of_slow_and_failed_requests_has_no_others() -> None:
    log = RequestLog()
    for request in (
        request_of("Fetch"),
        request_of("Produce", 1, 500.0),
        request_of("Produce", 2, 500.0, "E"),
    ):
        log.note(request)
    for query, count in (
        (FeedQuery(slow_ms=100), 2),
        (FeedQuery(failed=True), 1),
        (FeedQuery(api="Fetch"), 1),
        (FeedQuery(client_address="127.0.0.1:2"), 0),
        (FeedQuery(last=1), 1),
    ):
        pieces = RequestFeed({0: log}, query).pieces()
        assert len((await next_event(pieces))["requests"]) == count
        await pieces.aclose()


async def test_a_request_without_an_answer_is_open_until_it_ends() -> None:
    log = RequestLog()
    waiting = [request_of("Fetch")._replace(duration_ms=5_000.0, number=0)]
    log.open_requests = lambda: (
        UnansweredRequest(request, lambda: "orders-0 @7") for request in waiting
    )
    pieces = RequestFeed({0: log}, FeedQuery(api="Fetch")).pieces()
    (first,) = (await next_event(pieces))["open"]
    assert (first["api"], first["duration_ms"], first["number"]) == ("Fetch", 5_000.0, 0)
    assert first["subject"] == "orders-0 @7"
    waiting.append(request_of("Fetch")._replace(correlation_id=9, number=0))
    waiting.append(request_of("Produce"))  # another API
    log.tell()
    event = await next_event(pieces)
    assert [request["correlation_id"] for request in event["open"]] == [first["correlation_id"], 9]
    assert event["requests"] == []
    waiting.clear()
    log.note(request_of("Fetch"))
    event = await next_event(pieces)
    assert (len(event["requests"]), event["open"]) == (1, [])
    await pieces.aclose()


@pytest.mark.kafka(topics=["orders"])
def test_a_request_that_a_fault_holds_is_shown_with_its_age(control: Control) -> None:
    fault = control.broker.faults.add("Metadata", client_id="held", hold=True)
    with EventStreamReader(control.port, "/live/requests?client_id=held") as stream:
        assert stream.next("requests")["open"] == []
        producer = Producer(
            {"bootstrap.servers": control.broker.bootstrap, "client.id": "held", "log_level": 0}
        )
        while not (event := stream.next("requests"))["open"]:
            assert all(request["api"] != "Metadata" for request in event["requests"])
        assert event["open"][0]["api"] == "Metadata"
        assert event["open"][0]["duration_ms"] > 0
        fault.remove()
        while event["open"]:
            event = stream.next("requests")
        assert producer.list_topics("orders", timeout=60).topics


async def test_a_cleared_log_is_followed_from_its_new_beginning() -> None:
    log = RequestLog()
    pieces = RequestFeed({0: log}, FeedQuery()).pieces()
    await next_event(pieces)
    log.note(request_of("Fetch"))
    log.clear()
    log.note(request_of("Produce"))
    event = await next_event(pieces)
    assert [request["api"] for request in event["requests"]] == ["Produce"]
    assert event["skipped"] == 1
    await pieces.aclose()


def test_requests_of_all_brokers_come_in_the_order_of_time() -> None:
    with Cluster(2) as cluster:
        for number in range(2):
            log = cluster.node(number).request_log
            cluster._await(_note(log, request_of(f"Api{number}", 10 - number)))
        with serve_of(cluster) as control:
            _, _, lines = control.raw("GET", "/requests?all_brokers=true&client_id=mine")
            requests = [json.loads(line) for line in lines.splitlines()]
            places = [(row["api"], row["broker_id"]) for row in requests]
            assert places == [("Api1", 1), ("Api0", 0)]
            _, _, lines = control.raw("GET", "/requests?broker_id=1&client_id=mine")
            assert len(lines.splitlines()) == 1
            assert control.ask("GET", "/requests?broker_id=7")[0] == 404


async def _note(log: RequestLog, request: SeenRequest) -> None:
    log.note(request)
