"""Questions to the cluster before Spark starts, so that a job that cannot work fails at once.

One answer of the broker has it all: topics, partitions, the id of the cluster. The client is
confluent-kafka with the settings of the job.
"""

from __future__ import annotations

import re
import socket
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType

from minibroker.client.settings import UnservedError, servers_of
from minibroker.kafka import ids
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.client_settings import BOOTSTRAP, for_admin, with_token
from minibroker.pipeline.kafka.source.topics import id_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from confluent_kafka.admin import ClusterMetadata, ConfigEntry

    from minibroker.pipeline.kafka.cluster import Kafka
    from minibroker.pipeline.offsets import Offsets

ANSWER_TIMEOUT_S: Final = 15
_FIRST_ANSWER_S: Final = 3
_CONNECT_S: Final = 1
_PATIENCE: Final = "socket.connection.setup.timeout.ms"
"""A setting that asks for a longer wait than `_FIRST_ANSWER_S` where nobody listens."""
_REFUSALS: Final = (KafkaError._AUTHENTICATION, KafkaError._SSL)
_LASTING: Final = (*_REFUSALS, KafkaError._RESOLVE)
"""Reasons that stay: a wrong login, a wrong certificate, a name that nobody knows."""


class ClusterTopics(NamedTuple):
    """The topics of a cluster."""

    cluster_id: str
    partitions: Mapping[str, int]
    """Topic → number of partitions."""


def ask(kafka: Kafka, admin: Admin | None = None) -> ClusterTopics:
    """Return the topics of the cluster. Raises PipelineError if no broker answers.

    Args:
        kafka: the cluster.
        admin: a client to ask with; None: one is made for this question.
    """
    if admin is None:  # by its length a client without events is false
        admin = admin_of(kafka)
    try:
        found = _listed_topics(kafka, admin)
    except KafkaException as error:
        raise PipelineError(_no_answer(kafka, error, admin)) from error
    partitions = {
        name: len(topic.partitions) for name, topic in found.topics.items() if not topic.error
    }
    return ClusterTopics(str(found.cluster_id), partitions)


def _listed_topics(kafka: Kafka, admin: Admin) -> ClusterMetadata:
    """Return the topics; a reason that no waiting mends ends it after the first of two waits."""
    first_s = min(_FIRST_ANSWER_S, ANSWER_TIMEOUT_S)
    left_s = ANSWER_TIMEOUT_S - first_s
    try:
        return admin.list_topics(timeout=first_s)
    except KafkaException:
        admin.poll(0)  # the errors wait for it
        is_lasting = admin.last_error is not None and admin.last_error.code() in _LASTING
        if is_lasting or not left_s or _is_nobody_there(kafka, first_s):
            raise
    return admin.list_topics(timeout=left_s)


def _is_nobody_there(kafka: Kafka, waited_s: float) -> bool:
    """Return whether each bootstrap server refuses connections, after the wait that was asked for.

    librdkafka does not tell: its reason is the same for a broker that accepts and hangs up, and it
    may wait for seconds before it tries again.
    """
    if int(for_admin(kafka.settings).get(_PATIENCE, 0)) > waited_s * 1000:
        return False
    try:
        return all(map(_refuses, servers_of(kafka.bootstrap)))
    except UnservedError:
        return False


def _refuses(server: tuple[str, int]) -> bool:
    try:
        socket.create_connection(server, _CONNECT_S, all_errors=True).close()
    except ExceptionGroup as errors:  # one for each address of the name
        is_slow = errors.subgroup(TimeoutError) is not None  # somebody may be there
        return not is_slow and errors.subgroup(ConnectionRefusedError) is not None
    except OSError:
        return False
    return False


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
    """Return topic → partition → end offset, as a reader of committed records sees it."""
    return _offsets(kafka, topics, names, OffsetSpec.latest())


def start_offsets(
    kafka: Kafka, topics: ClusterTopics, names: Iterable[str]
) -> dict[str, dict[int, int]]:
    """Return topic → partition → log start offset."""
    return _offsets(kafka, topics, names, OffsetSpec.earliest())


def topic_settings(kafka: Kafka, topic: str) -> list[ConfigEntry]:
    """Return the settings of a topic, with their defaults. Raises PipelineError."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = admin_of(kafka)
    try:
        asked = admin.describe_configs([resource], request_timeout=ANSWER_TIMEOUT_S)
        found: Mapping[str, ConfigEntry] = asked[resource].result(2 * ANSWER_TIMEOUT_S)
    except KafkaException as error:
        raise PipelineError(
            f"the settings of topic {topic!r} are not to be had at {kafka.bootstrap}: "
            f"{error.args[0].str()}"
        ) from error
    return list(found.values())


def topic_id(kafka: Kafka, name: str) -> str:
    """Return the id of a topic; empty if the cluster is too old.

    A later topic of the same name has another id.
    """
    return topic_ids(kafka, [name])[name]


def topic_ids(kafka: Kafka, names: Iterable[str]) -> dict[str, str]:
    """Return topic → id; see `topic_id`. Raises PipelineError."""
    wanted = list(names)
    if not wanted:
        return {}
    admin = admin_of(kafka)  # kept until it has answered: its end is the end of its questions
    futures = admin.describe_topics(TopicCollection(wanted), request_timeout=ANSWER_TIMEOUT_S)
    try:
        return {
            name: id_text(futures[name].result(timeout=ANSWER_TIMEOUT_S).topic_id)
            for name in wanted
        }
    except KafkaException as error:
        raise PipelineError(_no_answer(kafka, error, admin)) from error


def ends_of(kafka: Kafka, partitions: Iterable[ids.TopicPartition], admin: Admin) -> Offsets:
    """Return the end offset of each partition, which must exist. Raises PipelineError."""
    return _listed(kafka, partitions, OffsetSpec.latest(), admin)


def _offsets(
    kafka: Kafka, topics: ClusterTopics, names: Iterable[str], spec: OffsetSpec
) -> dict[str, dict[int, int]]:
    wanted = [
        ids.TopicPartition(name, number)
        for name in names
        for number in range(topics.partitions[name])
    ]
    found: dict[str, dict[int, int]] = {}
    for where, offset in _listed(kafka, wanted, spec, admin_of(kafka)).items():
        found.setdefault(where.topic, {})[where.partition] = offset
    return found


def _listed(
    kafka: Kafka,
    partitions: Iterable[ids.TopicPartition],
    spec: OffsetSpec,
    admin: Admin,
) -> Offsets:
    wanted = {TopicPartition(*where): spec for where in partitions}
    if not wanted:
        return {}
    try:
        answers = admin.list_offsets(wanted, request_timeout=ANSWER_TIMEOUT_S)
        return {
            ids.TopicPartition(where.topic, where.partition): future.result(
                timeout=ANSWER_TIMEOUT_S
            ).offset
            for where, future in answers.items()
        }
    except KafkaException as error:
        raise PipelineError(_no_answer(kafka, error, admin)) from error


class Admin(AdminClient):
    """A client that keeps the last error of its connections: a failed answer has no reason."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.last_error: KafkaError | None = None
        super().__init__(settings | {"error_cb": self._note})

    def _note(self, error: KafkaError) -> None:
        # That all brokers are down follows the reason, and says nothing new.
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self.last_error = error


def admin_of(kafka: Kafka) -> Admin:
    """Return a client with the job's settings. Raises PipelineError if a setting is refused."""
    settings = with_token(for_admin(kafka.settings))
    try:
        return Admin({**settings, BOOTSTRAP: kafka.bootstrap})
    except KafkaException as error:
        raise PipelineError(
            f"the Kafka client does not take its settings: {error.args[0].str()}; see --kafka"
        ) from error


def _no_answer(kafka: Kafka, error: KafkaException, admin: Admin) -> str:
    admin.poll(0)  # the errors wait for it
    last = admin.last_error
    if last is not None and last.code() in _REFUSALS:
        return (
            f"the brokers at {kafka.bootstrap} and this client do not agree ({last.str()}): "
            "correct the client's settings, see --kafka and --kafka-config"
        )
    reason = (last or error.args[0]).str()
    return (
        f"no broker answers at {kafka.bootstrap} ({reason}): start one (minibroker serve), say "
        "where it is with --bootstrap HOST:PORT, or give what its TLS and logins need with "
        "--kafka-config"
    )


def _there_are(topics: ClusterTopics) -> str:
    names = sorted(name for name in topics.partitions if not name.startswith("__"))
    if not names:
        return "the cluster has none"
    shown = ", ".join(names[:5])
    return f"the cluster has {shown}" + (f" and {len(names) - 5} more" if len(names) > 5 else "")
