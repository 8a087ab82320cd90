"""Pages that are files, in a browser: a failed test, a conversation, the pipeline's reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer
from selenium.webdriver.common.keys import Keys

from minibroker.pages.conversation import conversation
from minibroker.pages.page import render
from minibroker.pipeline.kafka.reader_lag import PartitionLag, ReaderLag
from minibroker.pipeline.verbs.inspect import page as inspect_page
from minibroker.pipeline.verbs.inspect.facts import (
    FrequentKey,
    GroupLag,
    Inspection,
    PartitionFacts,
    Slice,
    TopicFacts,
)
from minibroker.pipeline.verbs.lag import page as lag_page
from minibroker.pipeline.verbs.lag.text import Look
from minibroker.testing import Broker
from minibroker.testing.failure_page import FailedTest
from minibroker.testing.failure_page import page as failure_page
from minibroker.testing.failure_watch import View
from minibroker.trace.exchange import Exchange
from tests.browser.chromium import accessibility_checker

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from minibroker.rig.snapshot import Snapshot
    from tests.browser.chromium import BrowserWatch, ConsolePage

    Open = Callable[[str], ConsolePage]

NOON_MS = 1_790_000_000_000
MARKUP = '<img src=x onerror="document.title=1">'
WIDTHS = (360, 1024, 1600)
COUNT = 30_000
"""Requests of a long conversation; a page may have 100,000."""


@pytest.fixture
def open_page(watch: BrowserWatch, tmp_path: Path) -> Open:
    """Return a function that opens a page."""

    def open_page(html: str) -> ConsolePage:
        path = tmp_path / "page.html"
        path.write_text(html, encoding="utf-8")
        page = watch.page(path.as_uri())
        page.resize(1024)
        page.driver.get(page.url)
        return page

    return open_page


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    """Return what a broker is left with by a test whose client has bad names."""
    with Broker(topics=["orders:2", "empty"]) as broker:
        broker.call(lambda: broker.nodes[0].request_log.follow(every=True))
        settings = {"bootstrap.servers": broker.bootstrap, "log_level": 0}
        producer = Producer({**settings, "client.id": "shop"})
        with broker.faults.add("Produce", error="NOT_LEADER_OR_FOLLOWER", times=1):
            for number in range(20):
                producer.produce("orders", MARKUP * number, key=MARKUP, partition=number % 2)
            assert producer.flush(60) == 0
        consumer = Consumer(
            {**settings, "client.id": MARKUP, "group.id": MARKUP, "auto.offset.reset": "earliest"}
        )
        consumer.subscribe(["orders"])
        consumer.commit(consumer.consume(3, 60)[-1], asynchronous=False)
        final_snapshot = broker.snapshot()
        consumer.close()
    return final_snapshot


@pytest.fixture(scope="module")
def failed(snapshot: Snapshot) -> str:
    """Return the page of a failed test."""
    views = [View("Broker", snapshot, "")]
    error = f"AssertionError: {MARKUP}\n" + "x" * 3_000
    return failure_page(
        FailedTest(f"test_it[{MARKUP}]", NOON_MS, 5, "test", error, views, ["a line"])
    )


def long_conversation(count: int) -> str:
    exchanges = [
        Exchange(
            number=number,
            connection=number % 40,
            client_address="127.0.0.1:5000",
            broker=f"broker {number % 3}",
            api="Fetch" if number % 10 else "Produce",
            version=12,
            correlation_id=number,
            client_id=f"client {number % 40}",
            at_ms=NOON_MS + number,
            duration_ms=None if number == count else 2.5,
            request_bytes=100,
            answer_bytes=50,
            subject=f"orders-{number % 7} @{number}",
            error="NOT_LEADER_OR_FOLLOWER" if number % 1000 == 0 else None,
        )
        for number in range(1, count + 1)
    ]
    facts: list[tuple[str, str]] = []
    diagram = conversation(exchanges)
    return render("trace/page.html", title="Long", facts=facts, notes=[], diagram=diagram, apis=[])


def inspection() -> str:
    topic = TopicFacts(
        MARKUP,
        tuple(PartitionFacts(n, 900, 9_000, 0, 899, NOON_MS, NOON_MS, 0, 5, 4) for n in range(9)),
        keys=7,
        median_bytes=12,
        slice_ms=1000,
        slices=tuple(Slice(NOON_MS + 1000 * n, n, 10 * n) for n in range(60)),
        sizes=tuple((power, 50 * power) for power in range(12)),
        frequent_keys=(FrequentKey(MARKUP, 800, 0),),
        groups=(GroupLag(MARKUP, "stable", 40, 2, 0),),
    )
    return inspect_page.page(Inspection("127.0.0.1:9092", NOON_MS, False, (topic, topic)))


def lag() -> str:
    history = lag_page.History()
    for second in range(50):
        part = PartitionLag("orders", 0, 0, second * second)
        readers = [ReaderLag(name, "stable", (part,)) for name in (MARKUP, "billing")]
        history.add(Look(NOON_MS + second * 1000, readers, {part: NOON_MS}))
    return lag_page.page(history, brokers="127.0.0.1:9092", has_age=True)


def drawn(page: ConsolePage) -> list[str]:
    """Return the labels of the rows that are in the page."""
    return [element.text for element in page.find_all(".talk-label")]


def test_the_requests_of_a_failed_test_are_drawn(open_page: Open, failed: str) -> None:
    page = open_page(failed)
    page.until(lambda: len(drawn(page)) > 5)
    assert [element.text for element in page.find_all(".talk-head .client")] == ["shop", MARKUP]
    assert any("NOT_LEADER_OR_FOLLOWER" in label for label in drawn(page))
    assert page.find_all(".talk-row .tip.met") != []
    assert page.driver.title == f"test_it[{MARKUP}]", "no markup of a client has run"
    assert page.rows("Groups")[0][0] == MARKUP


def test_filters_choose_and_rows_open_by_keyboard(open_page: Open, failed: str) -> None:
    page = open_page(failed)
    page.until(lambda: len(drawn(page)) > 5)
    page.find("body").send_keys("/")
    page.driver.switch_to.active_element.send_keys("orders")
    assert page.driver.switch_to.active_element.get_attribute("id") == "talk-text"
    page.find("#talk-errors").click()
    page.until(lambda: page.find("#talk-count").text.startswith("1 of"))
    rows = page.find("#talk-rows")
    rows.send_keys(Keys.END, Keys.HOME, Keys.ENTER)
    details = page.find("#talk-details")
    page.until(details.is_displayed)
    assert "Produce v" in details.text
    assert "error NOT_LEADER_OR_FOLLOWER" in details.text
    rows.send_keys(Keys.ESCAPE)
    page.until(lambda: not details.is_displayed())
    page.find(".talk-row").click()
    page.until(details.is_displayed)
    below = page.driver.execute_script(
        "return arguments[0].getBoundingClientRect().bottom - innerHeight", details
    )
    assert below <= 0, "it is in view"
    page.press("close", "#talk-details")
    page.until(lambda: not details.is_displayed())


def test_of_thousands_of_requests_the_rows_in_view_are_drawn(open_page: Open) -> None:
    page = open_page(long_conversation(COUNT))
    page.until(lambda: page.find("#talk-count").text == f"{COUNT} of {COUNT} requests")
    assert len(drawn(page)) < 80
    page.find("#talk-rows").send_keys(Keys.END)
    page.until(lambda: any(f"@{COUNT}" in label for label in drawn(page)))
    assert any("no answer" in label for label in drawn(page))
    page.find("#talk-errors").click()
    page.until(lambda: page.find("#talk-count").text == f"{COUNT // 1000} of {COUNT} requests")
    assert [element.text for element in page.find_all(".talk-head span")] == [
        "client 0",
        "broker 0",
        "broker 1",
        "broker 2",
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["failed", "inspection", "lag"])
def test_a_page_fits_each_width_and_is_accessible(
    open_page: Open, failed: str, name: str, scheme: str
) -> None:
    page = open_page({"failed": failed, "inspection": inspection(), "lag": lag()}[name])
    page.prefer(scheme)
    for width in WIDTHS:
        page.resize(width)
        page.until(lambda width=width: page.driver.execute_script("return innerWidth") == width)
        excess = (
            "return document.scrollingElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert page.driver.execute_script(excess) <= 0, f"{name} at {width}"
    page.driver.execute_script(accessibility_checker())
    result: dict[str, Any] = page.driver.execute_async_script(
        "const done = arguments[0]; axe.run().then(done, (error) => done({error: `${error}`}))"
    )
    serious = [
        (violation["id"], violation["nodes"][0]["html"])
        for violation in result["violations"]
        if violation["impact"] in ("serious", "critical")
    ]
    assert serious == []
