"""Kills a job (-9) again and again at random moments: its driver, a Python worker, the broker.

A job runs like a user's in processes of its own: Python, Spark's JVM, a daemon of Python workers
and the workers. They share one session, by which they are found:

| kind   | who dies                      | who goes on                                            |
|--------|-------------------------------|--------------------------------------------------------|
| driver | the JVM and the Python on top | workers, until they notice; a new driver starts at once|
| worker | one Python worker             | the driver, with a second attempt of the task          |
| broker | minibroker                    | the job, when it is there again, or it fails           |

A job that failed is started again, as a person would do. A kill comes when the progress (`done`)
has grown by a random number, and a random fraction of a second later.

`make pipeline-fire` (MINIBROKER_PIPELINE_KILLS=50) kills more often; MINIBROKER_PIPELINE_SEED makes
another choice.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.support.processes import ManagedProcess

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.broker import Minibroker

ROOT: Final = Path(__file__).resolve().parents[2]
KILLS: Final = int(os.environ.get("MINIBROKER_PIPELINE_KILLS", "2"))
SEED: Final = int(os.environ.get("MINIBROKER_PIPELINE_SEED", "1"))
KINDS: Final = ("driver", "worker", "broker")
BATCH_ROWS: Final = 100
WAIT_S: Final = 500.0
LOOK_S: Final = 0.05
SECONDS_A_KILL: Final = 120
"""Seconds of each kill in the time-out of a test, on a busy machine."""
TIMEOUT: Final = pytest.mark.timeout(600 + SECONDS_A_KILL * KILLS)

MASTER: Final = "local[2,4]"
"""Two cores, and a task may fail three times."""
SPARK_SETTINGS: Final = {
    "spark.driver.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.pollingDelay": "10ms",
}
COMMAND_LINE: Final = [
    *("--master", MASTER),
    *(part for key, value in SPARK_SETTINGS.items() for part in ("--conf", f"{key}={value}")),
]
"""The same settings as flags of `minibroker pipeline`."""


class Job:
    """A command that runs a job, and all its processes."""

    def __init__(self, command: list[str], log: Path) -> None:
        self.command = [sys.executable, "-m", *command]
        self.starts = 0
        self._log = log
        self._process: ManagedProcess | None = None
        self._sessions: list[int] = []

    @property
    def pid(self) -> int:
        """Return the process id of the driver's Python."""
        assert self._process is not None
        return self._process.popen.pid

    def start(self) -> None:
        """Start the command again; processes of an earlier start may still run."""
        self.starts += 1
        self._process = ManagedProcess(self.command, self._log, directory=ROOT)
        self._sessions.append(self.pid)

    def code(self) -> int | None:
        """Return the exit code, None while it runs."""
        assert self._process is not None
        return self._process.popen.poll()

    def kill(self, kind: str, dice: random.Random) -> bool:
        """Kill the driver, or one of the Python workers; return False if there is none."""
        if kind == "worker":
            workers = [process for process in processes_of(self.pid) if process.is_worker]
            return bool(workers) and end(dice.choice(workers).pid)
        self.kill_driver()
        return True

    def kill_driver(self) -> None:
        """Kill the JVM and its Python; the workers have to notice it themselves."""
        for process in processes_of(self.pid):
            if process.is_jvm:
                end(process.pid)
        end(self.pid)
        assert self._process is not None
        self._process.popen.wait(WAIT_S)

    def close(self) -> None:
        """Kill every process of the job."""
        for session in self._sessions:
            for process in processes_of(session):
                end(process.pid)
        if self._process is not None:
            self._process.kill()

    def tail(self) -> str:
        """Return the end of the output."""
        return self._log.read_text(errors="replace")[-3000:]


class Process:
    """A process of a session, from /proc."""

    def __init__(self, pid: int, parent: int, command: str) -> None:
        self.pid = pid
        self.parent = parent
        self.is_jvm = command.split("\0", maxsplit=1)[0].endswith("java")
        self.is_worker = "pyspark.daemon" in command


def processes_of(session: int) -> list[Process]:
    """Return the running processes; of the workers, not the daemon that forks them."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            command = (directory / "cmdline").read_text()
            fields = (directory / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        parent, its_session = int(fields[1]), int(fields[3])
        if its_session == session:
            found.append(Process(int(directory.name), parent, command))
    jvms = {process.pid for process in found if process.is_jvm}
    for process in found:
        process.is_worker = process.is_worker and process.parent not in jvms
    return found


def end(pid: int) -> bool:
    """Kill with -9; return False if the process has ended."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


class Ends:
    """The number of records in a topic: the sum of its end offsets, markers included."""

    def __init__(self, address: str, topic: str, partitions: int) -> None:
        self._client = Consumer({"bootstrap.servers": address, "group.id": "ends", "log_level": 0})
        self._last = [0] * partitions
        self._names = [TopicPartition(topic, number) for number in range(partitions)]

    def __call__(self) -> int:
        """Return the sum, or the last known sum while the broker does not answer."""
        for index, name in enumerate(self._names):
            try:
                self._last[index] = self._client.get_watermark_offsets(name, 1.0, cached=False)[1]
            except KafkaException:
                continue
        return sum(self._last)

    def close(self) -> None:
        """Close the client."""
        self._client.close()


def kill_anywhere(
    job: Job,
    broker: Minibroker,
    done: Callable[[], int],
    *,
    steps: int,
    kinds: tuple[str, ...] = KINDS,
    before: Callable[[int], None] | None = None,
) -> dict[str, int]:
    """Start the job and kill until `KILLS` are done; the job may be running or dead then.

    Args:
        done: grows while the job works.
        steps: it grows by up to so much between two kills.
        kinds: the first ones, in turn; behind them the dice decide.
        before: called with the number of each kill, to give the job work.

    Returns:
        Kind → how often it was.
    """
    dice = random.Random(SEED)
    killed = dict.fromkeys(KINDS, 0)
    job.start()
    while (number := sum(killed.values())) < KILLS:
        kind = kinds[number] if number < len(kinds) else dice.choice(KINDS)
        if before is not None:
            before(number)
        goal = done() + dice.randint(1, steps)
        wait_for(job, lambda goal=goal: done() >= goal, f"work before kill {number}")
        threading.Event().wait(dice.uniform(0, 0.5))
        if kind == "broker":
            broker.kill()
            broker.start()
            killed[kind] += 1
        elif job.kill(kind, dice):
            killed[kind] += 1
        if job.code() is not None:
            job.start()
    return killed


def wait_for(job: Job, holds: Callable[[], bool], what: str) -> None:
    """Wait until `holds`; start a failed job again, and raise for one that has ended."""
    deadline = time.monotonic() + WAIT_S
    pause = threading.Event()
    while not holds():
        code = job.code()
        assert code != 0, f"the job ended by itself before {what}"
        if code is not None:
            job.start()
        assert time.monotonic() < deadline, f"waited {WAIT_S:.0f} s for {what}\n{job.tail()}"
        pause.wait(LOOK_S)


def finish(job: Job) -> None:
    """Start the job, and again after a failure, until it succeeds."""
    deadline = time.monotonic() + WAIT_S
    pause = threading.Event()
    while job.code() != 0:
        if job.code() is not None:
            job.start()
        assert time.monotonic() < deadline, f"{job.command} does not end\n{job.tail()}"
        pause.wait(LOOK_S)
