"""Kills a job (-9) again and again at random moments: its driver, a Python worker, the broker.

A job runs like a user's in processes of its own: Python, Spark's JVM, a daemon of Python workers
and the workers. They share one session, by which they are found:

| kind   | who dies                      | who goes on                                            |
|--------|-------------------------------|--------------------------------------------------------|
| driver | the JVM and the Python on top | workers, until they notice; a new driver starts at once|
| worker | one Python worker             | the driver, with a second attempt of the task          |
| broker | minibroker                    | the job, when it is there again, or it fails           |

A job that failed is started again, as a person would do. A kill comes when the progress (`done`)
has grown by a random number, and then at a moment of a batch that the dice choose
(`batch_moments`). All processes of the job are stopped first (SIGSTOP), and its files are looked
at: so a kill counts only if it hits a batch that was begun and is not done, and the moment is known
exactly. Dice alone seldom meet the moment between the commit of the target and that of Spark, which
takes milliseconds. So each fifth kill waits for this commit, and then the driver dies.
`pytest --log-cli-level=INFO` shows each kill.

`make pipeline-fire` (MINIBROKER_PIPELINE_KILLS=50) kills more often; MINIBROKER_PIPELINE_SEED makes
another choice.
"""

from __future__ import annotations

import logging
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from pyspark.errors import PySparkException

from minibroker.pipeline import PipelineError
from tests.pipeline.batch_moments import COMMITTED, MOMENTS
from tests.support.processes import ManagedProcess

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.broker import Minibroker

LOG: Final = logging.getLogger(__name__)
ROOT: Final = Path(__file__).resolve().parents[2]
KILLS: Final = int(os.environ.get("MINIBROKER_PIPELINE_KILLS", "2"))
SEED: Final = int(os.environ.get("MINIBROKER_PIPELINE_SEED", "1"))
KINDS: Final = ("driver", "worker", "broker")
WEIGHTS: Final = (1, 2, 2)
"""Odds of the kinds: a new driver costs the start of a JVM, so much as ten other kills."""
COMMITTED_EVERY: Final = 5
"""One kill of so many is of the driver, between the commit of the target and that of Spark."""
BATCH_ROWS: Final = 100
WAIT_S: Final = 500.0
LOOK_S: Final = 0.05
GLANCE_S: Final = 0.001
"""Time between two looks for the moment of a kill."""
LATE_S: Final = 0.3
PATIENCE_S: Final = 5.0
"""A kill waits for a moment of the dice for so long, and then takes any moment of a batch."""
IDLE_S: Final = 5.0
"""A job without a batch for so long gets more work."""
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


class Kill(NamedTuple):
    """One kill that hit a batch."""

    kind: str
    moment: str


class Wish(NamedTuple):
    """The moment that a kill waits for."""

    moment: str
    late_s: float
    """Seconds from its first sight to the stop; half of them if it was over before."""
    patience_s: float
    """Seconds until any moment will do."""


class Job:
    """A command that runs a job, and all its processes."""

    def __init__(self, command: list[str], log: Path) -> None:
        self.command = [sys.executable, "-m", *command]
        self.starts = 0
        self._log = log
        self._process: ManagedProcess | None = None
        self._sessions: list[int] = []
        self._driver: list[int] = []

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

    def kill_worker(self, dice: random.Random) -> bool:
        """Kill a Python worker, one that writes a file if there is one; False without a worker."""
        workers = [process for process in processes_of(self.pid) if process.is_worker]
        writing = [process for process in workers if process.writes_a_file()]
        return bool(workers) and end(dice.choice(writing or workers).pid)

    def kill_driver(self) -> None:
        """Kill the JVM and its Python; the workers have to notice it themselves."""
        for process in processes_of(self.pid):
            if process.is_jvm:
                end(process.pid)
        end(self.pid)
        assert self._process is not None
        self._process.popen.wait(WAIT_S)

    def find_driver(self) -> None:
        """Find the JVM, which `stop` stops first, with its Python."""
        self._driver = [process.pid for process in processes_of(self.pid) if process.is_jvm]
        self._driver.append(self.pid)

    def stop(self) -> None:
        """Stop all processes where they are: the driver at once, before the others are found."""
        for pid in self._driver:
            signalled(pid, signal.SIGSTOP)
        for process in processes_of(self.pid):
            signalled(process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let all processes of every start go on."""
        for session in self._sessions:
            for process in processes_of(session):
                signalled(process.pid, signal.SIGCONT)

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

    def writes_a_file(self) -> bool:
        """Return whether it has a data file open."""
        try:
            paths = [str(path.readlink()) for path in Path(f"/proc/{self.pid}/fd").iterdir()]
        except OSError:
            return False  # it has just ended
        return any(path.endswith(".parquet") for path in paths)


def processes_of(session: int) -> list[Process]:
    """Return the running processes; of the workers, not the daemon that forks them."""
    processes = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            command = (directory / "cmdline").read_text()
            fields = (directory / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        parent, its_session = int(fields[1]), int(fields[3])
        if its_session == session:
            processes.append(Process(int(directory.name), parent, command))
    jvms = {process.pid for process in processes if process.is_jvm}
    for process in processes:
        process.is_worker = process.is_worker and process.parent not in jvms
    return processes


def end(pid: int) -> bool:
    """Kill with -9; return False if the process has ended."""
    return signalled(pid, signal.SIGKILL)


def signalled(pid: int, number: signal.Signals) -> bool:
    """Send a signal; return False if the process has ended."""
    try:
        os.kill(pid, number)
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
    moment: Callable[[], str | None],
    *,
    steps: int,
    kinds: tuple[str, ...] = KINDS,
    on_try: Callable[[int], None] | None = None,
    moments: tuple[str, ...] = MOMENTS,
    ends: bool = False,
) -> list[Kill]:
    """Start the job and kill until `KILLS` kills hit a batch.

    Args:
        done: grows while the job works.
        moment: returns where the batch is, see `batch_moments`; None: no batch is under way.
        steps: `done` grows by up to so much between two kills.
        kinds: the first ones, in turn; behind them the dice decide.
        before: called with the number of each try of a kill, to give the job work.
        moments: those that `moment` may return.
        ends: the job ends by itself once it has done what was there at its start.
    """
    dice = random.Random(SEED)
    kills: list[Kill] = []
    tries, begun_s = 0, time.monotonic()
    job.start()
    while len(kills) < KILLS:
        kind = kinds[len(kills)] if len(kills) < len(kinds) else one_kind(dice)
        wish = one_wish(dice, moments)
        if COMMITTED in moments and (len(kills) + 1) % COMMITTED_EVERY == 0:
            kind, wish = "driver", Wish(COMMITTED, 0.0, WAIT_S)
        # The job may be done with new work before it is told that it has any.
        goal = done() + dice.randint(1, steps)
        if on_try is not None:
            on_try(tries)
        tries += 1
        goal_text = f"work before kill {len(kills)}"
        wait_for(job, lambda goal=goal: done() >= goal, goal_text, ends=ends)
        current = stopped_at(job, moment, wish)
        if current is None:
            continue
        if kill(job, broker, kind, dice):
            kills.append(Kill(kind, current))
            passed_s = time.monotonic() - begun_s
            LOG.info("%.0f s: kill %d, %s, %s", passed_s, len(kills), kind, current)
        job.go_on()
        if kind == "broker":
            broker.start()
    LOG.info("%s; %d starts", sentence_of(kills), job.starts)
    return kills


def one_kind(dice: random.Random) -> str:
    """Return a kind by its odds."""
    return dice.choices(KINDS, WEIGHTS)[0]


def one_wish(dice: random.Random, moments: tuple[str, ...]) -> Wish:
    """Return a moment to wait for, and how late after it the job stops."""
    return Wish(dice.choice(moments), dice.choice((0.0, dice.uniform(0, LATE_S))), PATIENCE_S)


def kill(job: Job, broker: Minibroker, kind: str, dice: random.Random) -> bool:
    """Kill; return False if there is nothing to kill."""
    if kind == "broker":
        broker.kill()
    elif kind == "worker":
        return job.kill_worker(dice)
    else:
        job.kill_driver()
    return True


def stopped_at(job: Job, moment: Callable[[], str | None], wish: Wish) -> str | None:
    """Stop the job in a batch; return the moment, which is the wished one if it comes in time.

    Returns:
        None, and the job goes on: it has failed, or it has no batch under way for a while.
    """
    job.find_driver()
    begun_s = seen_s = time.monotonic()
    late_s, pause = wish.late_s, threading.Event()
    while (now_s := time.monotonic()) - seen_s < IDLE_S:
        current = moment()
        if current is not None:
            seen_s = now_s
        is_late = now_s - begun_s > wish.patience_s
        if current == wish.moment or (current is not None and is_late):
            pause.wait(late_s)
            late_s /= 2
            job.stop()
            if moment() == current and job.code() is None:
                return current
            job.go_on()
        if job.code() is not None:
            return None
        pause.wait(GLANCE_S)
    return None


def sentence_of(kills: list[Kill]) -> str:
    """Return how many kills of each kind hit at each moment, as text."""
    counts = sorted(Counter(kills).items())
    return ", ".join(f"{count} × {hit.kind} {hit.moment}" for hit, count in counts)


def wait_for(job: Job, holds: Callable[[], bool], event: str, *, ends: bool = False) -> None:
    """Wait until `holds`; start a failed job again, and raise for one that ends and should not."""
    deadline = time.monotonic() + WAIT_S
    pause = threading.Event()
    while not holds():
        code = job.code()
        assert ends or code != 0, f"the job ended by itself before {event}"
        if code is not None:
            job.start()
        assert time.monotonic() < deadline, f"waited {WAIT_S:.0f} s for {event}\n{job.tail()}"
        pause.wait(LOOK_S)


def finish(run: Callable[[], object]) -> None:
    """Run the last run of a job in the session of the tests, and again after a failure, until it
    succeeds: for its files and topics it is a new start as that of a process, which takes 14 s of
    processor time.
    """
    deadline = time.monotonic() + WAIT_S
    pause = threading.Event()
    while True:
        try:
            run()
        except (PipelineError, PySparkException) as error:
            LOG.info("the last run failed: %s", error)
            if time.monotonic() > deadline:
                raise
            pause.wait(LOOK_S)
        else:
            return
