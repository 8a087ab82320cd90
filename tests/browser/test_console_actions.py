"""Actions on the console: each one reaches the broker, and a client sees what it did."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest
import requests
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.browser.clients import (
    WAIT_S,
    committed,
    make_topic,
    member_of,
    status_of,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.browser.chromium import BrowserWatch, ConsolePage
    from tests.browser.conftest import ConsoleBroker


ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}


def test_a_topic_of_the_page_is_there_for_a_client(
    page: ConsolePage, console_broker: ConsoleBroker
) -> None:
    page.open("topics")
    page.unfold("Create a topic")
    page.fill("name", "made-here")
    page.fill("partitions", "2")
    page.fill("configs", "cleanup.policy=compact")
    page.press("Create topic")
    page.until(lambda: any(row[0] == "made-here" for row in page.rows("Topics")))
    topics = AdminClient({"bootstrap.servers": console_broker.address}).list_topics().topics
    assert len(topics["made-here"].partitions) == 2
    page.go("topics/made-here")
    page.until(lambda: ["cleanup.policy", "compact"] in [row[:2] for row in page.rows("Settings")])


def test_a_fault_of_the_page_fails_a_client_and_counts_it(
    page: ConsolePage, console_broker: ConsoleBroker
) -> None:
    page.open("faults")
    page.until(lambda: page.find("[name=error]").is_displayed())
    page.fill("error", "TOPIC_AUTHORIZATION_FAILED")
    page.fill("api", "Produce")
    page.fill("client_id", "unlucky")
    page.press("Add fault")
    page.until(lambda: page.rows("Faults")[0][2] == "0")
    with pytest.raises(KafkaException, match="authorization"):
        write(console_broker, "orders", b"v", client_id="unlucky")
    page.until(lambda: page.rows("Faults")[0][2] == "1")
    page.press("Remove")
    page.until(lambda: page.rows("Faults") == [])
    write(console_broker, "orders", b"v", client_id="unlucky")


def test_the_lines_of_an_action_do_the_same(
    page: ConsolePage, console_broker: ConsoleBroker
) -> None:
    page.open("faults")
    page.until(lambda: page.find("[name=error]").is_displayed())
    page.fill("client_id", 'it\'s "me" $HOME \\ `x`')
    page.fill("delay_ms", "5")
    page.unfold("The same from a shell or Python")
    curl, python, in_a_test = (code.text for code in page.find_all("form .lines code"))
    rule = {"client_id": 'it\'s "me" $HOME \\ `x`', "delay_ms": 5.0}
    subprocess.run(["bash", "-c", f"{curl} --silent --fail"], check=True, timeout=WAIT_S)
    eval(python, {"requests": requests})
    faults = status_of(console_broker, "/faults")
    assert [{name: fault[name] for name in rule} for fault in faults] == [rule, rule]
    assert in_a_test.startswith("kafka.faults.add(")
    page.until(lambda: len(page.rows("Faults")) == 2)
    page.press("Remove all")
    page.until(lambda: page.rows("Faults") == [])
    assert status_of(console_broker, "/faults") == []


def test_a_clock_moved_on_the_page_ends_a_session(
    page: ConsolePage, console_broker: ConsoleBroker
) -> None:
    make_topic(console_broker, "timed")
    with (
        committed(console_broker, "timed-group", "timed", 0),  # so the group outlives its member
        member_of(console_broker, "timed-group", "timed", **{"session.timeout.ms": 45_000}),
    ):
        members = status_of(console_broker, "/groups/timed-group")["members"]
        page.open("clock")
        page.until(lambda: any("timed-group" in row[2] for row in page.rows("Due next")))
        page.press("+ 10 minutes")
        page.until(lambda: "10 min" in page.words)
        page.go("groups/timed-group")
        page.until(
            lambda: (
                members[0]["member_id"] not in [row[0] for row in page.rows("Members")]
                and page.find("h1").text == "timed-group"
            )
        )


def test_an_open_transaction_is_aborted(page: ConsolePage, console_broker: ConsoleBroker) -> None:
    make_topic(console_broker, "open-here")
    producer = Producer(
        {"bootstrap.servers": console_broker.address, "transactional.id": "an-open-one"}
    )
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce("open-here", b"v")
    assert producer.flush(WAIT_S) == 0
    page.open("transactions")
    page.until(lambda: page.rows("Transactions")[0][:2] == ["an-open-one", "Ongoing"])
    page.press("Abort …")
    page.press("Abort", "dialog")
    page.until(lambda: page.rows("Transactions")[0][1] != "Ongoing")
    with pytest.raises(KafkaException):
        producer.commit_transaction(WAIT_S)


def test_a_connection_is_ended(page: ConsolePage, console_broker: ConsoleBroker) -> None:
    make_topic(console_broker, "cut-off")
    with committed(console_broker, "cut-off", "cut-off", 0, **{"client.id": "to-be-ended"}):
        page.open("clients")
        page.until(lambda: any("to-be-ended" in row[0] for row in page.rows("Connections")))
        old_connections = {row[1].split()[0] for row in page.rows("Connections")}
        page.press("End")
        page.until(
            lambda: not old_connections <= {row[1].split()[0] for row in page.rows("Connections")}
        )


def test_records_are_found_by_offset_time_and_key(
    page: ConsolePage, console_broker: ConsoleBroker
) -> None:
    make_topic(console_broker, "searched", **{"retention.ms": "-1"})  # the records are old
    for number in range(5):
        write(
            console_broker,
            "searched",
            b"v%d" % number,
            key=b"k%d" % number,
            timestamp=1_000_000_000_000 + number,
        )
    for choice, values in (
        ({"from": "offset", "at": "3"}, ["v3", "v4"]),
        ({"from": "time", "at": "1000000000002"}, ["v2", "v3", "v4"]),
        ({"key": "k1"}, ["v1"]),
        ({"from": "oldest", "limit": "2"}, ["v0", "v1"]),
        ({}, ["v4", "v3", "v2", "v1", "v0"]),
    ):
        page.open("records/searched")
        for name, value in choice.items():
            page.fill(name, value)
        page.click("[name=show]")
        page.until(
            lambda values=values: [row[4] for row in page.rows("Records")] == values  # type: ignore[misc]
        )


def test_pages_of_records_follow_each_other(
    page: ConsolePage, console_broker: ConsoleBroker
) -> None:
    make_topic(console_broker, "turned")
    for number in range(5):
        write(console_broker, "turned", b"v%d" % number)
    page.open("records/turned?from=offset&at=2&limit=2&partition=0")
    page.until(lambda: [row[4] for row in page.rows("Records")] == ["v2", "v3"])
    page.until(lambda: [a.text for a in page.find_all("main a.button")] == ["Older", "Newer"])
    page.find_all("main a.button")[1].click()
    page.until(lambda: [row[4] for row in page.rows("Records")] == ["v4"])
    page.driver.back()
    page.until(lambda: [row[4] for row in page.rows("Records")] == ["v2", "v3"])


def test_the_clock_moves_to_what_is_due(page: ConsolePage, console_broker: ConsoleBroker) -> None:
    make_topic(console_broker, "due")
    with member_of(console_broker, "due-group", "due", **{"session.timeout.ms": 300_000}):
        before_ms = status_of(console_broker, "/clock")["now_ms"]
        page.open("clock")
        page.until(lambda: any("due-group" in row[2] for row in page.rows("Due next")))
        page.press("Move there")
        page.until(lambda: status_of(console_broker, "/clock")["now_ms"] > before_ms)
        page.until(lambda: "The clock is moved by" in page.words)


def test_the_page_of_a_proxy_adds_faults_and_shows_what_it_sees(
    watch: BrowserWatch, proxy: ConsoleBroker
) -> None:
    page = watch.page(proxy.url)
    page.open("faults")
    assert [anchor.text for anchor in page.find_all("#nav a")] == ["Requests", "Faults"]
    page.until(lambda: page.find("[name=error]").is_displayed())
    page.fill("error", "TOPIC_AUTHORIZATION_FAILED")
    page.fill("api", "Produce")
    page.press("Add fault")
    page.until(lambda: page.rows("Faults")[0][2] == "0")
    with pytest.raises(KafkaException, match="authorization"):
        write(proxy, "orders", b"v", client_id="behind")
    page.until(lambda: page.rows("Faults")[0][2] == "1")
    page.go("requests?client_id=behind")
    page.until(lambda: any("TOPIC_AUTHORIZATION_FAILED" in row[4] for row in page.rows("Requests")))
    page.until(lambda: "Produce" in page.find(".diagram svg:not(.ends)").text)


def test_a_schema_of_the_page_decodes_what_a_client_writes(
    watch: BrowserWatch, start: Callable[..., ConsoleBroker]
) -> None:
    broker = start("--topic", "orders", "--registry", "127.0.0.1:0")
    page = watch.page(broker.url)
    page.open("schemas")
    page.unfold("Register a schema")
    page.fill("subject", "orders-value")
    page.fill("schema", json.dumps(ORDER))
    page.press("Register")
    page.until(lambda: page.rows("Subjects") == [["orders-value"]])
    context = SerializationContext("orders", MessageField.VALUE)
    with SchemaRegistryClient({"url": f"{broker.url}/registry"}) as registry:
        options = {"auto.register.schemas": False}
        serializer = AvroSerializer(registry, json.dumps(ORDER), conf=options)
        value = serializer({"id": 9_007_199_254_740_993}, context)
    assert value is not None
    write(broker, "orders", value)
    page.go("records/orders?registry=true")
    page.until(lambda: '{"id":9007199254740993}' in page.rows("Records")[0][4])
    page.click("td button[aria-expanded]")
    page.until(lambda: "Schema id" in page.find(".record").text)
    page.go("schemas/orders-value")
    page.until(lambda: '"name": "Order"' in page.find("main > pre").text)
    page.fill("level", "FULL")
    page.press("Set level")
    page.until(lambda: "FULL" in page.find(".facts").text)
    watch.expect(409, "/registry/subjects/orders-value/versions")
    page.fill("schema", json.dumps(ORDER | {"name": "Other"}))
    page.press("Register")
    page.until(lambda: "incompatible" in page.find("form [role=alert]:not([hidden])").text)


def test_a_console_shows_all_brokers_of_its_process(
    watch: BrowserWatch, three_brokers: ConsoleBroker
) -> None:
    page = watch.page(three_brokers.url)
    page.open("cluster")
    page.until(lambda: [row[2] for row in page.rows("Brokers")] == ["running"] * 3)
    page.go("topics/orders")
    page.until(lambda: len({row[1] for row in page.rows("Partitions")}) == 3)
    page.fill("partition", "1")
    page.fill("broker", "2")
    page.press("Make leader")
    page.until(lambda: page.rows("Partitions")[1][1] == "broker 2")
    page.go("faults")
    page.until(lambda: page.find("[name=error]").is_displayed())
    page.unfold("Faults of the broker and of logins, and more")
    page.fill("broker", "killed")
    page.fill("on", "2")
    page.press("Add fault")
    page.until(lambda: page.rows("Faults")[0][3] == "2")
    page.go("cluster")
    page.until(lambda: [row[2] for row in page.rows("Brokers")] == ["running", "running", "killed"])
    page.go("faults")
    page.press("Remove")
    page.until(lambda: page.rows("Faults") == [])
    page.go("cluster")
    page.until(lambda: [row[2] for row in page.rows("Brokers")] == ["running"] * 3)
