"""Members of groups as processes of their own, so that one can be killed; with their output.

`start_member` runs GroupMember.java, confluent_member.py, python_member.py, node/group_member.js or
go/main.go, which print the same lines, or kcat. The lines are read from their logs, and a wait is
for a line of a log.
"""

from __future__ import annotations

import shutil
import sys
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.build_files import BUILD, required
from tests.support.java import KAFKA_39, KAFKA_44, compiled, java_command, log_option
from tests.support.processes import ManagedProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

SUPPORT = Path(__file__).parent
NODE_MODULES = BUILD / "node" / "node_modules"
SARAMA_MEMBER = BUILD / "sarama-member"
JAVA_CLIENTS = {"java-3.9.1": KAFKA_39, "java-4.4.0": KAFKA_44}
SESSION_MS = 5000
"""Session time-out of classic members, if the broker's `group.min.session.timeout.ms` allows it."""
PATIENT_SESSION_MS = 30_000
"""Likewise where no member is killed."""
WAIT_S = 180.0


class GroupMember:
    """A running member; `has` and `values` come from its output so far."""

    def __init__(
        self, command: list[str], log_path: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._log_path = log_path
        self.process = ManagedProcess(command, log_path, environment=environment)

    def lines(self, word: str) -> list[list[str]]:
        """Return the rest of each line that begins with `word`, in words."""
        if not self._log_path.exists():
            return []
        # The last line may be half written.
        lines = self._log_path.read_text(errors="replace").split("\n")[:-1]
        return [line.split()[1:] for line in lines if line.split()[:1] == [word]]

    @property
    def has(self) -> list[int]:
        """Return its partitions."""
        lists = self.lines("has")
        return [int(number) for number in lists[-1]] if lists else []

    @property
    def assignments(self) -> list[list[str]]:
        """Return its partitions after each change, without changes that bring the same."""
        return [partitions for partitions, _ in groupby(self.lines("has"))]

    @property
    def values(self) -> list[str]:
        """Return the values that it read, in order."""
        return [words[0] for words in self.lines("read")]

    def wait_until(self, probe: Callable[[], bool], event: str) -> None:
        """Wait until `probe` is true, while the member runs. Raises StartError."""
        self.process.wait_until(probe, WAIT_S, event)

    def kill(self) -> None:
        """Send SIGKILL: the member does not leave the group."""
        self.process.kill()

    def leave(self) -> None:
        """Send SIGTERM: the member leaves the group."""
        if self.process.is_running:
            self.process.popen.terminate()
            self.process.popen.wait(WAIT_S)


class KcatMember(GroupMember):
    """A member with `kcat -G`, which prints lines of its own."""

    @property
    def has(self) -> list[int]:
        """Return its partitions: the last of kcat's lines about its group."""
        lines = [line for line in self.lines("%") if line[0] == "Group"]
        if not lines or "assigned:" not in lines[-1]:
            return []
        places = lines[-1][lines[-1].index("assigned:") + 1 :]
        return sorted(int(place.strip("[],")) for place in places if place.startswith("["))


def start_kcat(directory: Path, name: str, address: str, group_id: str, topic: str) -> KcatMember:
    """Start a member of a classic group; it commits once a second."""
    options = (
        f"session.timeout.ms={SESSION_MS}",
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
    """Return options for a JVM with a consumer or two; it logs warnings to stderr."""
    return ("-Xmx128m", "-Dlog4j2.disable=true", log_option("tools"))


def start_java(
    jars: Path, log_path: Path, arguments: tuple[str, ...], session_ms: int
) -> GroupMember:
    """Start GroupMember.java with the client of `jars`."""
    command = java_command(
        jars,
        "GroupMember",
        *arguments,
        options=(*java_options(), f"-Dsession.timeout.ms={session_ms}"),
        classes=compiled("GroupMember"),
    )
    return GroupMember(command, log_path)


def start_member(client: str, directory: Path, name: str, *arguments: str) -> GroupMember:
    """Start a member of any client.

    `client`: java (4.4.0), one of JAVA_CLIENTS, confluent, kafka-python, aiokafka, kafkajs, sarama
    or kcat. `arguments`: address, group, topic, and for Java and confluent protocol and instance.
    """
    log_path = directory / f"{name}.log"
    if client == "kcat":
        return start_kcat(directory, name, *arguments)
    if client in {"kafka-python", "aiokafka"}:
        script = str(SUPPORT / "python_member.py")
        return GroupMember([sys.executable, script, client, *arguments], log_path)
    if client == "kafkajs":
        script = str(SUPPORT / "node" / "group_member.js")
        required(NODE_MODULES.parent / ".done")
        modules = {"NODE_PATH": str(NODE_MODULES)}
        return GroupMember(["node", script, *arguments], log_path, modules)
    if client == "sarama":
        return GroupMember([str(required(SARAMA_MEMBER)), *arguments], log_path)
    if client == "confluent":
        return GroupMember(
            [sys.executable, str(SUPPORT / "confluent_member.py"), *arguments], log_path
        )
    if client in JAVA_CLIENTS:
        return start_java(JAVA_CLIENTS[client], log_path, arguments, SESSION_MS)
    return start_java(KAFKA_44, log_path, arguments, PATIENT_SESSION_MS)


def missing_client(client: str) -> str | None:
    """Return why members of this kind cannot run here, naming the package to install, or None."""
    if client == "kcat" and shutil.which("kcat") is None:
        return "kcat is not installed (Debian: apt install kcat)"
    if client == "kafkajs" and shutil.which("node") is None:
        return "Node is not installed: install Node 18 or newer with npm"
    return missing_go(SARAMA_MEMBER) if client == "sarama" else None


def missing_go(built: Path) -> str | None:
    """Return that Go is not installed, or None: it is, or the program is built already."""
    if shutil.which("go") is None and not built.exists():
        return "Go is not installed: install Go 1.26 or newer"
    return None


def read_by(members: Iterable[GroupMember]) -> list[str]:
    """Return the values that all of them read, with duplicates."""
    return [value for member in members for value in member.values]


def stop_all(members: Iterable[GroupMember]) -> None:
    """Stop the members that still run."""
    for member in members:
        member.kill()
