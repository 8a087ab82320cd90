"""Members of groups as processes of their own, so that one can be killed: what each has and reads.

`start_member` runs GroupMember.java, confluent_member.py, python_member.py, node/group_member.js
or go/main.go, which print the same lines, or kcat. The lines are read from their logs: a wait is
for what the log says.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.java import KAFKA_39, KAFKA_44, ROOT, SOURCES, compiled, java_command
from tests.support.processes import ManagedProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

SUPPORT = Path(__file__).parent
NODE_MODULES = ROOT / "build" / "node" / "node_modules"
SARAMA_MEMBER = ROOT / "build" / "sarama-member"
JAVA_CLIENTS = {"java-3.9.1": KAFKA_39, "java-4.4.0": KAFKA_44}
SESSION_MS = 2000
"""Of classic members, where the broker's `group.min.session.timeout.ms` lets them."""
WAIT_S = 60.0


class GroupMember:
    """A running member; `has` and `values` are what it said so far."""

    def __init__(
        self, command: list[str], log_path: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._log_path = log_path
        self.process = ManagedProcess(command, log_path, environment=environment)

    def lines(self, word: str) -> list[list[str]]:
        """The rest of each line that began with `word`, in words."""
        if not self._log_path.exists():
            return []
        # The last line may be half written.
        lines = self._log_path.read_text(errors="replace").split("\n")[:-1]
        return [line.split()[1:] for line in lines if line.split()[:1] == [word]]

    @property
    def has(self) -> list[int]:
        """Its partitions."""
        said = self.lines("has")
        return [int(number) for number in said[-1]] if said else []

    @property
    def values(self) -> list[str]:
        """What it read, in order."""
        return [words[0] for words in self.lines("read")]

    def wait_until(self, probe: Callable[[], bool], what: str) -> None:
        """While it runs. Raises StartError."""
        self.process.wait_until(probe, WAIT_S, what)

    def kill(self) -> None:
        """SIGKILL: it does not leave the group."""
        self.process.kill()

    def leave(self) -> None:
        """SIGTERM: it leaves the group."""
        if self.process.is_running:
            self.process.popen.terminate()
            self.process.popen.wait(WAIT_S)


class KcatMember(GroupMember):
    """`kcat -G`, which says what it has in words of its own."""

    @property
    def has(self) -> list[int]:
        """Its partitions: the last of kcat's lines about its group."""
        said = [line for line in self.lines("%") if line[0] == "Group"]
        if not said or "assigned:" not in said[-1]:
            return []
        places = said[-1][said[-1].index("assigned:") + 1 :]
        return sorted(int(place.strip("[],")) for place in places if place.startswith("["))


def start_kcat(directory: Path, name: str, address: str, group_id: str, topic: str) -> KcatMember:
    """A member of a classic group; it commits once a second."""
    options = (
        "session.timeout.ms=2000",
        "heartbeat.interval.ms=200",
        "auto.offset.reset=earliest",
        "auto.commit.interval.ms=1000",
        "topic.metadata.refresh.interval.ms=500",
    )
    command = ["kcat", "-b", address, "-u", "-f", "read %s\\n"]
    for option in options:
        command += ["-X", option]
    return KcatMember([*command, "-G", group_id, topic], directory / f"{name}.log")


def java_options() -> tuple[str, ...]:
    """Of a JVM with a consumer or two; it logs to stderr what is worth a warning."""
    log4j = SOURCES / "tools.log4j.properties"
    return ("-Xmx128m", "-Dlog4j2.disable=true", f"-Dlog4j.configuration=file:{log4j}")


def start_java(
    jars: Path, log_path: Path, arguments: tuple[str, ...], session_ms: int
) -> GroupMember:
    """GroupMember.java with the client of `jars`."""
    command = java_command(
        jars,
        "GroupMember",
        *arguments,
        options=(*java_options(), f"-Dsession.timeout.ms={session_ms}"),
        classes=compiled("GroupMember"),
    )
    return GroupMember(command, log_path)


def start_member(client: str, directory: Path, name: str, *arguments: str) -> GroupMember:
    """`client`: java (4.4.0), one of JAVA_CLIENTS, confluent, kafka-python, aiokafka, kafkajs,
    sarama or kcat; `arguments`: address, group, topic, and for Java and confluent protocol and
    instance."""
    log_path = directory / f"{name}.log"
    if client == "kcat":
        return start_kcat(directory, name, *arguments)
    if client in {"kafka-python", "aiokafka"}:
        script = str(SUPPORT / "python_member.py")
        return GroupMember([sys.executable, script, client, *arguments], log_path)
    if client == "kafkajs":
        script = str(SUPPORT / "node" / "group_member.js")
        modules = {"NODE_PATH": str(NODE_MODULES)}
        return GroupMember(["node", script, *arguments], log_path, modules)
    if client == "sarama":
        return GroupMember([str(SARAMA_MEMBER), *arguments], log_path)
    if client == "confluent":
        return GroupMember(
            [sys.executable, str(SUPPORT / "confluent_member.py"), *arguments], log_path
        )
    if client in JAVA_CLIENTS:
        return start_java(JAVA_CLIENTS[client], log_path, arguments, SESSION_MS)
    return start_java(KAFKA_44, log_path, arguments, 6000)


def missing_client(client: str) -> str | None:
    """Why members of this kind cannot run here, naming what to install, or None."""
    if client == "kcat" and shutil.which("kcat") is None:
        return "kcat is not installed (Debian: apt install kcat)"
    if client == "kafkajs" and shutil.which("node") is None:
        return "Node is not installed: install Node 18 or newer with npm, then run make kafkajs"
    if client == "kafkajs" and not (NODE_MODULES.parent / ".done").exists():
        return "build/node is missing: run make kafkajs, which needs npm"
    if client == "sarama" and not os.access(SARAMA_MEMBER, os.X_OK):
        return "build/sarama-member is missing: run make sarama, which needs Go 1.26"
    return None


def read_by(members: Iterable[GroupMember]) -> list[str]:
    """What all of them read, duplicates included."""
    return [value for member in members for value in member.values]


def stop_all(members: Iterable[GroupMember]) -> None:
    """End what is left of them."""
    for member in members:
        member.kill()
