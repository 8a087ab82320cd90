"""A broker as a day of work leaves it, and every scene of the console on it.

A scene is a view with real content on it, or a view with something opened: a record, a dialog.
"""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import requests
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.browser.clients import WAIT_S, committed, hang, member_of, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.browser.chromium import ConsolePage
    from tests.browser.conftest import ConsoleBroker

OPTIONS: Final = (
    "--brokers=3",
    "--topic=orders:3",
    "--topic=payments",
    "--topic=imports",
    "--topic=audit.events-of-the-accounting-department.v2:2:cleanup.policy=compact",
    "--registry=127.0.0.1:0",
    "--set=transaction.partition.verification.enable=false",  # so that one can hang
)
"""Options of `minibroker serve`."""
GROUP: Final = "billing"
SUBJECT: Final = "payments-value"
PAYMENT: Final = {
    "type": "record",
    "name": "Payment",
    "namespace": "com.example.billing",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "amount", "type": "double"},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}


@contextmanager
def filled(broker: ConsoleBroker) -> Iterator[None]:
    """Fill a broker, which began with `OPTIONS`; some of its clients stay meanwhile."""
    write_orders(broker)
    write_payments(broker)
    for path, body in (
        ("/quotas", {"client_id": "shop", "set": {"producer_byte_rate": 1_048_576}}),
        ("/quotas", {"user": "<default>", "set": {"request_percentage": 50}}),
        ("/faults", {"api": "Fetch", "client_id": "nobody", "delay_ms": 50, "probability": 0.5}),
        ("/faults", {"api": "Heartbeat", "client_id": "nobody", "error": "REBALANCE_IN_PROGRESS"}),
    ):
        requests.post(broker.url + path, json=body, timeout=WAIT_S).raise_for_status()
    hang(broker, "imports", producer_id=77_000)
    with committed(broker, GROUP, "orders", 1):
        pass
    with ExitStack() as clients:
        producer = Producer(
            {
                "bootstrap.servers": broker.address,
                "transactional.id": "settling",
                "transaction.timeout.ms": 900_000,  # nothing ends it on a busy machine
            }
        )
        clients.callback(producer.abort_transaction, WAIT_S)
        producer.init_transactions(WAIT_S)
        producer.begin_transaction()
        producer.produce("payments", b"open")
        assert producer.flush(WAIT_S) == 0
        for name in ("billing-1", "billing-2"):
            settings = {"client.id": name, "heartbeat.interval.ms": 500}  # rebalances at once
            clients.enter_context(member_of(broker, GROUP, "orders", **settings))
        yield


def write_orders(broker: ConsoleBroker) -> None:
    """Write records of each kind to the first partition of the topic `orders`."""
    order = {
        "order": 17,
        "customer": {"name": "Zoë Ångström", "city": "Århus"},
        "lines": [{"article": "teapot", "count": 2, "price": 24.5}],
        "paid": False,
    }
    headers = [
        ("trace-id", b"4bf92f3577b34da6a3ce929d0e0e4736"),
        ("raw", b"\x00\xff\x10"),
        ("n", None),
    ]
    for value, fields in (
        (b"a plain text", {"key": b"o-1"}),
        (bytes(range(256)), {"key": b"\x00\x01\x02\xff"}),
        (None, {"key": b"o-3"}),
        (b"x" * 40_000, {}),
        (json.dumps(order, ensure_ascii=False).encode(), {"key": b"o-17", "headers": headers}),
    ):
        write(broker, "orders", value, client_id="shop", partition=0, **fields)


def write_payments(broker: ConsoleBroker) -> None:
    """Register two versions of a schema, and write a record with it."""
    context = SerializationContext("payments", MessageField.VALUE)
    older = PAYMENT | {"fields": PAYMENT["fields"][:2]}
    with SchemaRegistryClient({"url": f"{broker.url}/registry"}) as registry:
        AvroSerializer(registry, json.dumps(older))({"id": 1, "amount": 1.5}, context)
        serializer = AvroSerializer(registry, json.dumps(PAYMENT))
        value = serializer({"id": 2, "amount": 12.5, "note": "second try"}, context)
    assert value is not None
    write(broker, "payments", value, client_id="shop", key=b"p-2")


class Scene(NamedTuple):
    """A view of the console, with something on it."""

    view: str
    title: str
    prepare: Callable[[ConsolePage], object]
    """Waits for the content, and opens what is to be opened."""
    opener: str = ""
    """The button that opened a dialog."""

    def show(self, page: ConsolePage) -> None:
        """Show it."""
        page.go(self.view)
        page.until(lambda: page.find("h1").text == self.title)
        self.prepare(page)


def _has_row(caption: str, text: str) -> Callable[[ConsolePage], object]:
    """Wait for a row with this text in a table."""
    return lambda page: page.until(
        lambda: any(text in cell for row in page.rows(caption) for cell in row)
    )


def _opens_records(page: ConsolePage) -> None:
    """Open each record; one of them as hex."""
    page.until(lambda: len(page.rows("Records")) == ORDERS)
    for button in page.find_all("td button[aria-expanded]"):
        button.click()
    page.until(lambda: len(page.find_all(".record")) == ORDERS)
    page.fill("key_kind", "hex")
    assert any("trace-id" in row[0] for row in page.rows("Headers"))


def _opens_decoded(page: ConsolePage) -> None:
    page.until(lambda: '"amount":12.5' in page.rows("Records")[0][4])
    page.click("td button[aria-expanded]")
    page.until(lambda: "Schema id" in page.find(".record").text)


def _asks(page: ConsolePage) -> None:
    page.press("Delete …")
    page.until(lambda: page.find("dialog").is_displayed())


def _changes_setting(page: ConsolePage) -> None:
    page.until(lambda: page.rows("Settings") != [])
    page.press("Change …")
    page.until(lambda: page.find("dialog").is_displayed())


def _has_diagram(page: ConsolePage) -> None:
    page.until(lambda: "Fetch" in page.find(".diagram svg:not(.ends)").text)


def _has_plots(page: ConsolePage) -> None:
    page.until(lambda: len(page.find_all(".plot polyline[points]")) > 8)


def _has_lag(page: ConsolePage) -> None:
    page.until(lambda: page.rows("Members") != [] and page.rows("Offsets") != [])
    page.until(lambda: page.find(".plot .now").text != "–")


def _is_filled(page: ConsolePage) -> None:
    page.until(lambda: page.find("main form, main table") is not None)


def _has_schema(page: ConsolePage) -> None:
    page.until(lambda: '"note"' in page.find("main pre").text)


def _has_fields(page: ConsolePage) -> None:
    page.until(lambda: len(page.rows("Faults")) == 2 and page.find("[name=error]").is_displayed())


ORDERS: Final = 5
LONG: Final = "audit.events-of-the-accounting-department.v2"
SCENES: Final = {
    "topics": Scene("topics", "Topics", _has_row("Topics", LONG)),
    "topic": Scene("topics/orders", "orders", _has_row("Partitions", "broker")),
    "topic-long": Scene(f"topics/{LONG}", LONG, _has_row("Settings", "compact")),
    "topic-delete": Scene("topics/orders", "orders", _asks, "Delete …"),
    "topic-setting": Scene(f"topics/{LONG}", LONG, _changes_setting, "Change …"),
    "records": Scene("records", "Records", _is_filled),
    "records-open": Scene(
        "records/orders?partition=0&uncommitted=true", "Records of orders", _opens_records
    ),
    "records-schema": Scene(
        "records/payments?registry=true", "Records of payments", _opens_decoded
    ),
    "records-live": Scene(
        "records/orders?live=true", "Records of orders", _has_row("Records", "o-1")
    ),
    "schemas": Scene("schemas", "Schemas", _has_row("Subjects", SUBJECT)),
    "schema": Scene(f"schemas/{SUBJECT}", SUBJECT, _has_schema),
    "groups": Scene("groups", "Groups", _has_row("Groups", GROUP)),
    "group": Scene(f"groups/{GROUP}", GROUP, _has_lag),
    "transactions": Scene("transactions", "Transactions", _has_row("Transactions", "settling")),
    "clients": Scene("clients", "Connections", _has_row("Connections", "billing-1")),
    "quotas": Scene("quotas", "Quotas", _has_row("Quotas", "shop")),
    "requests": Scene("requests", "Requests", _has_row("Requests", "Fetch")),
    "requests-of-client": Scene("requests?client_id=billing-1", "Requests", _has_diagram),
    "metrics": Scene("metrics", "Metrics", _has_plots),
    "cluster": Scene("cluster", "Brokers", _has_row("Brokers", "controller")),
    "faults": Scene("faults", "Faults", _has_fields),
    "clock": Scene("clock", "Clock", _has_row("Due next", GROUP)),
}
"""Every view, and what opens on it."""
