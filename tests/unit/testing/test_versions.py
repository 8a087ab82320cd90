"""`@pytest.mark.kafka(version=[…])`, `--kafka-versions`, `Broker(version=…)`."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from minibroker.broker.config.release_defaults import release_named
from minibroker.kafka.errors import ConfigError
from minibroker.testing import Broker

pytest_plugins = ["pytester"]

OPTIONS = ("-p", "no:cacheprovider", "-v", "-o", "asyncio_default_fixture_loop_scope=function")
SUITE = """
    import pytest

    RELEASE = "minibroker.advertised.kafka.version"

    def release_of(kafka):
        return kafka.call(lambda: kafka._node.app.config.advertised_kafka_version)

    @pytest.mark.kafka(version=["0.11", "2.8.2"])
    def test_marked(kafka, kafka_topic, _minibroker_version):
        assert release_of(kafka) == {"0.11": "0.11", "2.8.2": "2.8"}[_minibroker_version]
        kafka.produce(kafka_topic, "v")

    @pytest.mark.kafka(version="3.9", config={"num.partitions": 2})
    def test_of_a_broker(kafka_broker):
        assert release_of(kafka_broker) == "3.9"

    def test_plain(kafka):
        assert release_of(kafka) in (None, "1.0", "4.0")

    def test_without_a_broker():
        pass
"""


def test_a_marked_test_runs_with_each_release(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE)
    result = pytester.runpytest_subprocess(*OPTIONS)
    result.assert_outcomes(passed=5)
    lines = ["*test_marked?0.11?*PASSED*", "*test_marked?2.8.2?*PASSED*", "*test_of_a_broker?3.9?*"]
    result.stdout.fnmatch_lines_random(lines)


@pytest.mark.parametrize("option", ["--kafka-versions", "--minibroker-kafka-versions"])
def test_a_whole_run_has_each_release(pytester: pytest.Pytester, option: str) -> None:
    pytester.makepyfile(SUITE)
    result = pytester.runpytest_subprocess(*OPTIONS, f"{option}=1.0,4.0")
    result.assert_outcomes(passed=6)  # a marker is stronger
    result.stdout.fnmatch_lines_random(["*test_plain?1.0?*PASSED*", "*test_plain?4.0?*PASSED*"])


def test_a_release_that_never_was_is_refused(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE)
    result = pytester.runpytest_subprocess(*OPTIONS, "--kafka-versions=2.9")
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*there is no Kafka 2.9: expected one of 0.8.2, 0.9.0, *"])


def test_a_version_belongs_to_its_release() -> None:
    versions = ("0.8.2", "0.10.2.1", "0.11.0.3", "1.1.1", "2.8", "4.4.0")
    assert [release_named(version) for version in versions] == [
        "0.8.2",
        "0.10.2",
        "0.11",
        "1.1",
        "2.8",
        "4.4",
    ]
    for wrong in ("", "2", "2.80", "5.0"):
        with pytest.raises(ConfigError, match=f"there is no Kafka {wrong}: expected one of"):
            release_named(wrong)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.11.0.3", ("1000012", "1440", "false", "300000", "1")),
        ("2.4", ("1000012", "10080", "true", "1800000", "1")),
        ("4.4", ("1048588", "10080", "true", "1800000", "2")),
    ],
)
def test_defaults_are_those_of_the_release(version: str, expected: tuple[str, ...]) -> None:
    names = (
        "message.max.bytes",
        "offsets.retention.minutes",
        "delete.topic.enable",
        "group.max.session.timeout.ms",
        "num.recovery.threads.per.data.dir",
    )
    with Broker(version=version) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        resource = ConfigResource(ResourceType.BROKER, "0")
        entries = admin.describe_configs([resource])[resource].result(60)
    assert tuple(entries[name].value for name in names) == expected
    if version != "0.11.0.3":  # version 0 of DescribeConfigs, which it has, tells no source
        assert all(entries[name].is_default for name in names)
