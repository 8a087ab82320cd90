"""`pytest --kafka=HOST:PORT`: the same suite on minibroker and on Apache Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

if TYPE_CHECKING:
    from tests.support.peers import KafkaPeer

pytest_plugins = ["pytester"]

OPTIONS = ("-p", "no:cacheprovider", "-rs", "-o", "asyncio_default_fixture_loop_scope=function")
SUITE = """
    import pytest
    from confluent_kafka import Producer, Consumer

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

    def test_of_records(kafka, kafka_topic):
        kafka.produce(kafka_topic, "v")

    def test_of_faults(kafka):
        with kafka.faults.add("Produce", error="CORRUPT_MESSAGE", may_miss=True):
            pass

    def test_of_a_broker(kafka_broker):
        pass

    def test_of_a_module(kafka_module):
        kafka_module.create_topic("lasting")
        kafka_module.delete_topic("lasting")
"""


def test_on_minibroker(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE)
    pytester.runpytest_subprocess(*OPTIONS).assert_outcomes(passed=6)


@pytest.mark.java
@pytest.mark.parametrize("release", ["kafka_39", "kafka_44"])
def test_on_kafka(pytester: pytest.Pytester, request: pytest.FixtureRequest, release: str) -> None:
    kafka: KafkaPeer = request.getfixturevalue(release)
    pytester.makepyfile(SUITE)
    result = pytester.runpytest_subprocess(*OPTIONS, f"--kafka={kafka.address}")
    result.assert_outcomes(passed=3, skipped=3)
    result.stdout.fnmatch_lines_random(
        [
            f"*kafka.produce needs minibroker; this run is on {kafka.address}",
            "*kafka.faults needs minibroker*",
            "*kafka_broker is a minibroker of the test's own*",
        ]
    )
    left = AdminClient({"bootstrap.servers": kafka.address}).list_topics(timeout=180).topics
    assert not [name for name in left if name.startswith(("made-by", "test_of", "lasting"))]


def test_an_address_that_is_none_is_told(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_one(kafka): pass")
    result = pytester.runpytest_subprocess(*OPTIONS, "--kafka=localhost")
    result.stdout.fnmatch_lines(["*--kafka=localhost: expected HOST:PORT*"])
