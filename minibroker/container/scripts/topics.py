"""`kafka-topics`: topics are listed, described, made, grown and deleted.

Source: Kafka TopicCommand (3.9).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TextIO

from minibroker.client import admin, configs
from minibroker.container.scripts.connecting import OPTIONS as CONNECTION
from minibroker.container.scripts.connecting import TIMEOUT_S, reader_of
from minibroker.container.scripts.options import ScriptOption, WordsError
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ConfigError, KafkaError, ProtocolError
from minibroker.kafka.ids import ZERO_TOPIC_ID, topic_id_to_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from minibroker.client.admin import DescribedCluster, DescribedPartition, DescribedTopic
    from minibroker.client.client import Client
    from minibroker.container.scripts.options import Words

DOES: Final = {"kafka-topics": "list, describe, make, change or delete topics"}
ACTIONS: Final = ("list", "describe", "create", "alter", "delete")
_FILTERS: Final = (
    "under-replicated-partitions",
    "unavailable-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
)
_NAME: Final = "kafka-topics"
_SHORT_MAX: Final = 32767
OPTIONS: Final = {
    _NAME: {
        **CONNECTION,
        "list": ScriptOption("", "list the topics"),
        "describe": ScriptOption("", "show partitions, replicas and settings"),
        "create": ScriptOption("", "make a topic"),
        "alter": ScriptOption("", "give a topic more partitions"),
        "delete": ScriptOption("", "delete topics"),
        "topic": ScriptOption("TOPIC", "the topic; a pattern but with --create"),
        "partitions": ScriptOption("N", "partitions of the topic"),
        "replication-factor": ScriptOption("N", "replicas of each partition"),
        "replica-assignment": ScriptOption("ID:ID,…", "the brokers of each partition's replicas"),
        "config": ScriptOption("KEY=VALUE", "a setting of the new topic"),
        "delete-config": ScriptOption("KEY", "without effect, as in Kafka: use kafka-configs"),
        "if-exists": ScriptOption("", "a missing topic is no error"),
        "if-not-exists": ScriptOption("", "a topic that is there is no error"),
        "exclude-internal": ScriptOption("", "without internal topics"),
        "topics-with-overrides": ScriptOption("", "only topics with settings of their own"),
        "topic-id": ScriptOption("ID", "the topic of this id, with --describe"),
        "partition-size-limit-per-response": ScriptOption("N", "without effect"),
        "disable-rack-aware": ScriptOption("", "without effect"),
        "force": ScriptOption("", "without effect"),
        **{name: ScriptOption("", "only such partitions, with --describe") for name in _FILTERS},
    }
}


def run(_: str, words: Words, out: TextIO, errors: TextIO) -> int:
    """Do the action; return the exit code. Raises WordsError."""
    _check(words)
    client = reader_of(words)
    try:
        if words.has("create"):
            _create(client, words, out)
        elif words.has("list"):
            out.write("\n".join(_names(client, words)) + "\n")
        elif words.has("describe"):
            _describe(client, words, out)
        elif words.has("alter"):
            _alter(client, words)
        else:
            for name in _existing(client, words):
                admin.delete_topic(client, name, timeout_s=TIMEOUT_S)
    except (KafkaError, OSError, ProtocolError, ConfigError, ValueError) as error:
        out.write(f"Error while executing topic command : {message_of(error)}\n")
        return 1
    return 0


def message_of(error: Exception) -> str:
    """Return the message that Java's exception would have."""
    if isinstance(error, KafkaError):
        return error.detail or error.code.meaning
    return str(error)


def _check(words: Words) -> None:
    """Raise WordsError for words that make no command."""
    if sum(words.has(action) for action in ACTIONS) != 1:
        raise WordsError(
            "Command must include exactly one action: --list, --describe, --create, --alter or"
            " --delete"
        )
    if words.has("create", "delete", "alter"):
        words.require("topic")
    if words.has("alter"):
        words.require("partitions")
    for name, actions in (
        ("config", ("create",)),
        ("partitions", ("create", "alter")),
        ("replication-factor", ("create",)),
        ("if-not-exists", ("create",)),
        ("if-exists", ("alter", "delete", "describe")),
    ):
        if words.has(name) and not words.has(*actions):
            action = next(action for action in ACTIONS if words.has(action))
            raise WordsError(f'Option "[{action}]" can\'t be used with option "[{name}]"')


def _create(client: Client, words: Words, out: TextIO) -> None:
    """Make the topic. Raises KafkaError, ValueError, OSError."""
    name = words.value("topic")
    partitions, replicas = words.number("partitions"), words.number("replication-factor")
    if "." in name or "_" in name:
        out.write(
            "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore"
            " ('_') could collide. To avoid issues it is best to use either, but not both.\n"
        )
    if replicas is not None and not 1 <= replicas <= _SHORT_MAX:
        raise ValueError(f"The replication factor must be between 1 and {_SHORT_MAX} inclusive")
    if partitions is not None and partitions < 1:
        raise ValueError("The partitions must be greater than 0")
    pairs = [pair.partition("=") for pair in words.all("config")]
    if not all(equals and value.strip() for _, equals, value in pairs):
        raise ValueError(
            "requirement failed: Invalid topic config: all configs to be added must be in the"
            ' format "key=val".'
        )
    try:
        admin.create_topic(
            client,
            name,
            -1 if partitions is None else partitions,
            {key.strip(): value.strip() for key, _, value in pairs},
            timeout_s=TIMEOUT_S,
            replicas=-1 if replicas is None else replicas,
            assignment=_assignment(words.value("replica-assignment")) or None,
        )
    except KafkaError as error:
        if error.code != ErrorCode.TOPIC_ALREADY_EXISTS or not words.has("if-not-exists"):
            raise
        return
    out.write(f"Created topic {name}.\n")


def _assignment(text: str) -> dict[int, list[int]]:
    """Return partition → brokers of `0:1,1:2`. Raises ValueError."""
    if not text:
        return {}
    return {
        number: [int(broker) for broker in part.split(":")]
        for number, part in enumerate(text.split(","))
    }


def _names(client: Client, words: Words) -> list[str]:
    """Return the names of topics that the words mean, in order."""
    pattern = re.compile(_python_pattern(words.value("topic", default=".*")))
    topics = admin.describe(client).topics
    return sorted(
        name
        for name, topic in topics.items()
        if pattern.fullmatch(name) and not (topic.is_internal and words.has("exclude-internal"))
    )


def _python_pattern(text: str) -> str:
    """Return a list of names or patterns, with commas between them, as one pattern."""
    return text.strip().strip("\"'").replace(" ", "").replace(",", "|")


def _existing(client: Client, words: Words) -> list[str]:
    """Return the topics that are meant. Raises ValueError where there are none."""
    names = _names(client, words)
    if not names and words.value("topic") and not words.has("if-exists"):
        raise ValueError(f"Topic '{words.value('topic')}' does not exist as expected")
    return names


def _alter(client: Client, words: Words) -> None:
    count = words.number("partitions")
    for name in _existing(client, words):
        admin.create_partitions(client, name, count or 0, timeout_s=TIMEOUT_S)


def _describe(client: Client, words: Words, out: TextIO) -> None:
    wanted_id = words.value("topic-id")
    if wanted_id:
        cluster = admin.describe(client)
        names = [
            name
            for name, topic in sorted(cluster.topics.items())
            if topic_id_to_text(topic.topic_id) == wanted_id
        ]
        if not names and not words.has("if-exists"):
            raise ValueError(f"TopicId '{wanted_id}' does not exist as expected")
    else:
        names = _existing(client, words)
        cluster = admin.describe(client, names)
    shows_topics = not words.has(*_FILTERS)
    for name in names:
        topic = cluster.topics[name]
        settings = configs.topic_settings(client, name)
        own = sorted(setting for setting in settings if setting.source != configs.DEFAULT)
        if shows_topics and (own or not words.has("topics-with-overrides")):
            configs_text = ",".join(f"{setting.name}={setting.value}" for setting in own)
            out.write(_line_of_topic(name, topic, configs_text))
        if words.has("topics-with-overrides"):
            continue
        least = next(
            (
                int(setting.value or 1)
                for setting in settings
                if setting.name == "min.insync.replicas"
            ),
            1,
        )
        for partition in topic.partitions:
            if shows_topics or _is_wanted(partition, words, cluster, least):
                out.write(_line_of_partition(name, partition))


def _line_of_topic(name: str, topic: DescribedTopic, settings: str) -> str:
    number = (
        "" if topic.topic_id == ZERO_TOPIC_ID else f"\tTopicId: {topic_id_to_text(topic.topic_id)}"
    )
    replicas = len(topic.partitions[0].replicas) if topic.partitions else 0
    return (
        f"Topic: {name}{number}\tPartitionCount: {topic.partition_count}"
        f"\tReplicationFactor: {replicas}\tConfigs: {settings}\n"
    )


def _line_of_partition(name: str, partition: DescribedPartition) -> str:
    leader = partition.leader if partition.leader >= 0 else "none"
    return (
        f"\tTopic: {name}\tPartition: {partition.number}\tLeader: {leader}"
        f"\tReplicas: {_ids(partition.replicas)}\tIsr: {_ids(partition.in_sync)}"
        "\tElr: \tLastKnownElr: \n"
    )


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))


def _is_wanted(
    partition: DescribedPartition, words: Words, cluster: DescribedCluster, least: int
) -> bool:
    """Return whether a filter of `--describe` lets a partition through."""
    has_leader = partition.leader in cluster.brokers
    in_sync = len(partition.in_sync)
    lets_through = {
        "under-replicated-partitions": in_sync < len(partition.replicas),
        "unavailable-partitions": not has_leader,
        "under-min-isr-partitions": not has_leader or in_sync < least,
        "at-min-isr-partitions": in_sync == least,
    }
    return any(words.has(name) and lets_through[name] for name in lets_through)
