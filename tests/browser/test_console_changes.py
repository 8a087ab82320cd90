"""Changes on the console, and the lines below them: a shell and Python do the same.

Each test does a change with the mouse, reads its effect with a client, then runs the lines that the
page shows, each on what is still as it was.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, NamedTuple

import requests
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from tests.browser.clients import (
    WAIT_S,
    committed,
    consumed,
    hang,
    make_topic,
    quotas_of,
    status_of,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.browser.chromium import BrowserWatch, ConsolePage
    from tests.browser.conftest import ConsoleBroker


class Lines(NamedTuple):
    """The lines of one change."""

    curl: str
    python: str

    def of(self, name: str, other: str) -> Lines:
        """Return the same change of something else."""
        assert name in self.curl
        assert name in self.python
        return Lines(self.curl.replace(name, other), self.python.replace(name, other))

    def run_curl(self) -> None:
        """Run the line of the shell."""
        command = ["bash", "-c", f"{self.curl} --silent --show-error --fail-with-body"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
        assert done.returncode == 0, done

    def run_python(self) -> None:
        """Run the line of Python."""
        answer = eval(self.python, {"requests": requests})
        assert answer.ok, answer.text


def lines_below(page: ConsolePage, place: str) -> Lines:
    """Return the first two lines of a block."""
    curl, python, *_ = page.driver.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)",
        f"{place} .lines code",
    )
    return Lines(curl, python)


def last_lines(page: ConsolePage) -> Lines:
    """Return the lines of the last action, once it is done."""
    page.until(lambda: page.find("[aria-label='Last action']").is_displayed())
    return lines_below(page, "[aria-label='Last action']")


def admin_of(broker: ConsoleBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.address})


def names_of_topics(broker: ConsoleBroker) -> set[str]:
    return set(admin_of(broker).list_topics(timeout=WAIT_S).topics)


def partitions_of(broker: ConsoleBroker, topic: str) -> int:
    return len(admin_of(broker).list_topics(topic, WAIT_S).topics[topic].partitions)


def groups_of(broker: ConsoleBroker) -> set[str]:
    admin = admin_of(broker)
    result = admin.list_consumer_groups().result(WAIT_S)
    return {group.group_id for group in result.valid}


def setting_of(broker: ConsoleBroker, topic: str, name: str) -> tuple[str, bool]:
    """Return the value of a topic's setting, and whether it is the default."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = admin_of(broker)
    entry = admin.describe_configs([resource])[resource].result(WAIT_S)[name]
    return entry.value, entry.is_default


def delete_and_come_to(page: ConsolePage, heading: str) -> Lines:
    """Delete what the page shows, wait for the list, and return the lines of the deletion."""
    page.press("Delete …")
    page.until(lambda: page.find("dialog").is_displayed())
    lines = lines_below(page, "dialog")
    page.press("Delete", "dialog")
    page.until(lambda: page.find("h1").text == heading)
    return lines


def test_a_topic_is_deleted(page: ConsolePage, console_broker: ConsoleBroker) -> None:
    for name in ("gone-by-page", "gone-by-curl", "gone-by-python"):
        make_topic(console_broker, name)
    page.open("topics/gone-by-page")
    lines = delete_and_come_to(page, "Topics")
    assert "gone-by-page" not in names_of_topics(console_broker)
    lines.of("gone-by-page", "gone-by-curl").run_curl()
    assert "gone-by-curl" not in names_of_topics(console_broker)
    lines.of("gone-by-page", "gone-by-python").run_python()
    assert "gone-by-python" not in names_of_topics(console_broker)


def test_a_group_is_deleted(page: ConsolePage, console_broker: ConsoleBroker) -> None:
    groups = {"left-by-page", "left-by-curl", "left-by-python"}
    for name in groups:
        with committed(console_broker, name, "orders", 0):
            pass
    assert groups <= groups_of(console_broker)
    page.open("groups/left-by-page")
    lines = delete_and_come_to(page, "Groups")
    assert "left-by-page" not in groups_of(console_broker)
    lines.of("left-by-page", "left-by-curl").run_curl()
    lines.of("left-by-page", "left-by-python").run_python()
    assert groups & groups_of(console_broker) == set()


def test_offsets_are_moved_in_each_way(page: ConsolePage, console_broker: ConsoleBroker) -> None:
    make_topic(console_broker, "each-way", **{"retention.ms": "-1"})  # the records are old
    for number in range(10):
        write(console_broker, "each-way", b"v", timestamp=1_000_000_000_000 + number)
    with committed(console_broker, "each-way", "each-way", 5) as consumer:

        def offset() -> int:
            return int(consumer.committed([TopicPartition("each-way", 0)], WAIT_S)[0].offset)

        def put_back() -> None:
            consumer.commit(offsets=[TopicPartition("each-way", 0, 5)], asynchronous=False)
            assert offset() == 5

        page.open("groups/each-way")
        page.until(lambda: page.find("[name=to]").is_displayed())
        for way, place, expected in (
            ("earliest", None, 0),
            ("latest", None, 10),
            ("offset", "3", 3),
            ("time", "1000000000007", 7),
            ("shift", "-4", 1),
        ):
            page.fill("to", way)
            if place is not None:
                page.fill("place", place)
            # The notice of the move before would end the wait for this one's answer.
            page.driver.execute_script("document.getElementById('notice').textContent = ''")
            page.press("Move")
            page.until(lambda expected=expected: offset() == expected)  # type: ignore[misc]
            page.until(lambda: "1 offset" in page.find("#notice").text)
            lines = lines_below(page, "form")
            for run in (lines.run_curl, lines.run_python):
                put_back()
                run()
                assert offset() == expected, (way, lines)
            put_back()


def test_partitions_are_added(page: ConsolePage, console_broker: ConsoleBroker) -> None:
    make_topic(console_broker, "grown")
    page.open("topics/grown")
    runs: list[Callable[[Lines], None]] = [Lines.run_curl, Lines.run_python]
    for count, run in enumerate([*runs, None], 2):
        page.fill("count", str(count))
        lines = lines_below(page, "form")
        if run is None:
            page.press("Add partitions")
            page.until(lambda: len(page.rows("Partitions")) == 4)
        else:
            run(lines)
        assert partitions_of(console_broker, "grown") == count


def test_a_setting_is_altered_and_deleted(page: ConsolePage, console_broker: ConsoleBroker) -> None:
    names = ("set-by-page", "set-by-curl", "set-by-python")
    for name in names:
        make_topic(console_broker, name, **{"retention.ms": "1000000"})
    page.open("topics/set-by-page")
    page.press("Change …")
    page.fill("value", "2000000", "dialog")
    page.press("Set", "dialog")
    page.until(lambda: page.rows("Settings")[0][1] == "2000000")
    altered = last_lines(page)
    assert setting_of(console_broker, "set-by-page", "retention.ms") == ("2000000", False)
    page.press("Reset")
    page.until(lambda: page.rows("Settings") == [])
    page.until(lambda: "reset" in last_lines(page).curl)
    deleted = last_lines(page)
    assert setting_of(console_broker, "set-by-page", "retention.ms") == ("604800000", True)
    altered.of("set-by-page", "set-by-curl").run_curl()
    altered.of("set-by-page", "set-by-python").run_python()
    for name in names[1:]:
        assert setting_of(console_broker, name, "retention.ms") == ("2000000", False)
    deleted.of("set-by-page", "set-by-curl").run_curl()
    deleted.of("set-by-page", "set-by-python").run_python()
    for name in names[1:]:
        assert setting_of(console_broker, name, "retention.ms") == ("604800000", True)


def test_a_quota_is_added_and_removed(page: ConsolePage, console_broker: ConsoleBroker) -> None:
    limit = {"producer_byte_rate": 1024.0}
    page.open("quotas")
    page.unfold("Set a quota")
    page.fill("client_id", "eager-page")
    page.fill("key", "producer_byte_rate")
    page.fill("value", "1024")
    added = lines_below(page, "form")
    page.press("Set quota")
    page.until(lambda: any("eager-page" in row[0] for row in page.rows("Quotas")))
    assert quotas_of(console_broker, "eager-page") == limit
    page.press("Remove")
    page.until(lambda: page.rows("Quotas") == [])
    removed = last_lines(page)
    assert quotas_of(console_broker, "eager-page") == {}
    for name, kind in (("eager-curl", Lines.run_curl), ("eager-python", Lines.run_python)):
        kind(added.of("eager-page", name))
        assert quotas_of(console_broker, name) == limit
        kind(removed.of("eager-page", name))
        assert quotas_of(console_broker, name) == {}


def test_records_of_each_kind_are_written(page: ConsolePage, console_broker: ConsoleBroker) -> None:
    make_topic(console_broker, "kinds")
    page.open("records/kinds")
    page.unfold("Write a record")
    end_offset = 0
    for kind, typed, value in (
        ("text", "täxt 'with' \"quotes\" and $HOME", "täxt 'with' \"quotes\" and $HOME".encode()),
        ("json", '{"a": [1, null]}', b'{"a": [1, null]}'),
        ("hex", "00 ff 10", b"\x00\xff\x10"),
        ("null", None, None),
    ):
        page.fill("key", "k", "details")
        page.fill("kind", kind, "details")
        page.fill("value", typed or "", "details")
        page.fill("headers", "trace=4bf9\nempty=", "details")
        lines = lines_below(page, "details")
        page.press("Write")
        at = f"at offset {end_offset}."
        page.until(lambda at=at: at in page.find("#notice").text)  # type: ignore[misc]
        lines.run_curl()
        lines.run_python()
        for message in consumed(console_broker, "kinds", end_offset, 3):
            assert (message.key(), message.value()) == (b"k", value)
            assert message.headers() == [("trace", b"4bf9"), ("empty", b"")]
        end_offset += 3


def test_faults_are_removed(page: ConsolePage, console_broker: ConsoleBroker) -> None:
    def add() -> int:
        body = {"api": "Produce", "client_id": "unlucky", "error": "NOT_LEADER_OR_FOLLOWER"}
        answer = requests.post(f"{console_broker.url}/faults", json=body, timeout=WAIT_S)
        return int(answer.json()["id"])

    by_page, by_curl, by_python = (add() for _ in range(3))
    page.open("faults")
    page.until(lambda: len(page.rows("Faults")) == 3)
    page.press("Remove")
    page.until(lambda: len(page.rows("Faults")) == 2)
    lines = last_lines(page)
    lines.of(f"/faults/{by_page}", f"/faults/{by_curl}").run_curl()
    assert [fault["id"] for fault in status_of(console_broker, "/faults")] == [by_python]
    lines.of(f"/faults/{by_page}", f"/faults/{by_python}").run_python()
    assert status_of(console_broker, "/faults") == []
    write(console_broker, "orders", b"v", client_id="unlucky")


def test_hanging_transactions_are_aborted(page: ConsolePage, console_broker: ConsoleBroker) -> None:
    names = ("stuck-page", "stuck-curl", "stuck-python")
    for name in names:
        make_topic(console_broker, name)
        hang(console_broker, name, producer_id=88_000)
        write(console_broker, name, b"behind")
    page.open("transactions")
    page.until(lambda: len(page.rows("Hanging transactions")) == 3)
    place = [row[0] for row in page.rows("Hanging transactions")].index("stuck-page")
    page.find_all("section button.danger")[place].click()
    page.press("Abort", "dialog")
    page.until(lambda: len(page.rows("Hanging transactions")) == 2)
    lines = last_lines(page)
    lines.of("stuck-page", "stuck-curl").run_curl()
    lines.of("stuck-page", "stuck-python").run_python()
    page.until(lambda: page.rows("Hanging transactions") == [])
    for name in names:
        (message,) = consumed(console_broker, name, 0, 1)
        assert message.value() == b"behind", "a reader of committed records passes"


def test_the_broker_of_the_page_becomes_the_controller(
    watch: BrowserWatch, three_brokers: ConsoleBroker
) -> None:
    def controller() -> int:
        return int(status_of(three_brokers, "/cluster")["controller"])

    def is_controller_again() -> bool:
        cluster = admin.describe_cluster().result(WAIT_S)
        return cluster.controller.id == controller() == 0

    def elect_another() -> None:
        url = three_brokers.others[0]
        requests.post(f"{url}/cluster/controller", json={}, timeout=WAIT_S).raise_for_status()
        page.until(lambda: controller() == 1)

    admin = admin_of(three_brokers)
    page = watch.page(three_brokers.url)
    page.open("cluster")
    elect_another()
    page.press("Make this broker the controller")
    page.until(is_controller_again)
    lines = last_lines(page)
    for run in (lines.run_curl, lines.run_python):
        elect_another()
        run()
        page.until(is_controller_again)


def test_a_reset_takes_the_clock_back(
    watch: BrowserWatch, start: Callable[..., ConsoleBroker]
) -> None:
    broker = start()
    page = watch.page(broker.url)

    def move_on() -> None:
        requests.post(f"{broker.url}/clock", json={"days": 2}, timeout=WAIT_S).raise_for_status()
        make_topic(broker, "of-the-future")
        write(broker, "of-the-future", b"v")

    def is_as_at_the_start() -> bool:
        ahead_ms = status_of(broker, "/clock")["ahead_ms"]
        return ahead_ms == 0 and "of-the-future" not in names_of_topics(broker)

    page.open("clock")
    move_on()
    page.until(lambda: "2 d" in page.find(".facts").text)
    page.press("Reset the broker …")
    page.until(lambda: page.find("dialog").is_displayed())
    lines = lines_below(page, "dialog")
    page.press("Reset", "dialog")
    page.until(is_as_at_the_start)
    page.until(lambda: "nothing" in page.find(".facts").text)
    for run in (lines.run_curl, lines.run_python):
        move_on()
        run()
        page.until(is_as_at_the_start)
