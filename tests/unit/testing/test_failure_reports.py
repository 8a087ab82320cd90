"""`--kafka-report DIR` as users have it: pytest runs small suites in processes of their own."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

from minibroker.testing import Broker, Proxy

if TYPE_CHECKING:
    from pathlib import Path

pytest_plugins = ["pytester"]
OPTIONS = (
    *("-p", "no:cacheprovider", "-W", "error"),
    *("-o", "asyncio_default_fixture_loop_scope=function"),
)
CLIENTS = """
    import pytest
    from confluent_kafka import Consumer, Producer
    from minibroker.testing import Broker, Cluster

    def write(address, topic, *values, client_id="shop"):
        settings = {"bootstrap.servers": address, "client.id": client_id, "log_level": 0}
        producer = Producer(settings)
        for value in values:
            producer.produce(topic, value, key="k")
        assert producer.flush(60) == 0
"""


@pytest.fixture(autouse=True)
def _not_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)


def text_of(page: str) -> str:
    """Return the words of a page, without markup, style and scripts."""
    body = re.sub(r"<(style|script|noscript)\b.*?</\1>", "", page, flags=re.DOTALL)
    return unescape(re.sub(r"<[^>]*>", " ", body))


def rows_of(page: str, caption: str) -> list[list[str]]:
    """Return the cells of the table with this caption."""
    tables = re.findall(r"<table[^>]*><caption>(.*?)</caption>(.*?)</table>", page, re.DOTALL)
    (table,) = [body for title, body in tables if title == caption]
    rows = re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in rows]
    return [[unescape(cell) for cell in row] for row in cells if row]


def requests_of(page: str) -> list[list[Any]]:
    """Return the rows of the conversation."""
    (data,) = re.findall(r'id="talk-data">(.*?)</script>', page, re.DOTALL)
    rows: list[list[Any]] = json.loads(data)
    return rows


def pages_in(directory: Path) -> dict[str, str]:
    """Return name of a test → its page."""
    pages = {}
    for path in sorted(directory.glob("*.html")):
        name = re.sub(r"^.*\.py-|-[0-9a-f]{6}\.html$", "", path.name)
        pages[name] = path.read_text()
    return pages


def test_each_test_that_fails_leaves_a_page_and_others_leave_none(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        CLIENTS
        + """
    @pytest.mark.kafka(topics=["orders:2:retention.ms=60000"])
    def test_orders(kafka):
        with kafka.faults.add("Produce", error="NOT_LEADER_OR_FOLLOWER", times=1, topic="orders"):
            write(kafka.bootstrap, "orders", "first", "second")
        settings = {"bootstrap.servers": kafka.bootstrap, "group.id": "billing"}
        consumer = Consumer({**settings, "client.id": "billing-1", "log_level": 0,
                             "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        (message,) = consumer.consume(1, 60)
        consumer.commit(message, asynchronous=False)
        assert kafka.lag("billing") == {}, "the lag of billing"

    @pytest.mark.parametrize("number", [1, 2])
    def test_other(kafka, number):
        write(kafka.bootstrap, "t", f"value {number}")
        assert number == 1

    def test_fault_unused(kafka):
        kafka.faults.add("Fetch", delay_ms=5)

    def test_without_a_broker():
        assert False

    @pytest.fixture
    def half(kafka):
        kafka.produce("half", "v")
        raise OSError("the fixture failed")

    def test_never_begins(half):
        pass
    """
    )
    result = pytester.runpytest_subprocess(
        *OPTIONS, "-n2", "--kafka-report=out", "--junitxml=junit.xml", "--html=html/index.html"
    )
    result.assert_outcomes(passed=1, failed=4, errors=1)
    pages = pages_in(pytester.path / "out")
    assert list(pages) == ["test_fault_unused", "test_never_begins", "test_orders", "test_other-2"]
    result.stdout.fnmatch_lines(["*- minibroker report -*", f"{pytester.path}/out/*test_o*.html"])

    _assert_orders_are_on(pages["test_orders"])
    assert "value 2" in text_of(pages["test_other-2"])
    assert "value 1" not in text_of(pages["test_other-2"])
    assert rows_of(pages["test_fault_unused"], "Faults") == [["Fetch", "delay 5 ms", "0", "active"]]
    assert "The setup failed at" in text_of(pages["test_never_begins"])
    assert "OSError: the fixture failed" in text_of(pages["test_never_begins"])

    junit = ElementTree.parse(pytester.path / "junit.xml")
    properties = {
        case.get("name"): item.get("value")
        for case in junit.iter("testcase")
        for item in case.iter("property")
    }
    assert properties.keys() == {
        "test_fault_unused",
        "test_never_begins",
        "test_orders",
        "test_other[2]",
    }
    assert all(str(path).startswith("out/test_") for path in properties.values())
    assert all((pytester.path / str(path)).exists() for path in properties.values())
    html = unescape((pytester.path / "html" / "index.html").read_text())
    files = {f"../out/{path.name}" for path in pytester.path.glob("out/*.html")}
    assert set(re.findall(r"<iframe src=.?\"(.*?\.html)", html)) == files


def _assert_orders_are_on(page: str) -> None:
    words = text_of(page)
    assert "AssertionError: the lag of billing" in words
    assert "retention.ms=60000" in words
    records = rows_of(page, "Records")
    assert sorted((row[3], row[4]) for row in records) == [("k", "first"), ("k", "second")]
    assert rows_of(page, "Groups") == [["billing", "classic", "Stable", "1", "1"]]
    (member,) = rows_of(page, "Members")
    assert member[:3] == ["billing", "billing-1", "–"]
    assert member[4] == "orders-0, orders-1"
    (offset,) = rows_of(page, "Committed offsets")
    assert offset[:2] + offset[3:] == ["billing", "orders", "1", "2", "1", "billing-1"]
    assert rows_of(page, "Faults") == [
        ["Produce, topic=orders, times=1", "error NOT_LEADER_OR_FOLLOWER", "1", "removed"]
    ]
    requests = requests_of(page)
    produced = [row for row in requests if row[4] == "Produce"]
    assert [(row[13], row[14]) for row in produced] == [
        ("NOT_LEADER_OR_FOLLOWER", "error NOT_LEADER_OR_FOLLOWER"),
        (None, None),
    ]
    assert "orders-" in produced[1][12]
    assert {row[7] for row in requests} == {"shop", "billing-1"}
    assert requests == sorted(requests, key=lambda row: row[8])


def test_brokers_of_blocks_and_several_brokers_are_on_the_page(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        CLIENTS
        + """
    def test_of_a_block():
        with Broker(topics=["t"], users={"alice": "pass-of-alice"}) as broker:
            broker.produce("t", ["in the block"])
            assert broker.client_config("confluent-kafka", user="alice") == {}

    def test_of_two(kafka, kafka_broker):
        write(kafka.bootstrap, "a", "in the first", client_id="one")
        write(kafka_broker.bootstrap, "b", "in the second", client_id="two")
        assert False

    def test_of_a_cluster():
        with Cluster(2, topics=["t:2"]) as cluster:
            cluster.broker(0).produce("t", "v", partition=0) if cluster.leader("t") == 0 else None
            cluster.kill(1)
            raise RuntimeError("after the kill")

    @pytest.mark.asyncio
    async def test_of_an_async_block():
        async with Broker() as broker:
            broker.produce("later", "in an async block")
            raise RuntimeError("async")

    def test_of_an_own_fixture(own):
        own.produce("t", "in a fixture of the suite")
        assert False

    @pytest.fixture
    def own():
        with Broker() as broker:
            yield broker

    @pytest.fixture(scope="module", autouse=True)
    def unused():
        with Broker(topics=["unused-topic"]) as broker:
            broker.produce("unused-topic", "v")
            yield broker
    """
    )
    result = pytester.runpytest_subprocess(*OPTIONS, "--minibroker-kafka-report=out")
    result.assert_outcomes(failed=5)
    pages = pages_in(pytester.path / "out")
    assert list(pages) == [
        "test_of_a_block",
        "test_of_a_cluster",
        "test_of_an_async_block",
        "test_of_an_own_fixture",
        "test_of_two",
    ]
    assert "in the block" in text_of(pages["test_of_a_block"])
    assert "pass-of-alice" not in pages["test_of_a_block"]
    assert "•••" in text_of(pages["test_of_a_block"])
    assert "in an async block" in text_of(pages["test_of_an_async_block"])
    assert "in a fixture of the suite" in text_of(pages["test_of_an_own_fixture"])
    cluster = pages["test_of_a_cluster"]
    assert "Cluster of 2 brokers at" in text_of(cluster)
    states = {row[0]: row[2] for row in rows_of(cluster, "Brokers")}
    assert states == {"0": "running", "1": "killed"}
    two = text_of(pages["test_of_two"])
    assert two.index("in the first") < two.index("in the second")
    assert {row[7] for row in requests_of(pages["test_of_two"])} == {"one", "two"}
    # The broker of the module was started by the first test's fixtures, and used by no other.
    assert ["unused-topic" in text_of(page) for page in pages.values()] == [True, *[False] * 4]


def test_texts_of_clients_are_no_markup_and_no_control_characters(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        CLIENTS
        + r"""
    MARKUP = "</pre></script><script>alert(1)</script><img src=x onerror=alert(1)>"

    @pytest.mark.parametrize("name", [MARKUP])
    def test_hostile(kafka, name):
        write(kafka.bootstrap, "t", MARKUP, b"\xff\xfe", "bell \x07", client_id=MARKUP)
        kafka.produce("t", "v", key=MARKUP, headers={MARKUP: MARKUP})
        consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": MARKUP})
        consumer.commit(offsets=[__import__("confluent_kafka").TopicPartition("t", 0, 1)],
                        asynchronous=False)
        raise ValueError(MARKUP)
    """
    )
    pytester.runpytest_subprocess(*OPTIONS, "--kafka-report=out").assert_outcomes(failed=1)
    (page,) = pages_in(pytester.path / "out").values()
    assert "<img" not in page
    assert page.count("<script") == page.count("</script>") == 2
    values = [row[4] for row in rows_of(page, "Records")]
    assert values[1:3] == ["0xfffe", "bell \\x07"]
    assert values[0].startswith("</pre></script><script>")


def test_a_page_of_an_earlier_run_goes_when_its_test_passes(pytester: pytest.Pytester) -> None:
    suite = "def test_it(kafka):\n    assert {}\n"
    path = pytester.makepyfile(suite.format("kafka.topics"))
    arguments = (*OPTIONS, "--kafka-report=out")
    pytester.runpytest_subprocess(*arguments).assert_outcomes(failed=1)
    assert list(pages_in(pytester.path / "out")) == ["test_it"]
    path.write_text(suite.format("not kafka.topics"))
    pytester.runpytest_subprocess(*arguments).assert_outcomes(passed=1)
    assert pages_in(pytester.path / "out") == {}


def test_a_page_that_cannot_be_written_is_a_sentence(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from pathlib import Path

        def test_it(kafka):
            Path("out").rmdir()
            assert False
        """
    )
    result = pytester.runpytest_subprocess(*OPTIONS, "--kafka-report=out")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*test_it-*.html cannot be written: No such file or directory"])


def test_a_file_in_the_place_of_the_directory_is_wrong_usage(pytester: pytest.Pytester) -> None:
    pytester.path.joinpath("out").write_text("a file")
    result = pytester.runpytest_subprocess(*OPTIONS, "--kafka-report=out")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --kafka-report=*/out: expected a directory*"])


def test_nothing_is_loaded_without_the_option(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_it(kafka):
            loaded = {"jinja2", "minibroker.trace.subject", "minibroker.rig.snapshot"}
            assert not loaded & sys.modules.keys()
        """
    )
    pytester.runpytest_subprocess(*OPTIONS, "-p", "no:html").assert_outcomes(passed=1)


def test_a_kafka_that_runs_is_asked_over_the_wire(
    pytester: pytest.Pytester, kafka_broker: Broker
) -> None:
    pytester.makepyfile(
        CLIENTS
        + """
    @pytest.mark.kafka(topics=["orders:2:retention.ms=60000"])
    def test_orders(kafka, kafka_topic):
        with kafka.faults.add("Produce", delay_ms=1, times=1):
            write(kafka.bootstrap, "orders", *(f"value {number}" for number in range(120)))
        consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "billing",
                             "client.id": "billing-1", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        consumer.commit(consumer.consume(1, 60)[0], asynchronous=False)
        assert False
    """
    )
    kafka_broker.create_topic("of-others")
    result = pytester.runpytest_subprocess(
        *OPTIONS, f"--kafka={kafka_broker.bootstrap}", "--kafka-report=out"
    )
    result.assert_outcomes(failed=1)
    (page,) = pages_in(pytester.path / "out").values()
    words = text_of(page)
    assert f"Kafka {kafka_broker.bootstrap} behind a proxy" in words
    assert rows_of(page, "Faults") == [["Produce, times=1", "delay 1 ms", "1", "removed"]]
    requests = requests_of(page)
    assert {row[7] for row in requests} == {"shop", "billing-1"}
    assert {row[3] for row in requests} == {kafka_broker.bootstrap}
    assert "delay 1 ms" in [row[14] for row in requests if row[4] == "Produce"]
    assert "retention.ms=60000" in words
    assert words.index("orders") < words.index("of-others")
    records = rows_of(page, "The last 50 records")
    assert [row[4] for row in records] == [f"value {number}" for number in range(70, 120)]
    assert rows_of(page, "Groups") == [["billing", "classic", "Stable", "1", "119"]]


def test_a_proxy_of_a_block_shows_the_requests_it_saw(
    pytester: pytest.Pytester, kafka_broker: Broker
) -> None:
    pytester.makepyfile(
        CLIENTS
        + """
    from minibroker.testing import Proxy

    def test_it():
        with Proxy("KAFKA") as proxy:
            write(proxy.bootstrap, "t", "v")
            raise ValueError
    """.replace("KAFKA", kafka_broker.bootstrap)
    )
    pytester.runpytest_subprocess(*OPTIONS, "--kafka-report=out").assert_outcomes(failed=1)
    (page,) = pages_in(pytester.path / "out").values()
    words = text_of(page)
    assert "Proxy at 127.0.0.1:" in words
    assert f"for {kafka_broker.bootstrap}" in words
    assert {row[4] for row in requests_of(page)} >= {"Metadata", "Produce"}


def test_passwords_of_a_proxy_are_secrets() -> None:
    jaas = (
        'org.apache.kafka.common.security.plain.PlainLoginModule required username="u"'
        ' password="pass-of-u";'
    )
    login = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}
    assert Proxy("127.0.0.1:9", login).secrets() == {"pass-of-u"}
    login = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "v"}
    login["sasl.password"] = "pass-of-v"
    assert Proxy("127.0.0.1:9", login).secrets() == {"pass-of-v"}
