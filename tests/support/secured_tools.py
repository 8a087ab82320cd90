"""Kafka's command line tools on a secured broker: what each prints, allowed and denied.

`play` runs the tools of one release, all in one JVM, and returns what they printed. The same
commands are recorded with Apache Kafka 3.9.1 (`tests/golden/record_secured_tools.py`). The broker
has the settings of `secured_clients.broker_settings`, and a topic `secret`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tests.support import java
from tests.support.kafka_tools import tool_session
from tests.support.secured_clients import ADMIN_PASSWORD, ADMINISTRATOR, ALICE, PASSWORD

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.kafka_tools import Outcome
    from tests.support.secured_clients import Stores

RELEASES: Final = {"3.9.1": java.KAFKA_39, "4.3.1": java.TOOLS_43}
_TOOLS: Final = "org.apache.kafka.tools"
CLASSES: Final = {
    "kafka-acls": {"3.9.1": "kafka.admin.AclCommand", "4.3.1": f"{_TOOLS}.AclCommand"},
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": f"{_TOOLS}.consumer.ConsoleConsumer",
    "kafka-console-producer": {
        "3.9.1": "kafka.tools.ConsoleProducer",
        "4.3.1": f"{_TOOLS}.ConsoleProducer",
    },
    "kafka-consumer-groups": f"{_TOOLS}.consumer.group.ConsumerGroupCommand",
    "kafka-delegation-tokens": f"{_TOOLS}.DelegationTokenCommand",
    "kafka-topics": f"{_TOOLS}.TopicCommand",
    "kafka-transactions": f"{_TOOLS}.TransactionsCommand",
}
"""Tool → its class, or release → its class."""
SETTINGS: Final = {"delegation.token.secret.key": "of all brokers"}
"""Settings of the broker, besides those of `broker_settings`."""

_SECURITY: Final = "org.apache.kafka.common.security"
_CONFIG_FLAGS: Final = {
    ("kafka-console-producer", "3.9.1"): "--producer.config",
    ("kafka-console-consumer", "3.9.1"): "--consumer.config",
}


class Tools:
    """The tools of one release, and what they printed."""

    def __init__(
        self,
        release: str,
        run: Callable[..., Outcome],
        address: str,
        stores: Stores,
        directory: Path,
    ) -> None:
        self.release = release
        self.outputs: dict[str, list[str]] = {}
        """Command → the lines that it printed, sorted, and the reason of its failure."""
        self.masks: dict[str, str] = {}
        """Text of this run → what is noted."""
        self._run = run
        self._address = address
        self._stores = stores
        self._directory = directory
        self.add_user(ADMINISTRATOR, "PLAIN", ADMIN_PASSWORD)
        self.add_user(ALICE, "PLAIN", PASSWORD)

    def add_user(
        self, user: str, mechanism: str, password: str, *, name: str = "", options: str = ""
    ) -> None:
        """Write the settings of a client; `name`: of the user whose password is another."""
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        (self._directory / f"{user}.properties").write_text(
            "security.protocol=SASL_SSL\n"
            f"sasl.mechanism={mechanism}\n"
            f"sasl.jaas.config={_SECURITY}.{module} required"
            f' username="{name or user}" password="{password}"{options};\n'
            "ssl.truststore.type=PEM\n"
            f"ssl.truststore.location={self._stores.ca}\n"
            # A client that waits for what it never gets tells it soon.
            "default.api.timeout.ms=20000\nrequest.timeout.ms=20000\n"
        )

    def call(self, user: str, command: str, *, stdin: str = "") -> str:
        """Run a command as a user, note what it printed, and return it; `stdin`: its input."""
        tool, *arguments = command.split(" ")
        class_names = CLASSES[tool]
        main_class = class_names if isinstance(class_names, str) else class_names[self.release]
        config = str(self._directory / f"{user}.properties")
        flag = _CONFIG_FLAGS.get((tool, self.release), "--command-config")
        # A blank of a value stands as ~.
        words = [word.replace("~", " ") for word in arguments]
        redirection = [f"< {stdin}".replace("\n", "\\n")] if stdin else []
        outcome = self._run(
            main_class, "--bootstrap-server", self._address, flag, config, *words, *redirection
        )
        lines = self.lines_of(outcome.text)
        if outcome.failure is not None:
            lines.add(self.masked(f"failed: {outcome.failure}"))
        name = f"{user}: {self.masked(command)}"
        times = sum(old_name.partition(" (")[0] == name for old_name in self.outputs)
        self.outputs[f"{name} ({times + 1})" if times else name] = sorted(lines - {""})
        return outcome.text

    def lines_of(self, text: str) -> set[str]:
        """Return the lines of an output, without those of the log."""
        return {self.masked(line) for line in text.splitlines() if not _NOISE.match(line)}

    def masked(self, line: str) -> str:
        """Return a line without what differs from run to run."""
        for secret, mask in self.masks.items():
            line = line.replace(secret, mask)
        for pattern, mask in _MASKS:
            line = re.sub(pattern, mask, line)
        line = " ".join(line.split())
        # Which quota is first depends on a map.
        head, are, quotas = line.partition(" are ")
        return head + are + ", ".join(sorted(quotas.split(", "))) if "_" in quotas else line


_NOISE: Final = re.compile(r"\d{4}-\d\d-\d\d[ T]|\s+at |SLF4J|\s*\.\.\. \d+ more")
"""Lines of the log and of a stack."""
_MASKS: Final = (
    (r"127\.0\.0\.1:\d+", "ADDRESS"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d", "TIME"),
    (r"TopicId: \S+", "TopicId: ID"),
    (r"/\S+\.properties", "FILE"),
    (r"console-consumer-[\w-]+", "MEMBER"),
    # Kafka prints the request with its buffers.
    (r"Request Request\(.*\) is not authorized\.", "Cluster authorization failed."),
    # Here minibroker follows Kafka 4, which sends no text.
    ("The topic authorization is failed.", "Topic authorization failed."),
)


def play(release: str, address: str, stores: Stores, directory: Path) -> dict[str, list[str]]:
    """Return command → what it printed, by the tools of a release; `address`: of SASLTLS."""
    with tool_session(RELEASES[release]) as run:
        tools = Tools(release, run, address, stores, directory)
        _topics_and_acls(tools)
        _records(tools)
        _groups_and_transactions(tools)
        _users(tools)
        _tokens(tools)
        _removal(tools)
    return tools.outputs


def _topics_and_acls(tools: Tools) -> None:
    admin, alice = ADMINISTRATOR, ALICE
    for topic in ("orders", "secret"):
        tools.call(admin, f"kafka-topics --create --topic {topic}")
    tools.call(alice, "kafka-topics --list")
    for added in (
        "--allow-principal User:alice --operation Read --operation Describe --topic orders",
        "--allow-principal User:alice --operation All --topic pre- --resource-pattern-type"
        " prefixed",
        "--allow-principal User:alice --producer --topic orders --transactional-id tx --idempotent",
        "--allow-principal User:alice --consumer --topic orders --group app",
        "--deny-principal User:alice --deny-host 127.0.0.9 --operation Write --topic orders",
        "--allow-principal User:* --allow-host 10.0.0.1 --operation Read --topic *",
        "--allow-principal User:alice --operation Describe --operation DescribeConfigs --cluster",
        "--allow-principal User:alice --operation DescribeTokens --user-principal User:bob",
        "--allow-principal alice --operation Read --topic orders",
    ):
        tools.call(admin, f"kafka-acls --add {added}")
    for filtered in (
        "",
        " --topic orders",
        " --topic pre-it --resource-pattern-type match",
        " --group app --principal User:alice",
        " --cluster",
    ):
        tools.call(admin, f"kafka-acls --list{filtered}")
    tools.call(alice, "kafka-acls --list")
    tools.call(
        alice, "kafka-acls --add --allow-principal User:alice --operation All --topic secret"
    )
    tools.call(alice, "kafka-acls --remove --topic orders --force")
    tools.call(alice, "kafka-topics --list")
    tools.call(alice, "kafka-topics --describe --topic orders")
    tools.call(alice, "kafka-topics --describe --topic secret")
    tools.call(alice, "kafka-topics --create --topic other")
    tools.call(alice, "kafka-topics --create --topic pre-made")
    tools.call(alice, "kafka-topics --alter --topic orders --partitions 4")
    tools.call(alice, "kafka-topics --delete --topic orders")


def _records(tools: Tools) -> None:
    options = "--from-beginning --max-messages 1 --timeout-ms 10000"
    tools.call(ALICE, "kafka-console-producer --topic orders", stdin="hello\n")
    tools.call(ALICE, "kafka-console-producer --topic secret", stdin="hello\n")
    tools.call(ALICE, f"kafka-console-consumer --topic orders --group app {options}")
    tools.call(ALICE, f"kafka-console-consumer --topic orders --group other {options}")
    tools.call(ALICE, f"kafka-console-consumer --topic secret --group app {options}")
    tools.add_user("mallory", "PLAIN", "wrong", name=ALICE)
    tools.call("mallory", "kafka-console-producer --topic orders", stdin="hello\n")
    tools.call("mallory", f"kafka-console-consumer --topic orders --group app {options}")
    tools.call("mallory", "kafka-topics --list")


def _groups_and_transactions(tools: Tools) -> None:
    for user in (ADMINISTRATOR, ALICE):
        tools.call(user, "kafka-consumer-groups --list")
        tools.call(user, "kafka-consumer-groups --describe --group app --offsets")
        tools.call(user, "kafka-transactions list")
    tools.call(ALICE, "kafka-consumer-groups --describe --group other --offsets")
    tools.call(ALICE, "kafka-consumer-groups --delete --group app")
    tools.call(
        ALICE,
        "kafka-consumer-groups --reset-offsets --to-earliest --topic orders --group app --execute",
    )
    tools.call(ALICE, "kafka-transactions describe --transactional-id tx")
    tools.call(ALICE, "kafka-transactions describe --transactional-id other")
    tools.call(ALICE, "kafka-transactions describe-producers --topic secret --partition 0")


def _users(tools: Tools) -> None:
    carol = "--entity-type users --entity-name carol"
    client = "--entity-type clients --entity-name c"
    scram = "SCRAM-SHA-256=[iterations=8192,password=carol-secret]"
    for words in (
        f"--alter --add-config {scram},SCRAM-SHA-512=[password=carol-secret] {carol}",
        f"--describe {carol}",
        f"--alter --add-config producer_byte_rate=1024,request_percentage=50 {carol}",
        f"--alter --add-config consumer_byte_rate=2048 {carol} {client}",
        "--alter --add-config consumer_byte_rate=4096 --entity-type users --entity-default",
        f"--describe {carol}",
        "--describe --entity-type users",
        f"--describe {carol} {client}",
        f"--alter --delete-config SCRAM-SHA-512 {carol}",
        f"--alter --delete-config producer_byte_rate {carol}",
        f"--alter --delete-config SCRAM-SHA-512 {carol}",
        f"--alter --add-config SCRAM-SHA-256=[iterations=1,password=x] {carol}",
        f"--describe {carol}",
    ):
        tools.call(ADMINISTRATOR, f"kafka-configs {words}")
    for words in (
        f"--alter --add-config {scram} {carol}",
        f"--alter --add-config producer_byte_rate=1 {carol}",
        f"--describe {carol}",
        "--describe --entity-type topics --entity-name secret",
        "--alter --add-config retention.ms=1 --entity-type topics --entity-name orders",
        "--alter --add-config log.cleaner.threads=1 --entity-type brokers --entity-name 0",
    ):
        tools.call(ALICE, f"kafka-configs {words}")
    tools.add_user("carol", "SCRAM-SHA-256", "carol-secret")
    tools.call("carol", "kafka-topics --list")
    tools.call(ADMINISTRATOR, f"kafka-configs --alter --delete-config SCRAM-SHA-256 {carol}")


def _tokens(tools: Tools) -> None:
    create = "kafka-delegation-tokens --create --max-life-time-period -1"
    create += " --renewer-principal User:carol"
    output = tools.call(ALICE, create)
    token_id, hmac = output.splitlines()[-1].split()[:2]
    tools.masks = {token_id: "TOKEN", hmac: "HMAC"}
    tools.outputs[f"{ALICE}: {create}"] = sorted(tools.lines_of(output) - {""})
    tools.add_user("token", "SCRAM-SHA-256", hmac, name=token_id, options=' tokenauth="true"')
    tools.call(ALICE, "kafka-delegation-tokens --describe --owner-principal User:alice")
    tools.call(ADMINISTRATOR, "kafka-delegation-tokens --describe")
    tools.call("token", "kafka-topics --list")
    tools.call("token", "kafka-delegation-tokens --create --max-life-time-period -1")
    renew = f"kafka-delegation-tokens --renew --renew-time-period 3600000 --hmac {hmac}"
    tools.call(ALICE, renew)
    tools.call(ADMINISTRATOR, renew)
    tools.call(ALICE, "kafka-delegation-tokens --renew --renew-time-period -1 --hmac YWJj")
    tools.call(ALICE, f"kafka-delegation-tokens --expire --expiry-time-period -1 --hmac {hmac}")
    tools.call(ALICE, "kafka-delegation-tokens --describe")
    tools.call("token", "kafka-topics --list --exclude-internal")


def _removal(tools: Tools) -> None:
    for removed in (
        "--allow-principal User:alice --producer --topic orders --transactional-id tx --idempotent",
        "--topic pre- --resource-pattern-type prefixed",
        "--topic nowhere",
        "--group app",
    ):
        tools.call(ADMINISTRATOR, f"kafka-acls --remove {removed} --force")
    tools.call(ADMINISTRATOR, "kafka-acls --list --resource-pattern-type any")
