"""Paths of the tree, and the helpers that stand on its interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minibroker.broker.cluster import codecs, paths
from minibroker.broker.cluster.image import BrokerInfo, Endpoint
from minibroker.broker.cluster.tree import check_path, child_path, ensure_node, parent_of
from minibroker.kafka.errors import CoordinationError
from minibroker.kafka.ids import topic_id_from_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.cluster.tree import Tree


@pytest.mark.parametrize("path", ["", "a", "/a/", "//", "/a//b", "/a/./b", "/..", "/a\0"])
def test_check_path_refuses(path: str) -> None:
    with pytest.raises(ValueError, match="not a path"):
        check_path(path)


def values_of(path: str, data: bytes) -> tuple[object, ...]:
    """Return the topic's id, its replicas, those to come and those to go, as a node says."""
    topic = codecs.decode_topic(path, data)
    return topic.topic_id, topic.replicas, topic.adding, topic.removing


def test_parent_of() -> None:
    assert parent_of("/a/b") == "/a"
    assert parent_of("/a") == "/"


def test_child_path() -> None:
    assert child_path("/", "a") == "/a"
    assert child_path("/a", "b") == "/a/b"


async def test_ensure_node_tells_whether_it_made_it(tree: Tree) -> None:
    assert await ensure_node(tree, "/a/b", b"first")
    assert not await ensure_node(tree, "/a/b", b"second")
    assert (await tree.get("/a/b"))[0] == b"first"


# Paths and the encoding of entity names (expected text printed by Kafka 3.9.1's Sanitizer).


def test_paths_are_kafkas() -> None:
    assert paths.broker(3) == "/brokers/ids/3"
    assert paths.partition_state("t", 2) == "/brokers/topics/t/partitions/2/state"
    assert paths.partition("t", 2) == "/brokers/topics/t/partitions/2"
    assert paths.config("users", "a/clients/b") == "/config/users/a/clients/b"
    assert paths.delete_topic("t") == "/admin/delete_topics/t"


def test_sanitize_equals_kafkas() -> None:
    assert paths.sanitize("al ice/ü*~<default>+%") == "al%20ice%2F%C3%BC%2A%7E%3Cdefault%3E%2B%25"
    assert paths.sanitize("a_b-c.d") == "a_b-c.d"


@given(st.text())
def test_desanitize_reverses_sanitize(name: str) -> None:
    encoded = paths.sanitize(name)
    assert paths.desanitize(encoded) == name
    if name not in {"", ".", ".."}:
        check_path(f"/config/users/{encoded}")


def test_desanitize_refuses_broken_encoding() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        paths.desanitize("a%zz")


# The JSON of the tree. Bytes named KAFKA_… were read from a tree that Kafka 3.9.1 wrote.


KAFKA_BROKER = (
    b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"endpoints":'
    b'["PLAINTEXT://127.0.0.1:60371"],"jmx_port":-1,"port":60371,"host":"127.0.0.1","version":5,'
    b'"timestamp":"1795224130143"}'
)
KAFKA_TOPIC = (
    b'{"partitions":{"0":[7],"1":[7],"2":[7]},"topic_id":"7yJ-rZnpSMOkkedoMpGVZQ",'
    b'"adding_replicas":{},"removing_replicas":{},"version":3}'
)
KAFKA_STATE = b'{"controller_epoch":1,"leader":7,"version":1,"leader_epoch":0,"isr":[7]}'
KAFKA_CONTROLLER = (
    b'{"version":2,"brokerid":7,"timestamp":"1795224130237","kraftControllerEpoch":-1}'
)
KAFKA_CLUSTER_ID = b'{"version":"1","id":"dplE0gz2S7eXLLPR0A3zEw"}'
KAFKA_CONFIG = b'{"version":1,"config":{"retention.ms":"1000"}}'
KAFKA_CHANGE = b'{"version":2,"entity_path":"users/al%20ice/clients/c%2A1"}'
TOPIC_ID = topic_id_from_text("7yJ-rZnpSMOkkedoMpGVZQ")
PLAIN = Endpoint("PLAINTEXT", "127.0.0.1", 60371)


def test_everything_is_written_byte_for_byte_as_kafka_does() -> None:
    info = BrokerInfo(7, (PLAIN,))
    assert codecs.encode_broker(info, 1795224130143) == KAFKA_BROKER
    assert codecs.encode_topic(TOPIC_ID, [[7], [7], [7]]) == KAFKA_TOPIC
    assert codecs.encode_state(codecs.PartitionState(7, 0, [7], 1)) == KAFKA_STATE
    assert codecs.encode_controller(7, 1795224130237) == KAFKA_CONTROLLER
    assert codecs.encode_cluster_id("dplE0gz2S7eXLLPR0A3zEw") == KAFKA_CLUSTER_ID
    assert codecs.encode_config({"retention.ms": "1000"}) == KAFKA_CONFIG
    assert codecs.encode_config_change("users", "al%20ice/clients/c%2A1") == KAFKA_CHANGE


def test_everything_kafka_writes_is_read() -> None:
    assert codecs.decode_broker("/p", 7, KAFKA_BROKER, 5) == BrokerInfo(7, (PLAIN,), None, 5)
    assert values_of("/p", KAFKA_TOPIC) == (TOPIC_ID, {0: [7], 1: [7], 2: [7]}, {}, {})
    assert codecs.decode_state("/p", KAFKA_STATE) == (7, 0, [7], 1, 0)
    recovering = KAFKA_STATE[:-1] + b',"leader_recovery_state":1}'
    assert codecs.decode_state("/p", recovering) == (7, 0, [7], 1, codecs.RECOVERING)
    assert codecs.encode_state(codecs.decode_state("/p", recovering)) == recovering
    assert codecs.decode_controller("/p", KAFKA_CONTROLLER) == 7
    assert codecs.decode_cluster_id("/p", KAFKA_CLUSTER_ID) == "dplE0gz2S7eXLLPR0A3zEw"
    assert codecs.decode_config("/p", KAFKA_CONFIG) == {"retention.ms": "1000"}
    assert codecs.decode_config_change("/p", KAFKA_CHANGE) == ("users", "al%20ice/clients/c%2A1")


def test_broker_with_rack_and_several_listeners() -> None:
    info = BrokerInfo(
        1,
        (
            Endpoint("SECURE", "h", 1, "SSL"),
            Endpoint("PLAINTEXT", "::1", 2),
            Endpoint("IN.NER", "", 3, "SASL_SSL"),
        ),
        "rack-1",
        9,
    )
    assert codecs.decode_broker("/p", 1, codecs.encode_broker(info, 0), 9) == info


def test_broker_without_plaintext_has_no_top_level_address() -> None:
    data = codecs.encode_broker(BrokerInfo(1, (Endpoint("SSL", "h", 1, "SSL"),)), 0)
    assert b'"port":-1,"host":null' in data


@pytest.mark.parametrize(
    ("data", "endpoint"),
    [
        (b'{"version":1,"host":"h","port":9092,"jmx_port":-1,"timestamp":"1"}', "PLAINTEXT"),
        (b'{"version":2,"host":"h","port":9,"endpoints":["SSL://h:9092"]}', "SSL"),
    ],
)
def test_registrations_of_old_brokers_are_read(data: bytes, endpoint: str) -> None:
    info = codecs.decode_broker("/p", 1, data, 0)
    assert info.endpoints == (Endpoint(endpoint, "h", 9092, endpoint),)
    assert info.endpoint(endpoint) == info.endpoints[0]
    assert info.endpoint("OTHER") is None


def test_topics_of_old_brokers_have_no_id() -> None:
    assert values_of("/p", b'{"version":1,"partitions":{"0":[1,2]}}') == (
        None,
        {0: [1, 2]},
        {},
        {},
    )
    assert b"topic_id" not in codecs.encode_topic(None, [[1]])


def test_reassignment_in_progress_is_kept() -> None:
    data = codecs.encode_topic(TOPIC_ID, [[1, 2, 3]], {0: [3]}, {0: [1]})
    assert values_of("/p", data) == (TOPIC_ID, {0: [1, 2, 3]}, {0: [3]}, {0: [1]})


def test_notification_version_1_is_read() -> None:
    data = b'{"version":1,"entity_type":"topics","entity_name":"t"}'
    assert codecs.decode_config_change("/p", data) == ("topics", "t")


def test_empty_config_and_no_block() -> None:
    assert codecs.decode_config("/p", b"") == {}
    assert codecs.decode_config("/p", b'{"version":1}') == {}
    assert codecs.decode_producer_id_block("/p", b"") is None


@pytest.mark.parametrize(
    "decode",
    [
        lambda data: codecs.decode_broker("/the/path", 1, data, 0),
        lambda data: codecs.decode_topic("/the/path", data),
        lambda data: codecs.decode_state("/the/path", data),
        lambda data: codecs.decode_config("/the/path", data),
        lambda data: codecs.decode_config_change("/the/path", data),
        lambda data: codecs.decode_cluster_id("/the/path", data),
        lambda data: codecs.decode_controller("/the/path", data),
        lambda data: codecs.decode_producer_id_block("/the/path", data),
    ],
)
@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[1]",
        b'"x"',
        b"\xff\xfe",
        b'{"version":2,"entity_path":"no-name","endpoints":["?"],"partitions":{"a":[1]},'
        b'"config":[1],"id":5,"isr":1}',
    ],
)
def test_anything_else_names_the_path(decode: Callable[[bytes], object], data: bytes) -> None:
    with pytest.raises(CoordinationError, match="/the/path"):
        decode(data)
