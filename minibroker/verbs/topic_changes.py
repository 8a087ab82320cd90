"""Topics made, deleted and changed; the work behind `topics`, and behind Kafka's scripts.

Each function does one topic after the other, and returns a sentence about each. One that fails ends
it: the sentence of the error says which one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.cli.errors import CommandError
from minibroker.client import admin, configs
from minibroker.client.dialogue import BrokerRefusedError
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from minibroker.client.client import Client
    from minibroker.verbs.new_topics import TopicToMake

TIMEOUT_S: Final = 30.0


def create_topics(
    client: Client, topics: Iterable[TopicToMake], *, may_exist: bool = False
) -> list[str]:
    """Make topics; return a sentence about each. A topic that exists is left if `may_exist`.

    Raises CommandError; OSError, ProtocolError, ConfigError.
    """
    done = []
    for topic in topics:
        name = topic.name
        try:
            admin.create_topic(
                client,
                name,
                topic.partitions,
                topic.configs,
                timeout_s=TIMEOUT_S,
                replicas=topic.replicas,
            )
        except BrokerRefusedError as error:
            raise CommandError(
                f"topic {name} cannot be made: {error} (a broker before Kafka 0.10.1 makes a topic "
                "when a record is written to it)"
            ) from None
        except KafkaError as error:
            if error.code == ErrorCode.TOPIC_ALREADY_EXISTS and may_exist:
                done.append(f"{name} was there")
                continue
            raise _failure_of(name, "made", error) from None
        done.append(f"{name} is made")
    return done


def delete_topics(client: Client, names: Iterable[str]) -> list[str]:
    """Delete topics; return a sentence about each. Raises CommandError; OSError, ProtocolError,
    ConfigError.
    """
    done = []
    for name in names:
        try:
            admin.delete_topic(client, name, timeout_s=TIMEOUT_S)
        except KafkaError as error:
            raise _failure_of(name, "deleted", error) from None
        done.append(f"{name} is deleted")
    return done


def grow_topics(client: Client, names: Iterable[str], count: int) -> list[str]:
    """Give topics `count` partitions in all; return a sentence about each.

    Raises CommandError; OSError, ProtocolError, ConfigError.
    """
    done = []
    for name in names:
        try:
            admin.create_partitions(client, name, count, timeout_s=TIMEOUT_S)
        except KafkaError as error:
            raise _failure_of(name, "given partitions", error) from None
        done.append(f"{name} has {count} partitions")
    return done


def set_topics(client: Client, names: Iterable[str], settings: Mapping[str, str]) -> list[str]:
    """Set settings of topics, an empty one to its default; return a sentence about each.

    Raises CommandError; OSError, ProtocolError, ConfigError.
    """
    changes = {key: value or None for key, value in settings.items()}
    done = []
    for name in names:
        try:
            configs.alter_settings(
                client, configs.Resource(configs.TOPIC, name), changes, only_checks=False
            )
        except KafkaError as error:
            raise _failure_of(name, "changed", error) from None
        done.append(f"{name} is changed")
    return done


def _failure_of(name: str, done: str, error: KafkaError) -> CommandError:
    """Return the error of a person for one of a broker."""
    if error.code == ErrorCode.TOPIC_ALREADY_EXISTS:
        return CommandError(
            f"topic {name} is there already: choose another name, or give --if-missing"
        )
    if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return CommandError(
            f"there is no topic {name}: minibroker topics lists those that there are"
        )
    return CommandError(f"topic {name} cannot be {done}: {error}")
