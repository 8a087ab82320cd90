"""`pytest --kafka=HOST:PORT`: the same suite on minibroker and on Apache Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from minibroker.testing import Broker

if TYPE_CHECKING:
    from tests.support.peers import KafkaPeer

pytest_plugins = ["pytester"]

OPTIONS = ("-p", "no:cacheprovider", "-rs", "-o", "asyncio_default_fixture_loop_scope=function")
SUITE = """
    from concurrent.futures import ThreadPoolExecutor
    import pytest
    from confluent_kafka import Consumer, Producer, TopicPartition

    def written_and_read(address, topic):
        producer = Producer({"bootstrap.servers": address, "log_level": 0})
        producer.produce(topic, b"v")
        assert producer.flush(180) == 0
        consumer = Consumer(
            {"bootstrap.servers": address, "group.id": topic, "auto.offset.reset": "earliest"}
        )
        consumer.subscribe([topic])
        (message,) = consumer.consume(1, 60)
        assert message.value() == b"v"
        consumer.close()

    @pytest.mark.parametrize("again", [1, 2])
    @pytest.mark.kafka(topics=["made-by-the-marker:2"])
    def test_of_clients(kafka, kafka_topic, again):
        assert {"made-by-the-marker": 2, kafka_topic: 1}.items() <= kafka.topics.items()
        written_and_read(kafka.bootstrap, kafka_topic)
        written_and_read(kafka.bootstrap, "made-by-the-marker")

    def test_of_waits(kafka, kafka_topic):
        with pytest.raises(TimeoutError, match="until group 'waited' is ready: there is no"):
            kafka.wait_for_group("waited", timeout_s=0)
        consumer = Consumer(
            {"bootstrap.servers": kafka.bootstrap, "group.id": kafka_topic, "log_level": 0}
        )
        consumer.subscribe([kafka_topic])
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(kafka.wait_for_group, kafka_topic, 1, timeout_s=120)
            while not waiting.done():
                consumer.poll(0.1)
        (member,) = waiting.result()
        assert (member.client_id, member.partitions) == ("rdkafka", ((kafka_topic, 0),))
        with pytest.raises(TimeoutError, match="it is Stable with 1 member"):
            kafka.wait_for_group(kafka_topic, 2, timeout_s=0)
        kafka.wait_until_read(kafka_topic, timeout_s=0)  # the topic is empty
        producer = Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
        producer.produce(kafka_topic, b"v")
        assert producer.flush(180) == 0
        consumer.commit(offsets=[TopicPartition(kafka_topic, 0, 0)], asynchronous=False)
        with pytest.raises(TimeoutError, match="-0 ends at 1, committed up to 0"):
            kafka.wait_until_read(kafka_topic, timeout_s=0)
        consumer.commit(offsets=[TopicPartition(kafka_topic, 0, 1)], asynchronous=False)
        assert kafka.wait_until_read(kafka_topic, timeout_s=60) == {(kafka_topic, 0): 1}
        consumer.close()

    def test_of_a_seed(kafka, kafka_topic, tmp_path):
        seed = tmp_path / "seed.jsonl"
        record = '{"topic": "%s", "key": "k", "value": "v", "timestamp": "-1h"}\\n' % kafka_topic
        seed.write_text(
            '{"create": "made-by-a-seed", "partitions": 2, "configs": {"segment.ms": 99}}\\n'
            + '{"topic": "made-by-a-seed", "value": {"id": 1}, "partition": 1}\\n'
            + record * 2000
            + '{"group": "of-a-seed", "topic": "made-by-a-seed", "partition": 1, "offset": 1}\\n'
        )
        loaded = kafka.load(seed)
        assert loaded.topics == ("made-by-a-seed",)
        assert loaded.records == {"made-by-a-seed": 1, kafka_topic: 2000}
        assert kafka.topics["made-by-a-seed"] == 2
        consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "of-a-seed"})
        committed = consumer.committed([TopicPartition("made-by-a-seed", 1)], timeout=30)
        assert committed[0].offset == 1
        assert consumer.get_watermark_offsets(TopicPartition(kafka_topic, 0), timeout=30)[1] == 2000
        consumer.close()

    def test_of_records(kafka, kafka_topic):
        kafka.produce(kafka_topic, "v")

    def test_of_faults(kafka, kafka_topic):
        producer = Producer({"bootstrap.servers": kafka.bootstrap, "client.id": "shop"})
        with kafka.faults.add("Produce", error="CORRUPT_MESSAGE", times=2) as fault:
            producer.produce(kafka_topic, b"v")
            assert producer.flush(60) == 0
        assert fault.hits == 2
        errors = [request.error for request in kafka.wait_for_requests("Produce", 3)]
        assert errors == ["CORRUPT_MESSAGE", "CORRUPT_MESSAGE", None]
        assert not list(kafka.faults)

    def test_of_a_fault_of_the_broker(kafka):
        with kafka.faults.add(broker="disk_full"):
            pass

    def test_of_a_broker(kafka_broker):
        pass

    def test_of_a_module(kafka_module):
        kafka_module.create_topic("lasting")
        kafka_module.delete_topic("lasting")
"""


def test_on_minibroker(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE)
    pytester.runpytest_subprocess(*OPTIONS).assert_outcomes(passed=9)


@pytest.mark.java
@pytest.mark.parametrize("release", ["kafka_39", "kafka_44"])
def test_on_kafka(pytester: pytest.Pytester, request: pytest.FixtureRequest, release: str) -> None:
    kafka: KafkaPeer = request.getfixturevalue(release)
    pytester.makepyfile(SUITE)
    result = pytester.runpytest_subprocess(*OPTIONS, f"--kafka={kafka.address}")
    result.assert_outcomes(passed=6, skipped=3)
    result.stdout.fnmatch_lines_random(
        [
            f"*kafka.produce needs minibroker; this run is on {kafka.address}",
            f"*broker=disk_full happens inside of a broker*; this run is on {kafka.address}",
            "*kafka_broker is a minibroker of the test's own*",
        ]
    )
    topics = AdminClient({"bootstrap.servers": kafka.address}).list_topics(timeout=180).topics
    assert not [name for name in topics if name.startswith(("made-by", "test_of", "lasting"))]


@pytest.mark.java
def test_a_page_of_a_failed_test_shows_kafka(
    pytester: pytest.Pytester, kafka_39: KafkaPeer
) -> None:
    pytester.makepyfile(
        """
        from confluent_kafka import Consumer, Producer

        def test_it(kafka, kafka_topic):
            settings = {"bootstrap.servers": kafka.bootstrap, "log_level": 0}
            producer = Producer(settings)
            with kafka.faults.add("Produce", error="NOT_LEADER_OR_FOLLOWER", times=1):
                producer.produce(kafka_topic, b"the value")
                assert producer.flush(180) == 0
            consumer = Consumer(
                {**settings, "group.id": "of-a-page", "auto.offset.reset": "earliest"}
            )
            consumer.subscribe([kafka_topic])
            consumer.commit(consumer.consume(1, 180)[0], asynchronous=False)
            assert False
        """
    )
    result = pytester.runpytest_subprocess(
        *OPTIONS, f"--kafka={kafka_39.address}", "--kafka-report=out"
    )
    result.assert_outcomes(failed=1)
    (path,) = pytester.path.glob("out/*.html")
    page = path.read_text()
    for text in (
        f"Kafka {kafka_39.address} behind a proxy",
        '<td class="words">the value</td>',
        '<tr><td>of-a-page</td><td class="words">classic</td><td class="words">Stable</td>',
        "error NOT_LEADER_OR_FOLLOWER",
        '"JoinGroup"',
    ):
        assert text in page, text


def test_a_fault_that_no_request_met_fails_the_test(pytester: pytest.Pytester) -> None:
    """A Kafka is not needed for that: minibroker stands for it."""
    pytester.makepyfile(
        """
        def test_missed(kafka):
            kafka.faults.add("Fetch", error="CORRUPT_MESSAGE")

        def test_report(kafka, kafka_topic):
            assert kafka.topics == {}
        """
    )
    with Broker() as broker:
        result = pytester.runpytest_subprocess(*OPTIONS, f"--kafka={broker.bootstrap}")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*Fault(Fetch, 0 hits): never met a request*"])


def test_a_topic_of_a_killed_run_or_of_another_worker_is_in_nobodys_way(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        def test_it(kafka, kafka_topic):
            assert sorted(kafka.topics) == sorted([kafka_topic, "test_it-1"])
        """
    )
    with Broker(topics=["test_it-1"]) as broker:
        result = pytester.runpytest_subprocess(*OPTIONS, f"--kafka={broker.bootstrap}")
        result.assert_outcomes(passed=1)
        assert list(broker.topics) == ["test_it-1"]


def test_an_address_that_is_none_is_told(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_one(kafka): pass")
    result = pytester.runpytest_subprocess(*OPTIONS, "--kafka=localhost")
    result.stdout.fnmatch_lines(["*--kafka=localhost: expected HOST:PORT*"])
