"""Questions to the cluster before Spark starts, so that a job that cannot work fails at once.

One answer of the broker has it all: topics, partitions, the id of the cluster.
"""

from __future__ import annotations

import re
import ssl
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from minibroker.client import admin, configs
from minibroker.client.client import CLIENT_ERRORS, Client, is_lasting
from minibroker.client.dialogue import BrokerRefusedError
from minibroker.client.settings import BOOTSTRAP
from minibroker.kafka.errors import ConfigError, KafkaError
from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline import offsets
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.client_settings import connection_settings, for_reader
from minibroker.pipeline.kafka.source.topics import id_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from minibroker.client.admin import DescribedCluster
    from minibroker.client.configs import OwnSetting
    from minibroker.pipeline.kafka.cluster import Kafka
    from minibroker.pipeline.offsets import Offsets

ANSWER_TIMEOUT_S: Final = 15
REFUSED_TIMEOUT_S: Final = 3
"""The same where each server refuses connections: nobody listens there."""
_PAUSE_S: Final = 0.1
_PATIENCE: Final = (
    "socket.connection.setup.timeout.ms",
    "socket.connection.setup.timeout.max.ms",
)
"""Settings that ask for a longer wait than `REFUSED_TIMEOUT_S` where nobody listens."""

_T = TypeVar("_T")


class ClusterTopics(NamedTuple):
    """The topics of a cluster."""

    cluster_id: str
    partitions: Mapping[str, int]
    """Topic → number of partitions."""


def client_of(kafka: Kafka) -> Client:
    """Return a client with the job's settings. Raises PipelineError if one is refused."""
    settings = connection_settings({**for_reader(kafka.settings), BOOTSTRAP: kafka.bootstrap})
    patience_s = min(settings.timeout_s, ANSWER_TIMEOUT_S)
    return Client(settings._replace(timeout_s=patience_s))


def ask(kafka: Kafka, client: Client | None = None) -> ClusterTopics:
    """Return the topics of the cluster. Raises PipelineError if no broker answers.

    Args:
        kafka: the cluster.
        client: to ask with; None: one is made for this question.
    """
    cluster = _answer(kafka, lambda: admin.describe(client or client_of(kafka)))
    partitions = {
        name: topic.partition_count for name, topic in cluster.topics.items() if not topic.error
    }
    return ClusterTopics(cluster.cluster_id, partitions)


def _answer(kafka: Kafka, question: Callable[[], _T]) -> _T:
    """Return the answer to a question, which is asked again while no broker answers.

    Raises PipelineError: no broker answers in time, or it refuses.
    """
    started_s = time.monotonic()
    while True:
        try:
            return question()
        except CLIENT_ERRORS as error:
            waited_s = time.monotonic() - started_s
            if is_lasting(error) or waited_s >= _patience_s(kafka, error):
                raise PipelineError(_no_answer(kafka, error)) from error
        threading.Event().wait(_PAUSE_S)


def _patience_s(kafka: Kafka, error: Exception) -> float:
    """Return how long an answer is waited for after an error of the client, in seconds."""
    if isinstance(error, KafkaError) and not error.code.retriable:
        return 0
    if not isinstance(error, ConnectionRefusedError):
        return ANSWER_TIMEOUT_S
    settings = for_reader(kafka.settings)
    is_asked_for = any(int(settings.get(name, 0)) > REFUSED_TIMEOUT_S * 1000 for name in _PATIENCE)
    return ANSWER_TIMEOUT_S if is_asked_for else REFUSED_TIMEOUT_S


def chosen_topics(topics: ClusterTopics, names: Iterable[str], pattern: str | None) -> list[str]:
    """Return the topics that are named or match.

    Raises PipelineError if a name is missing or none matches.
    """
    if pattern is None:
        for name in names:
            check_topic_exists(topics, name)
        return list(names)
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise PipelineError(f"--pattern {pattern} is no regular expression: {error}") from error
    matching = [name for name in topics.partitions if expression.fullmatch(name)]
    if not matching:
        raise PipelineError(
            f"no topic matches {pattern!r}: the pattern has to match a whole name; "
            f"{_there_are(topics)}"
        )
    return sorted(matching)


def check_topic_exists(topics: ClusterTopics, name: str) -> None:
    """Raise PipelineError if the topic does not exist."""
    if name not in topics.partitions:
        raise PipelineError(
            f"there is no topic {name!r}: check its name or create it; {_there_are(topics)}"
        )


def check_target_exists(topics: ClusterTopics, name: str) -> None:
    """Raise PipelineError if a topic does not exist, where a directory could be meant, too."""
    if name not in topics.partitions:
        raise PipelineError(
            f"there is no topic {name!r}: create it, or write ./{name} for a directory; "
            f"{_there_are(topics)}"
        )


def end_offsets(
    kafka: Kafka, topics: ClusterTopics, names: Iterable[str]
) -> dict[str, dict[int, int]]:
    """Return topic → partition → end offset, behind the records of open transactions, too."""
    return _offsets(kafka, topics, names, offsets.LATEST)


def start_offsets(
    kafka: Kafka, topics: ClusterTopics, names: Iterable[str]
) -> dict[str, dict[int, int]]:
    """Return topic → partition → log start offset."""
    return _offsets(kafka, topics, names, offsets.EARLIEST)


def topic_settings(kafka: Kafka, topic: str) -> list[OwnSetting]:
    """Return the settings of a topic, with their defaults. Raises PipelineError."""
    try:
        return configs.topic_settings(client_of(kafka), topic)
    except CLIENT_ERRORS as error:
        raise PipelineError(
            f"the settings of topic {topic!r} are not to be had at {kafka.bootstrap}: {error}"
        ) from error


def topic_id(kafka: Kafka, name: str) -> str:
    """Return the id of a topic; empty if the cluster is too old.

    A later topic of the same name has another id.
    """
    return topic_ids(kafka, [name])[name]


def topic_ids(kafka: Kafka, names: Iterable[str]) -> dict[str, str]:
    """Return topic → id; see `topic_id`. Raises PipelineError."""
    topic_names = list(names)
    if not topic_names:
        return {}
    client = client_of(kafka)

    def described() -> DescribedCluster:
        cluster = admin.describe(client, topic_names)
        for name, topic in cluster.topics.items():
            if topic.error:
                raise KafkaError(topic.error, f"topic {name!r}")
        return cluster

    topics = _answer(kafka, described).topics
    return {name: id_text(topics[name].topic_id) for name in topic_names}


def ends_of(kafka: Kafka, partitions: Iterable[TopicPartition], client: Client) -> Offsets:
    """Return the end offset of each partition, which must exist. Raises PipelineError."""
    return _list_offsets(kafka, dict.fromkeys(partitions, offsets.LATEST), client)


def _offsets(
    kafka: Kafka, topics: ClusterTopics, names: Iterable[str], at: int
) -> dict[str, dict[int, int]]:
    times = {
        TopicPartition(name, number): at
        for name in names
        for number in range(topics.partitions[name])
    }
    by_topic: dict[str, dict[int, int]] = {}
    for place, offset in _list_offsets(kafka, times, client_of(kafka)).items():
        by_topic.setdefault(place.topic, {})[place.partition] = offset
    return by_topic


def _list_offsets(kafka: Kafka, times: Mapping[TopicPartition, int], client: Client) -> Offsets:
    """Return the offset of each partition at its time. Raises PipelineError."""
    at_times: Offsets = {}

    def list_rest() -> Offsets:
        open_times = {place: at for place, at in times.items() if place not in at_times}
        answers = admin.list_offsets(client, open_times, is_committed=False)
        at_times.update(answers.offsets)
        answers.whole()
        return at_times

    return _answer(kafka, list_rest)


def _no_answer(kafka: Kafka, error: Exception) -> str:
    if isinstance(error, (BrokerRefusedError, ConfigError, ssl.SSLError)):
        return (
            f"the brokers at {kafka.bootstrap} and this client do not agree ({error}): "
            "correct the client's settings, see --kafka and --kafka-config"
        )
    return (
        f"no broker answers at {kafka.bootstrap} ({error}): start one (minibroker serve), say "
        "where it is with --bootstrap HOST:PORT, or give what its TLS and logins need with "
        "--kafka-config"
    )


def _there_are(topics: ClusterTopics) -> str:
    names = sorted(name for name in topics.partitions if not name.startswith("__"))
    if not names:
        return "the cluster has none"
    text = ", ".join(names[:5])
    return f"the cluster has {text}" + (f" and {len(names) - 5} more" if len(names) > 5 else "")
