"""The clients of the exactly-once tests: processes that say what they do, line by line.

Each is Fire.java on Kafka's own client, or `librdkafka_client`; both print the same lines, and go
on whatever happens to a broker.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

from tests.fire.history import VALUES_PER_WRITER, History, Read, check_movers, check_writers
from tests.fire.plan import PARTITIONS, WAIT_S
from tests.fire.reading import committed_records
from tests.support import java

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

JARS = {"java-3.9": java.KAFKA_39, "java-4.4": java.KAFKA_44}
"""Clients in Java: the first has the first protocol of transactions, the second the second."""

LIBRDKAFKA = "librdkafka"
STACKS_S = 2.0


def command_of(library: str, arguments: list[str]) -> list[str]:
    """Return the command line of a client. Raises MissingError where Java lacks."""
    if library == LIBRDKAFKA:
        return [sys.executable, "-m", "tests.fire.librdkafka_client", *arguments]
    classes = java.compiled("Fire", java.KAFKA_39)
    options = ["-XX:+DisplayVMOutputToStderr"]  # stacks, too
    return java.java_command(JARS[library], "Fire", *arguments, classes=classes, options=options)


class Client:
    """One process and its output."""

    def __init__(self, progress: threading.Condition, log: Path, command: list[str]) -> None:
        self.history = History()
        self.committed = 0
        self.is_ready = False
        self._progress = progress
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.endswith("\n"):
                return  # it was killed in the middle of a word
            with self._progress:
                self.history.add(line)
                self.committed += line.startswith("commit ")
                self.is_ready = self.is_ready or line == "ready\n"
                self._progress.notify_all()

    def tell_stacks(self) -> None:
        """Have the process write where its threads stand, into its log."""
        self._process.send_signal(signal.SIGQUIT)

    def kill(self) -> None:
        """Kill the process with -9."""
        self._process.kill()
        self._end()

    def stop(self) -> None:
        """Stop after the current transaction."""
        assert self._process.stdin is not None
        if self._process.poll() is None:
            self._process.stdin.write("stop\n")
            self._process.stdin.flush()
        self._process.wait(WAIT_S)
        self._end()

    def _end(self) -> None:
        self._process.wait(WAIT_S)
        self._reader.join(WAIT_S)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


class Clients:
    """All clients of a test, including the killed ones.

    A client's name is its role, a hyphen, and its number. A writer commits transactions to the
    input, a sender sends to it without transactions, a mover carries it to the output.
    """

    def __init__(self, address: str, directory: Path, libraries: dict[str, str]) -> None:
        """`libraries`: the name of each client → its library."""
        self.address = address
        self.directory = directory
        self.progress = threading.Condition()
        self.running: dict[str, Client] = {}
        self.writers: list[Client] = []
        self.senders: list[Client] = []
        self.movers: list[Client] = []
        self._libraries = libraries

    def start_all(self) -> None:
        """Start every client and wait until all are at work."""
        for name in self._libraries:
            self.start(name)
        clients = list(self.running.values())
        self.wait("all clients", lambda: all(client.is_ready for client in clients))

    def start(self, name: str) -> None:
        """Start a client; a writer writes values of its own, also a successor of the same name."""
        role = name.partition("-")[0]
        if role == "mover":
            self.movers.append(self._start(name, "move", "input", "output", "movers", name))
            return
        first = str((len(self.writers + self.senders) + 1) * VALUES_PER_WRITER)
        verb, histories = ("write", self.writers) if role == "writer" else ("send", self.senders)
        histories.append(self._start(name, verb, "input", str(PARTITIONS), name, first))

    def _start(self, name: str, verb: str, *arguments: str) -> Client:
        command = command_of(self._libraries[name], [verb, self.address, *arguments])
        client = Client(self.progress, self.directory / f"{name}.log", command)
        self.running[name] = client
        return client

    def replace(self, name: str) -> None:
        """Kill a client and start its successor with the same transactional id."""
        self.running.pop(name).kill()
        self.start(name)

    def kill_all(self) -> None:
        """Kill every client that still runs."""
        for client in self.running.values():
            client.kill()

    def wait(self, event: str, condition: Callable[[], bool]) -> None:
        """Wait until `condition`, asked at each line of a client, holds."""
        with self.progress:
            met = self.progress.wait_for(condition, WAIT_S)
        if not met:
            self._tell_stacks()
        errors = {name: c.history.errors[-1:] for name, c in self.running.items()}
        assert met, f"waited {WAIT_S} s for {event}; the clients' last errors: {errors}"

    def _tell_stacks(self) -> None:
        for client in self.running.values():
            client.tell_stacks()
        threading.Event().wait(STACKS_S)  # no line of theirs says that they have done it

    def wait_for_transactions(self, count: int, condition: str) -> None:
        """Wait until `count` more transactions are committed."""
        goal = self.committed() + count
        self.wait(condition, lambda: self.committed() >= goal)

    def have_transactions(self, count: int, seconds: float) -> None:
        """Wait until `count` more transactions are committed, but no longer than `seconds`."""
        goal = self.committed() + count
        with self.progress:
            self.progress.wait_for(lambda: self.committed() >= goal, seconds)

    def wait_for_each(self, condition: str) -> None:
        """Wait until each client that runs has committed once more."""
        counts = {name: client.committed for name, client in self.running.items()}
        self.wait(condition, lambda: all(self.running[n].committed > c for n, c in counts.items()))

    def committed(self) -> int:
        """Return how many transactions were committed for sure; those of senders do not count."""
        return sum(client.committed for client in self.writers + self.movers)

    def end(self) -> tuple[Read, list[str]]:
        """Stop all, writers first; return what was written and the faults that were found."""
        for name in [name for name in self.running if not name.startswith("mover")]:
            self.running.pop(name).stop()
        source = committed_records(self.address, "input")
        moved = sum(map(len, source))
        target: Read = []
        while sum(map(len, target)) < moved:
            old_count = self.committed()
            target = committed_records(self.address, "output")
            if sum(map(len, target)) < moved:
                self.wait("the movers", lambda old_count=old_count: self.committed() > old_count)  # type: ignore[misc]
        for name in list(self.running):
            self.running.pop(name).stop()
        target = committed_records(self.address, "output")
        assert committed_records(self.address, "input") == source
        writers = self.writers + self.senders
        wrong = check_writers([client.history for client in writers], source)
        wrong += check_movers([client.history for client in self.movers], source, target)
        return source, wrong
