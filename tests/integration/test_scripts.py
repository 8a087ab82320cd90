"""Kafka's scripts of the image beside Kafka's own: the same commands, output and exit codes.

Kafka 3.9's tools run in one JVM on one broker, ours on another one. Times, addresses, ids and stack
traces are masked; of a help page its first line counts. Groups of console consumers have random
names, so a group is named where groups are listed.
"""

from __future__ import annotations

import io
import re
import shlex
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from minibroker.container.scripts.__main__ import main
from minibroker.testing import Broker
from tests.support import java
from tests.support.kafka_tools import tool_session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.peers import ZooKeeper

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

CLASSES: Final = {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-console-producer": "kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-broker-api-versions": "kafka.admin.BrokerApiVersionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
}
CONFIG: Final = {
    "minibroker.cluster.id": "MkU3OEVBNTcwNTJENDM2Qk",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "1",
}


class Command(NamedTuple):
    """A command line, without the address of the broker, and what it reads."""

    line: str
    stdin: str = ""


TOPICS: Final = tuple(
    Command(f"kafka-topics {words}")
    for words in (
        "--create --topic orders --partitions 3 --replication-factor 1",
        "--create --topic orders --partitions 3 --replication-factor 1",
        "--create --if-not-exists --topic orders --partitions 3 --replication-factor 1",
        "--create --topic users --config cleanup.policy=compact --config segment.ms=60000",
        "-create -topic a.b",
        "--create --topic bad --config no.such=1",
        "--create --topic bad --replication-factor 3",
        "--create --topic bad/name",
        "--create --topic bad --partitions 0",
        "--create",
        "--topic orders",
        "--list --nonsense",
        "--list",
        "--list --exclude-internal",
        "--describe --topic orders",
        "--describe --topic or.*",
        "--describe",
        "--describe --topic missing",
        "--describe --topics-with-overrides",
        "--describe --under-replicated-partitions",
        "--alter --topic orders --partitions 4",
        "--alter --topic orders --partitions 2",
        "--alter --topic missing --partitions 2",
    )
)
CONFIGS: Final = tuple(
    Command(f"kafka-configs {words}")
    for words in (
        "--entity-type topics --entity-name users --describe",
        "--entity-type topics --entity-name users --alter"
        " --add-config retention.ms=1000,segment.bytes=1048576",
        "--topic users --describe",
        "--entity-type topics --entity-name users --alter --delete-config retention.ms",
        "--entity-type topics --entity-name users --alter --delete-config nothere",
        "--entity-type brokers --entity-name 0 --describe",
        "--entity-type brokers --entity-default --describe",
        "--entity-type brokers --entity-name 0 --alter --add-config log.retention.ms=5000",
        "--entity-type brokers --entity-name 0 --describe",
        "--entity-type users --entity-name alice --alter --add-config"
        " SCRAM-SHA-256=[iterations=8192,password=secret],SCRAM-SHA-512=[password=secret]",
        "--entity-type users --entity-name alice --describe",
        "--entity-type users --entity-name alice --alter --delete-config SCRAM-SHA-256",
        "--entity-type clients --entity-name c1 --alter --add-config producer_byte_rate=1000",
        "--entity-type clients --entity-name c1 --describe",
        "--entity-type users --describe",
    )
)
BROKERS: Final = (
    Command("kafka-get-offsets --topic users"),
    Command("kafka-get-offsets --topic orders --time earliest --partitions 0,1"),
    Command("kafka-get-offsets --topic-partitions users:0,orders:1-"),
    Command("kafka-get-offsets"),
    Command("kafka-get-offsets --topic missing"),
    Command("kafka-cluster cluster-id"),
    Command("kafka-broker-api-versions"),
)
KEYED: Final = "--property parse.key=true --property key.separator=:"
FIELDS: Final = " ".join(
    f"--property print.{part}=true" for part in ("key", "offset", "partition", "headers")
)
PRODUCERS: Final = (
    Command(f"kafka-console-producer --topic users {KEYED}", "a:1\nb:2\nc:3\n"),
    Command(f"kafka-console-producer --topic users {KEYED}", "nokey\n"),
    Command(
        "kafka-console-producer --topic a.b --property parse.headers=true"
        " --property null.marker=NULL --property headers.delimiter=/"
        " --compression-codec gzip --request-required-acks all",
        "h1:v1,h2:v2/value\nh:x/NULL\nNULL/no headers\n",
    ),
    Command("kafka-console-producer"),
    Command("kafka-console-consumer --topic users --from-beginning --timeout-ms 3000 --group g"),
)
CONSUMERS: Final = tuple(
    Command(f"kafka-console-consumer {words}")
    for words in (
        "--topic users --from-beginning --max-messages 3",
        "--topic users --from-beginning --max-messages 3 --property print.key=true"
        " --property key.separator=-",
        f"--topic users --from-beginning --max-messages 2 {FIELDS} --property print.value=false",
        f"--topic a.b --from-beginning --max-messages 3 {FIELDS} --property null.literal=<>"
        " --property print.timestamp=true --isolation-level read_committed --timeout-ms 5000",
        "--topic users --partition 0 --offset 1 --max-messages 1",
        "--topic users --partition 0 --offset latest --timeout-ms 500",
        "--topic users --offset 1",
        "--from-beginning",
        "--topic users --partition 0 --group g --max-messages 1",
        "--include us.* --from-beginning --max-messages 1",
    )
)
GROUPS: Final = tuple(
    Command(f"kafka-consumer-groups {words}")
    for words in (
        "--list",
        "--list --state",
        "--describe --group g",
        "--describe --group g --members",
        "--describe --group g --members --verbose",
        "--describe --group g --state",
        "--describe --group missing",
        "--reset-offsets --group g --topic users --to-earliest",
        "--reset-offsets --group g --topic users --to-earliest --dry-run",
        "--reset-offsets --group g --topic users --to-offset 1 --execute",
        "--reset-offsets --group g --topic users --to-offset 100 --execute",
        "--reset-offsets --group g --all-topics --shift-by -1 --execute",
        "--describe --group g",
        "--reset-offsets --group g --topic users:0 --to-latest --execute --export",
        "--reset-offsets --group g --topic users --to-datetime 2020-01-01T00:00:00.000 --execute",
        "--delete-offsets --group g --topic users",
        "--delete --group g",
        "--delete --group g",
    )
)
ENDS: Final = tuple(
    Command(f"kafka-topics {words}")
    for words in (
        "--delete --topic orders",
        "--delete --topic orders",
        "--delete --topic orders --if-exists",
    )
)
COMMANDS: Final = (*TOPICS, *PRODUCERS, *GROUPS, *CONSUMERS, *CONFIGS, *BROKERS, *ENDS)

_NOISE: Final = re.compile(
    r"^(\tat |\t\.\.\. |\d+ null$|Commands\$Ended: |\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+ ERROR "
    r"|Caused by: |joptsimple\.|org\.apache\.kafka\.common\.errors\.TimeoutException$)"
)
_MASKED: Final = (
    (re.compile(r"127\.0\.0\.1:\d+"), "HOST:PORT"),
    (re.compile(r"TopicId: [\w-]{22}"), "TopicId: ID"),
    (re.compile(r"CreateTime:\d+"), "CreateTime:TIME"),
    (re.compile(r"Optional\[(\w+)\]"), r"\1"),
    (re.compile(r" \[usable: -?\d+\]"), ""),
    (re.compile(r"[ ]+$"), ""),
    (re.compile(r"^\d{4}-\d\d-\d\d [\d:,]+ WARN [\w.]+: "), ""),
    (re.compile(r"__consumer_offsets:0:\d+"), "__consumer_offsets:0:N"),
    (re.compile(r"(the --execute option is missing\.).*"), r"\1"),
    (re.compile(r"(could not be deleted due to: ).*"), r"\1REASON"),
    (re.compile("ListClientMetricsResources"), "ListConfigResources"),  # its name since Kafka 4.1
)
_FORGOTTEN: Final = re.compile(r"(NEW-OFFSET|STATUS) {5,}")
"""Heads of tables behind which Kafka 3.9 forgets the line end; 4.3 does not."""
_HELP: Final = re.compile(r"^(Option  +Description|kafka-[\w-]+: )")
_UNSUPPORTED: Final = "): UNSUPPORTED"


class Answer(NamedTuple):
    """The masked output, and whether the command failed."""

    lines: list[str]
    has_failed: bool


def masked(text: str) -> list[str]:
    """Return the lines that count, without what differs from run to run."""
    lines: list[str] = []
    for line in _FORGOTTEN.sub(r"\1\n", text).splitlines():
        if _HELP.match(line):
            break
        if line and not _NOISE.match(line) and _UNSUPPORTED not in line:
            for pattern, word in _MASKED:
                line = pattern.sub(word, line)  # noqa: PLW2901  the line as it counts
            lines.append(line.rstrip(","))
    return lines


def words_of(command: Command, bootstrap: str) -> tuple[str, list[str]]:
    """Return the script's name and its words."""
    name, *words = shlex.split(command.line)
    return name, [*words, "--bootstrap-server", bootstrap]


def ours(command: Command, bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> Answer:
    name, words = words_of(command, bootstrap)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(command.stdin.encode())))
    out = io.StringIO()
    code = main([f"{name}.sh", *words], out, out)
    return Answer(masked(out.getvalue()), code != 0)


@pytest.fixture(scope="module")
def kafkas() -> Mapping[Command, list[Answer]]:
    """Return command → what Kafka's tools answer, one answer for each time that it comes."""
    answers: dict[Command, list[Answer]] = {}
    with Broker(config=CONFIG) as broker, tool_session(java.KAFKA_39) as run:
        for command in COMMANDS:
            name, words = words_of(command, broker.bootstrap)
            stdin = ["< " + command.stdin.replace("\n", "\\n")] if command.stdin else []
            outcome = run(CLASSES[name], *words, *stdin)
            answer = Answer(masked(outcome.text), outcome.failure is not None)
            answers.setdefault(command, []).append(answer)
    return answers


def test_the_scripts_answer_as_kafkas_do(
    kafkas: Mapping[Command, list[Answer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(COMMANDS) >= 40
    differences = []
    unread = {command: list(answers) for command, answers in kafkas.items()}
    with Broker(config=CONFIG) as broker:
        for command in COMMANDS:
            own, theirs = ours(command, broker.bootstrap, monkeypatch), unread[command].pop(0)
            if own != theirs:
                differences.append(f"{command.line}\n  kafka: {theirs}\n  ours:  {own}")
    assert not differences, "\n".join(differences)


def test_a_zookeeper_stands_for_the_brokers_that_are_registered_there(
    zookeeper: ZooKeeper,
) -> None:
    connect = f"{zookeeper.connect}/scripts"
    out = io.StringIO()
    with Broker(config={"zookeeper.connect": connect}, topics=["t"]):
        assert main(["kafka-topics.sh", "--list", "--zookeeper", connect], out, out) == 0
        assert out.getvalue() == "t\n"
    assert main(["kafka-topics.sh", "--list", "--zookeeper", f"{connect}2"], out, out) == 1
    assert f"--zookeeper {connect}2: " in out.getvalue()
