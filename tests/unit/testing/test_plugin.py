"""The fixtures as users have them: pytest runs small suites in processes of their own."""

from __future__ import annotations

import pytest

from minibroker.rig.group_views import GroupMember
from minibroker.rig.request_log import SeenRequest
from minibroker.rig.topic_records import TopicRecord
from minibroker.testing.report import TEXT_MAX, group_lines, record_lines, request_lines, table

pytest_plugins = ["pytester"]
LOOP_SCOPE = "asyncio_default_fixture_loop_scope=function"
# As if they were alone; what pytest-asyncio says of a missing option is not ours.
OPTIONS = ("-p", "no:cacheprovider", "-W", "error", "-o", LOOP_SCOPE)


@pytest.fixture(autouse=True)
def _not_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """In CI pytest prints whole messages in its summary, too: what is counted is there twice."""
    monkeypatch.delenv("CI", raising=False)


def test_every_test_finds_the_broker_of_the_run_as_it_was_at_the_start(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeini(
        """
        [pytest]
        minibroker_topics =
            orders:3
        minibroker_config =
            message.max.bytes=2000
        """
    )
    pytester.makepyfile(
        """
        import pytest
        from minibroker.kafka.errors import KafkaError

        addresses = set()

        @pytest.mark.parametrize("again", [1, 2])
        def test_clean(kafka, again):
            assert kafka.topics == {"orders": 3}
            assert kafka.records("orders") == []
            kafka.produce("orders", b"v")
            kafka.create_topic("mine")
            addresses.add(kafka.bootstrap)
            assert len(addresses) == 1

        def test_settings(kafka):
            with pytest.raises(KafkaError, match="TOO_LARGE"):
                kafka.produce("orders", b"v" * 3000)

        def test_topics_of_their_own(kafka, kafka_topic):
            assert kafka.topics == {"orders": 3, kafka_topic: 1}
            assert kafka_topic.startswith("test_topics_of_their_own-")
        """
    )
    pytester.runpytest_subprocess(*OPTIONS).assert_outcomes(passed=4)


def test_a_broker_for_one_test_begins_as_its_marker_says(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.kafka(topics=["a:2"], config={"auto.create.topics.enable": False})
        def test_marked(kafka_broker):
            assert kafka_broker.topics == {"a": 2}

        def test_plain(kafka_broker, kafka):
            assert kafka_broker.topics == {}
            assert kafka_broker.bootstrap != kafka.bootstrap

        @pytest.mark.kafka(topic="a")
        def test_wrong(kafka_broker):
            pass
        """
    )
    result = pytester.runpytest_subprocess(*OPTIONS)
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(
        ["*takes topics, config, security, users, acls, registry and version, not ?'topic'?*"]
    )


def test_async_tests_use_the_same_fixtures(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

        @pytest.mark.asyncio
        async def test_async(kafka, kafka_topic):
            async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap) as producer:
                await producer.send_and_wait(kafka_topic, b"v")
            async with AIOKafkaConsumer(
                kafka_topic,
                bootstrap_servers=kafka.bootstrap,
                group_id="g",
                auto_offset_reset="earliest",
            ) as consumer:
                assert (await consumer.getone()).value == b"v"
            assert [one.value for one in await kafka.wait_for_async(kafka_topic, 1)] == [b"v"]
        """
    )
    pytester.runpytest_subprocess(*OPTIONS).assert_outcomes(passed=1)


def test_a_call_that_fails_is_shown_at_the_line_of_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        from minibroker.testing import Broker

        def test_wait(kafka, kafka_topic):
            kafka.wait_for(kafka_topic, 1, timeout_s=0.01)

        @pytest.mark.asyncio
        async def test_async_wait(kafka, kafka_topic):
            await kafka.wait_for_async(kafka_topic, 1, timeout_s=0.01)

        def test_group(kafka):
            kafka.wait_for_group("g", members=1, timeout_s=0.01)

        def test_answer(kafka_cluster):
            kafka_cluster.create_topic("bad name")

        def test_fault_of_minibroker(kafka, monkeypatch):
            monkeypatch.setattr("minibroker.rig.inspector.partition_of", None)
            kafka.produce("orders", "v")
        """
    )
    result = pytester.runpytest_subprocess(*OPTIONS)
    result.assert_outcomes(failed=5)
    output, _, of_minibroker = result.stdout.str().partition("_ test_fault_of_minibroker _")
    assert output.count("E       TimeoutError: waited ") == 3
    assert "E       minibroker.kafka.errors.KafkaError: INVALID_TOPIC_EXCEPTION: " in output
    assert not [line for line in output.splitlines() if "/minibroker/" in line or "futures" in line]
    assert "/minibroker/rig/inspector.py:" in of_minibroker


def test_a_test_that_fails_shows_what_the_broker_saw(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from confluent_kafka import Producer

        def test_fails(kafka, kafka_topic):
            producer = Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
            producer.produce(kafka_topic, b"v")
            assert producer.flush(60) == 0
            assert kafka.records(kafka_topic) == []
        """
    )
    result = pytester.runpytest_subprocess(*OPTIONS)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*minibroker at 127.0.0.1:*",
            "time * client * request * answer * ms",
            "* rdkafka * Produce v* ok *",
            "partition * offset * time * key * value",
            "test_fails-1-0 * 0 * null * v",
        ]
    )


def test_the_marker_is_honoured_or_refused(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.kafka(topics=["orders:3"])
        def test_topics_of_the_shared_broker(kafka, kafka_topic):
            assert kafka.topics == {"orders": 3, kafka_topic: 1}

        def test_gone_again(kafka):
            assert kafka.topics == {}

        @pytest.mark.kafka(config={"message.max.bytes": 2000})
        def test_refused(kafka):
            pass

        @pytest.mark.kafka(topics=["mine"], config={"message.max.bytes": 2000})
        def test_of_its_own(kafka, kafka_broker):
            assert (kafka.topics, kafka_broker.topics) == ({}, {"mine": 1})
        """
    )
    result = pytester.runpytest_subprocess(*OPTIONS)
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["*config=*is for kafka_broker*minibroker_config*"])


def test_brokers_that_last_keep_what_tests_write(pytester: pytest.Pytester) -> None:
    suite = """
        import pytest

        pytestmark = pytest.mark.kafka(topics=["of-module"], config={"message.max.bytes": 2000})

        @pytest.fixture(scope="module")
        def filled(kafka_module, kafka_session):
            kafka_module.produce("of-module", "a")
            kafka_session.produce("of-run", "a")
            return kafka_module

        @pytest.mark.parametrize("again", [1, 2])
        def test_lasting(filled, kafka_module, kafka_session, kafka_broker, again):
            assert filled is kafka_module
            assert [record.text for record in filled.records("of-module")] == ["a"]
            assert len(kafka_session.records("of-run")) == MODULE
            brokers = (kafka_module, kafka_session, kafka_broker)
            assert len({broker.bootstrap for broker in brokers}) == 3
        """
    pytester.makepyfile(test_a=suite.replace("MODULE", "1"), test_b=suite.replace("MODULE", "2"))
    pytester.runpytest_subprocess(*OPTIONS).assert_outcomes(passed=4)


def test_a_fault_that_meets_nothing_fails_its_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        def test_missed(kafka):
            with kafka.faults.add("Produce", error="NOT_LEADER_OR_FOLLOWER"):
                pass

        def test_may_miss(kafka):
            kafka.faults.add("Produce", error="NOT_LEADER_OR_FOLLOWER", may_miss=True)

        def test_of_the_broker(kafka):
            with kafka.faults.add(broker="disk_full"):
                pass

        def test_missed_in_a_broker_of_its_own(kafka_broker):
            kafka_broker.faults.add("Fetch", delay_ms=1)

        def test_fails_for_another_reason(kafka):
            kafka.faults.add("Fetch", delay_ms=1)
            assert kafka.topics == {"a": 1}

        def test_missed_in_a_broker_that_lasts(kafka_module):
            kafka_module.faults.add("Metadata", delay_ms=1)

        def test_after_it(kafka_module):
            pass

        def test_missed_in_a_cluster(kafka_cluster):
            with kafka_cluster.hold_metadata(1):
                kafka_cluster.make_controller(2)
        """
    )
    result = pytester.runpytest_subprocess(*OPTIONS)
    result.assert_outcomes(passed=3, failed=5)
    result.stdout.fnmatch_lines(
        ["Fault(Produce, 0 hits): never met a request*", "Fault(Fetch, 0 hits): never met*"]
    )
    result.stdout.fnmatch_lines(["Fault(broker='stale_metadata', 0 hits): never met a request*"])
    assert str(result.stdout).count("never met a request") == 4
    assert str(result.stdout).count("--- minibroker at ") == 5  # those that the test used


def test_a_setting_without_a_value_is_told(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nminibroker_config = message.max.bytes\n")
    pytester.makepyfile("def test_one(kafka): pass")
    result = pytester.runpytest_subprocess(*OPTIONS)
    result.stdout.fnmatch_lines(["*'message.max.bytes', expected KEY=VALUE*"])


def test_a_run_that_uses_no_fixture_imports_nothing_of_the_broker(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_one():
            assert "minibroker.testing.plugin" in sys.modules
            loaded = {name.split(".")[1] for name in sys.modules if name.startswith("minibroker.")}
            assert loaded == {"testing"}
        """
    )
    pytester.runpytest_subprocess(*OPTIONS).assert_outcomes(passed=1)


def test_the_brokers_modules_are_not_rewritten(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_one(kafka):
            import minibroker.broker.app
            import minibroker.broker.handlers.fetch

            for module in (minibroker.broker.app, minibroker.broker.handlers.fetch):
                loader = type(module.__spec__.loader).__name__
                assert loader in ("SourceFileLoader", "ExtensionFileLoader")
        """
    )
    pytester.runpytest_subprocess(*OPTIONS).assert_outcomes(passed=1)


def test_every_worker_of_xdist_has_a_broker_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("number", range(6))
        def test_alone(kafka, kafka_topic, number):
            assert kafka.topics == {kafka_topic: 1}
            kafka.produce(kafka_topic, b"v")
            assert len(kafka.records(kafka_topic)) == 1
        """
    )
    result = pytester.runpytest_subprocess(*OPTIONS, "-p", "xdist", "-n", "2")
    result.assert_outcomes(passed=6)


# The tables of a failed test.


AT_MS = 1_700_000_000_123


def test_columns_are_as_wide_as_their_longest_text() -> None:
    assert table(("a", "long"), [("wide", "b"), ("c", "")]) == ["a     long", "wide  b", "c"]


def test_requests_say_who_asked_and_how_it_ended() -> None:
    request = SeenRequest(
        "Produce", 9, "mine", "127.0.0.1:5", AT_MS, 0.25, "NOT_LEADER_OR_FOLLOWER"
    )
    fine = SeenRequest("Fetch", 12, None, "127.0.0.1:5", AT_MS, 12.0, None)
    assert request_lines([request, fine]) == [
        "time          client  request     answer                  ms",
        "22:13:20.123  mine    Produce v9  NOT_LEADER_OR_FOLLOWER  0.2",
        "22:13:20.123  -       Fetch v12   ok                      12.0",
    ]
    assert request_lines([]) == ["no client sent anything"]


def test_groups_show_a_line_for_each_member() -> None:
    members = [
        GroupMember("m-1", "rdkafka", None, (("orders", 0), ("orders", 1))),
        GroupMember("m-2", "rdkafka", "static", ()),
    ]
    groups = {"mine": ("Stable", members, {("orders", 0): 3}), "gone": ("Empty", [], {})}
    assert group_lines(groups) == [
        "group  state   member   partitions         lag",
        "gone   Empty   -        -                  -",
        "mine   Stable  rdkafka  orders-0 orders-1  orders-0:3",
        "mine   Stable  static   -                  orders-0:3",
    ]
    assert group_lines({}) == []


def test_records_are_cut_and_shown_as_text_where_they_are_text() -> None:
    records = [
        TopicRecord("t", 0, 7, AT_MS, "CreateTime", b"k", b"x" * 100),
        TopicRecord("t", 0, 8, -1, "CreateTime", None, b"a\nb"),
    ]
    head, cut, escaped = record_lines(records)
    assert head.split() == ["partition", "offset", "time", "key", "value"]
    assert cut.split()[-1] == "x" * (TEXT_MAX - 1) + "…"
    assert escaped.split() == ["t-0", "8", "-", "null", r"'a\nb'"]
    assert record_lines([]) == []


def test_a_test_that_stopped_its_broker_fails_alone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_stopped(kafka_broker):
            kafka_broker.stop()
            raise AssertionError("the reason")

        def test_next(kafka_broker):
            assert kafka_broker.topics == {}
        """
    )
    outcome = pytester.runpytest_subprocess(*OPTIONS)
    outcome.assert_outcomes(failed=1, passed=1)
    outcome.stdout.fnmatch_lines(["*the reason*", "*RuntimeError: this broker is not running*"])
