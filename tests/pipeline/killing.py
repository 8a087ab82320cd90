"""A job is killed (-9) again and again at random moments: its driver, a Python worker, the broker.

A job runs as a user's does, in processes of its own: Python, Spark's JVM, a daemon of Python
workers and the workers. They are one session, by which its victims are found:

| kind   | who dies                      | who goes on                                            |
|--------|-------------------------------|--------------------------------------------------------|
| driver | the JVM and the Python on top | workers, until they notice; a new driver starts at once|
| worker | one Python worker             | the driver, with a second attempt of the task          |
| broker | minibroker                    | the job, when it is there again, or it fails           |

A job that failed is started again, as a person would. The moment: whenever what the job has done
(`done`) has grown by a random number, and a random fraction of a second later.

`make pipeline-fire` (MINIBROKER_PIPELINE_KILLS=30) does it at length; MINIBROKER_PIPELINE_SEED
makes another choice.
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
WAIT_S: Final = 300.0
LOOK_S: Final = 0.05
SECONDS_A_KILL: Final = 60
"""For the time-out of a test, on a busy machine."""

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
"""The same as flags of `minibroker pipeline`."""


class Job:
    """A command that does a job, and all processes that come of it."""

    def __init__(self, command: list[str], log: Path) -> None:
        self.command = [sys.executable, "-m", *command]
        self.starts = 0
        self._log = log
        self._process: ManagedProcess | None = None
        self._sessions: list[int] = []

    @property
    def pid(self) -> int:
        """Of the Python that runs the driver."""
        assert self._process is not None
        return self._process.popen.pid

    def start(self) -> None:
        """Once more; what an earlier start has left may still be there."""
        self.starts += 1
        self._process = ManagedProcess(self.command, self._log, directory=ROOT)
        self._sessions.append(self.pid)

    def code(self) -> int | None:
        """Its exit code, None while it runs."""
        assert self._process is not None
        return self._process.popen.poll()

    def kill(self, kind: str, dice: random.Random) -> bool:
        """Kill the driver, or one of the Python workers; False: there is none."""
        if kind == "worker":
            workers = [one for one in processes_of(self.pid) if one.is_worker]
            return bool(workers) and end(dice.choice(workers).pid)
        self.kill_driver()
        return True

    def kill_driver(self) -> None:
        """The JVM and the Python on top; workers have to notice by themselves."""
        for one in processes_of(self.pid):
            if one.is_jvm:
                end(one.pid)
        end(self.pid)
        assert self._process is not None
        self._process.popen.wait(WAIT_S)

    def close(self) -> None:
        """Nothing of it is left."""
        for session in self._sessions:
            for one in processes_of(session):
                end(one.pid)
        if self._process is not None:
            self._process.kill()

    def tail(self) -> str:
        """The end of what it said."""
        return self._log.read_text(errors="replace")[-3000:]


class Process:
    """One of a session, as /proc has it."""

    def __init__(self, pid: int, parent: int, command: str) -> None:
        self.pid = pid
        self.parent = parent
        self.is_jvm = command.split("\0", maxsplit=1)[0].endswith("java")
        self.is_worker = "pyspark.daemon" in command


def processes_of(session: int) -> list[Process]:
    """Those that live; of the workers, not the daemon that forks them."""
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
    jvms = {one.pid for one in found if one.is_jvm}
    for one in found:
        one.is_worker = one.is_worker and one.parent not in jvms
    return found


def end(pid: int) -> bool:
    """-9; False: it had ended."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


class Ends:
    """How much has been written to a topic: the sum of its end offsets, markers included."""

    def __init__(self, address: str, topic: str, partitions: int) -> None:
        self._client = Consumer({"bootstrap.servers": address, "group.id": "ends", "log_level": 0})
        self._last = [0] * partitions
        self._names = [TopicPartition(topic, number) for number in range(partitions)]

    def __call__(self) -> int:
        """What was last seen while the broker does not answer."""
        for index, name in enumerate(self._names):
            try:
                self._last[index] = self._client.get_watermark_offsets(name, 1.0, cached=False)[1]
            except KafkaException:
                continue
        return sum(self._last)

    def close(self) -> None:
        """Leave."""
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
    """Until `holds`; a job that has failed is started again, one that has ended is an error."""
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
    """Start it, and again where it fails, until it ends well."""
    deadline = time.monotonic() + WAIT_S
    pause = threading.Event()
    while job.code() != 0:
        if job.code() is not None:
            job.start()
        assert time.monotonic() < deadline, f"{job.command} does not end\n{job.tail()}"
        pause.wait(LOOK_S)
