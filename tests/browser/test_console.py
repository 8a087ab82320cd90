"""The console in use: a person at a browser, and real clients at the broker."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from urllib.parse import quote

import requests
from confluent_kafka import Producer
from selenium.webdriver.common.keys import Keys

from tests.browser.clients import WAIT_S, committed, make_topic, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.browser.chromium import BrowserWatch, ConsolePage
    from tests.browser.conftest import ConsoleBroker

MARKUP = '<img src=x onerror="document.title=1;alert(1)">'
VIEWS = {
    "topics": "Topics",
    "topics/orders": "orders",
    "records": "Records",
    "records/orders": "Records of orders",
    "groups": "Groups",
    "transactions": "Transactions",
    "clients": "Connections",
    "quotas": "Quotas",
    "requests": "Requests",
    "metrics": "Metrics",
    "cluster": "Brokers",
    "faults": "Faults",
    "clock": "Clock",
}


def test_the_rail_leads_to_every_view_that_the_server_offers(page: ConsolePage) -> None:
    page.open("topics")
    offered = {anchor.get_attribute("data-view") for anchor in page.find_all("#nav a")}
    assert offered == {view.partition("/")[0] for view in VIEWS}
    for view, title in VIEWS.items():
        page.go(view)
        page.until(lambda title=title: page.find("h1").text == title)  # type: ignore[misc]
        page.until(lambda: page.find("main table, main svg, main form") is not None)
        assert not [alert.text for alert in page.find_all("[role=alert]") if alert.is_displayed()]
    page.driver.back()
    page.until(lambda: page.find("h1").text == "Faults")


def test_a_view_that_there_is_not_says_so(page: ConsolePage) -> None:
    for view in ("topcis/orders", "constructor"):
        page.open(view)
        title = f"There is no view {view.partition('/')[0]}"
        page.until(lambda title=title: page.find("h1").text == title)  # type: ignore[misc]
        assert not page.find_all("#nav a[aria-current]")


def test_a_view_of_a_topic_that_is_not_there_says_so_until_it_comes(
    page: ConsolePage, console_broker: ConsoleBroker, watch: BrowserWatch
) -> None:
    def tags_on_page(tags: str) -> set[str]:
        elements = page.find_all(f"main :is({tags})")
        return {element.tag_name for element in elements if element.is_displayed()}

    watch.expect(404, "/topics/later")
    page.open("topics/later")
    page.until(lambda: tags_on_page("h1, h2, p, table, button, form, details") == {"h1", "p"})
    assert page.find("main .alert").text == "there is no topic 'later'"
    make_topic(console_broker, "later", **{"retention.ms": "1000000"})
    page.until(lambda: page.rows("Settings")[0][:2] == ["retention.ms", "1000000"])
    assert {"table", "button", "form"} <= tags_on_page("table, button, form, p.alert")
    assert not page.find("main .alert").is_displayed()


def test_a_view_takes_the_focus_and_a_keyboard_reaches_it(page: ConsolePage) -> None:
    page.driver.get("about:blank")
    page.open("topics")
    page.driver.switch_to.active_element.send_keys(Keys.TAB)
    assert page.driver.switch_to.active_element.text == "Skip to the content"
    page.find("#nav a[data-view=groups]").send_keys(Keys.ENTER)
    page.until(lambda: page.find("h1").text == "Groups")
    page.until(lambda: page.driver.switch_to.active_element.tag_name == "h1")
    assert page.driver.title == "Groups · minibroker"


def test_the_focus_stays_on_a_row_that_changes(
    page: ConsolePage, console_broker: ConsoleBroker
) -> None:
    make_topic(console_broker, "watched", **{"retention.ms": "1000000"})
    page.open("topics/watched")
    page.press("Change …")
    page.fill("value", "2000000", "dialog")
    page.press("Set", "dialog")
    page.until(lambda: page.rows("Settings")[0][1] == "2000000")
    assert page.driver.switch_to.active_element.text == "Change …"


def test_the_tail_shows_records_as_a_client_writes_them(
    page: ConsolePage, console_broker: ConsoleBroker
) -> None:
    make_topic(console_broker, "followed")
    page.open("records/followed?live=true")
    page.until(lambda: "Waiting for records" in page.words)
    for number in range(3):
        write(console_broker, "followed", b"v%d" % number)
        page.until(lambda number=number: page.rows("Records")[0][4] == f"v{number}")  # type: ignore[misc]
    assert [row[4] for row in page.rows("Records")] == ["v2", "v1", "v0"]


def test_a_tail_keeps_the_newest_rows_and_counts_what_it_leaves_out(
    page: ConsolePage, console_broker: ConsoleBroker
) -> None:
    make_topic(console_broker, "flooded")
    page.open("records/flooded?live=true")
    page.until(lambda: "Waiting for records" in page.words)
    producer = Producer({"bootstrap.servers": console_broker.address})
    for number in range(20_000):
        producer.produce("flooded", b"%d" % number)
    assert producer.flush(WAIT_S) == 0
    page.until(lambda: "20,000" in _total(page.find(".state").text))
    assert len(page.rows("Records")) <= 200


def _total(words: str) -> str:
    """Return how many records were shown and left out, as one number."""
    parts = words.replace(",", "").split()
    return f"{int(parts[0]) + int(parts[2]):,}" if "left" in parts else ""


def test_the_plot_of_a_lag_moves_with_it(page: ConsolePage, console_broker: ConsoleBroker) -> None:
    make_topic(console_broker, "lagging")
    with committed(console_broker, "slow-group", "lagging", 0):
        page.open("groups/slow-group")
        page.until(lambda: page.find(".plot .now").text == "0")
        old_points = page.find(".plot polyline").get_attribute("points")
        for _ in range(7):
            write(console_broker, "lagging", b"v")
        page.until(lambda: page.find(".plot .now").text == "7")
        assert page.find(".plot polyline").get_attribute("points") != old_points
        page.until(lambda: page.rows("Offsets")[0][2:5] == ["0", "7", "7"])


def test_requests_come_live_and_a_conversation_is_a_diagram(
    page: ConsolePage, console_broker: ConsoleBroker
) -> None:
    page.open("requests?client_id=speaker")
    write(console_broker, "orders", b"v", client_id="speaker")
    page.until(lambda: any("Produce" in row[1] for row in page.rows("Requests")))
    page.click("td a[title*=diagram]")
    page.until(lambda: "Produce" in (page.find(".diagram svg:not(.ends)").text or ""))


def test_a_request_that_waits_is_shown_until_its_answer(
    page: ConsolePage, console_broker: ConsoleBroker
) -> None:
    rule = {"api": "Produce", "client_id": "patient", "hold": True}
    fault = requests.post(f"{console_broker.url}/faults", json=rule, timeout=WAIT_S).json()
    page.open("requests?client_id=patient")
    with ThreadPoolExecutor(1) as pool:
        write_call = pool.submit(write, console_broker, "orders", b"v", client_id="patient")
        page.until(lambda: any("Produce" in row[1] for row in page.rows("Waiting for an answer")))
        assert not any("Produce" in row[1] for row in page.rows("Requests"))
        requests.delete(f"{console_broker.url}/faults/{fault['id']}", timeout=WAIT_S)
        write_call.result(WAIT_S)
    page.until(lambda: any("Produce" in row[1] for row in page.rows("Requests")))
    page.until(lambda: page.rows("Waiting for an answer") == [])


def test_names_and_values_with_markup_are_text(
    page: ConsolePage, console_broker: ConsoleBroker
) -> None:
    make_topic(console_broker, "hostile")
    write(
        console_broker,
        "hostile",
        f"{MARKUP}\u202e\u0000".encode(),
        key=b"\xff\xfe<b>",
        headers=[(f"<b>{MARKUP}", b"<i>\xff"), ("plain", MARKUP.encode())],
    )
    with committed(console_broker, MARKUP, "hostile", 0, **{"client.id": MARKUP}):
        page.open("records/hostile")
        page.until(lambda: MARKUP in page.rows("Records")[0][4])
        assert "\\u202e" in page.rows("Records")[0][4]
        page.click("td button[aria-expanded]")
        page.until(lambda: page.rows("Headers")[1] == ["plain", MARKUP])
        for view in ("requests", "groups", "clients"):
            page.go(view)
            page.until(lambda: MARKUP in page.words)
            assert page.find_all("img, b, i, main script") == []
        page.go("groups/" + quote(MARKUP, safe=""))
        page.until(lambda: page.find("h1").text == MARKUP)
        page.until(lambda: page.rows("Offsets")[0][0] == "hostile")
    assert page.find_all("img, b, i, main script") == []
    assert page.driver.title.startswith(MARKUP)


def test_a_large_value_is_cut_and_comes_whole_as_a_download(
    page: ConsolePage, console_broker: ConsoleBroker, downloads: Path
) -> None:
    value = b"0123456789abcdef" * (10 << 16)
    make_topic(console_broker, "large", **{"max.message.bytes": "12000000"})
    write(console_broker, "large", value)
    page.open("records/large")
    page.until(lambda: page.rows("Records")[0][5] == "10 MiB")
    page.click("td button[aria-expanded]")
    page.until(lambda: "of 10 MiB" in page.find(".record .badge").text)
    page.press("Download")
    file = downloads / "large-0-0.value"
    page.until(lambda: file.exists() and file.stat().st_size == len(value))
    assert file.read_bytes() == value


def test_the_page_asks_for_a_token_and_one_that_reads_changes_nothing(
    watch: BrowserWatch, start: Callable[..., ConsoleBroker], tmp_path: Path
) -> None:
    (tmp_path / "full").write_text("full-secret")
    (tmp_path / "read").write_text("read-secret")
    tokens = [f"--control-token=@{tmp_path / 'full'}", f"--control-read-token=@{tmp_path / 'read'}"]
    page = watch.page(start("--topic", "orders", *tokens).url)
    watch.expect(401, "/")
    page.driver.get(page.url)
    page.until(lambda: "asks for a token" in page.find("dialog").text)
    page.fill("token", "wrong", "dialog")
    page.press("Continue")
    page.until(lambda: "not the right one" in page.find("dialog").text)
    page.fill("token", "read-secret", "dialog")
    page.press("Continue")
    page.until(lambda: page.rows("Topics")[0][0] == "orders")
    assert "this token only reads" in page.find("#foot").text
    assert "Create a topic" not in page.words
    page.go("clock")
    page.until(lambda: page.find("h1").text == "Clock" and "Broker's time" in page.words)
    assert "+ 10 minutes" not in page.words
    page.press("Forget the token")
    page.until(lambda: "asks for a token" in page.find("dialog").text)
    page.fill("token", "full-secret", "dialog")
    page.press("Continue")
    page.until(lambda: page.find("h1").text == "Clock")
    page.until(lambda: page.button("+ 10 minutes") is not None)
    page.unfold("The same from a shell or Python")
    assert "$MINIBROKER_CONTROL_TOKEN" in page.words
    assert "full-secret" not in str(page.driver.page_source) + page.driver.current_url
    page.driver.execute_script("sessionStorage.clear()")


def test_a_page_that_only_reads_has_no_actions(
    watch: BrowserWatch, start: Callable[..., ConsoleBroker]
) -> None:
    page = watch.page(start("--topic", "orders", "--console-read-only").url)
    for view in ("topics", "records/orders", "faults", "clock", "quotas", "cluster"):
        page.open(view)
        page.until(lambda: page.find("main table, main svg, main form") is not None)
        assert page.find_all("main button.main:not([name=show]), main button.danger") == []
    assert "--console-read-only" in page.find("#foot").text
