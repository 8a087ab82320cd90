"""A tail of more records than anybody reads: the page stays small, and counts what it leaves out.

`make console-tail` writes 100,000 records a second for 20 s, and logs what the page and the
broker's loop took. The suite writes two bursts, and waits for no clock.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import Producer

from tests.browser.clients import WAIT_S, make_topic
from tests.support.event_stream import EventStreamReader

if TYPE_CHECKING:
    from tests.browser.chromium import ConsolePage
    from tests.browser.conftest import ConsoleBroker

logger = logging.getLogger(__name__)

SECONDS: Final = int(os.environ.get("MINIBROKER_TAIL_SECONDS", "0"))
RATE: Final = 100_000
"""Records of a burst, and of a second."""
TICKS: Final = 20
"""Parts of a second that `make console-tail` writes in."""
ROWS_MAX: Final = 200
NODES_MAX: Final = 15_000
LIVE_NODES_MAX: Final = 30_000
"""Nodes while the tail runs: those of rows that have just gone are not collected yet."""
HEAP_GROWTH_MAX: Final = 4 << 20
"""Bytes more that the page may have after ten times as many records."""
LOOP_DELAY_MS_MAX: Final = 100.0


class PageSize(NamedTuple):
    """Size of a page, when its garbage is collected."""

    heap_bytes: int
    nodes: int
    rows: int

    @classmethod
    def of(cls, page: ConsolePage) -> PageSize:
        """Measure a page."""
        page.driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
        heap = page.driver.execute_cdp_cmd("Runtime.getHeapUsage", {})
        nodes = page.driver.execute_cdp_cmd("Memory.getDOMCounters", {})
        rows = page.driver.execute_script("return document.querySelectorAll('tbody tr').length")
        return cls(int(heap["usedSize"]), int(nodes["nodes"]), int(rows))


def record_count(page: ConsolePage) -> int:
    """Return how many records the tail has shown or left out."""
    words = page.find(".state").text.replace(",", "").split()
    return int(words[0]) + int(words[2]) if "left" in words else 0


def burst(producer: Producer, topic: str, count: int) -> None:
    """Write so many records."""
    for number in range(count):
        producer.produce(topic, b"%d" % number, key=b"key")
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(WAIT_S) == 0


def test_a_page_does_not_grow_with_the_records_of_its_tail(
    page: ConsolePage, console_broker: ConsoleBroker
) -> None:
    make_topic(console_broker, "bursts")
    producer = Producer(
        {"bootstrap.servers": console_broker.address, "queue.buffering.max.messages": 2 * RATE}
    )
    page.open("records/bursts?live=true")
    page.fill("rate", "200")
    page.until(lambda: "Waiting for records" in page.find(".state").text)
    burst(producer, "bursts", RATE // 10)
    page.until(lambda: record_count(page) == RATE // 10)
    first = PageSize.of(page)
    burst(producer, "bursts", RATE)
    page.until(lambda: record_count(page) == RATE + RATE // 10)
    last = PageSize.of(page)
    assert last.rows <= ROWS_MAX
    assert last.nodes <= NODES_MAX
    assert last.heap_bytes - first.heap_bytes <= HEAP_GROWTH_MAX, (first, last)
    if SECONDS:
        follow_for(page, console_broker, producer)


def follow_for(page: ConsolePage, broker: ConsoleBroker, producer: Producer) -> None:
    """Write at a steady rate, and measure once a second."""
    is_over = threading.Event()
    total = record_count(page)

    def write() -> None:
        begin = time.monotonic()
        for tick in range(SECONDS * TICKS):
            is_over.wait(max(0.0, begin + tick / TICKS - time.monotonic()))
            burst(producer, "bursts", RATE // TICKS)

    writer = threading.Thread(target=write)
    writer.start()
    sizes: list[PageSize] = []
    delays: list[float] = []
    port = int(broker.url.rpartition(":")[2])
    with EventStreamReader(port, "/live/samples") as samples:
        place = samples.next("history")["names"].index("loop_delay_ms")
        while writer.is_alive():
            delays.append(samples.next("sample")["values"][place])
            sizes.append(PageSize.of(page))
    writer.join()
    page.until(lambda: record_count(page) == total + SECONDS * RATE)
    for size, delay_ms in zip(sizes, delays, strict=True):
        logger.info(
            "%d KiB, %d nodes, %d rows, loop %s ms",
            size.heap_bytes >> 10,
            size.nodes,
            size.rows,
            delay_ms,
        )
    assert max(size.nodes for size in sizes) <= LIVE_NODES_MAX
    assert sizes[-1].heap_bytes - sizes[0].heap_bytes <= HEAP_GROWTH_MAX
    assert max(delays) <= LOOP_DELAY_MS_MAX
