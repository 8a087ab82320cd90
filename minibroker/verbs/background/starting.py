"""The start of a broker in the background, and its end.

The broker is `minibroker serve` in a session of its own. It inherits two descriptors: the lock of
the state directory, which it holds until its process ends, whatever ends it; and a pipe as its
ready file, which gives its address, or ends without one.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import chdir, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from minibroker.broker.config.sources import gather
from minibroker.broker.ready_file import write_ready_file
from minibroker.cli.declaration import plan_of
from minibroker.cli.errors import CommandError
from minibroker.cli.parser import parse
from minibroker.client.readiness import is_any_readable
from minibroker.clock import SystemClock
from minibroker.compilation import package_version
from minibroker.kafka.java_formats.properties import read_properties
from minibroker.verbs.background.state import CONTROL, LISTENING, REGISTRY, Background
from minibroker.verbs.serve.verb import VERB

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from minibroker.verbs.background.state import StateDirectory
    from minibroker.verbs.serve.plan import ServePlan

STOP_S: Final = 60.0
"""Longest wait for a broker that was asked to end."""
_QUIET_S: Final = 2.0
"""Time after which a person is told that the start takes longer."""
_READ_BYTES: Final = 65_536


def start(state: StateDirectory, words: Sequence[str], errors: TextIO) -> Background:
    """Start `serve` with these words, wait until it serves, and return the broker.

    The caller holds `state.changing()`. Raises CommandError: a broker runs, or this one ended.
    """
    plan: ServePlan = plan_of(VERB, parse(VERB, words))
    data, in_zookeeper = _places(plan)
    lock = state.take()
    if lock is None:
        raise CommandError(f"a broker runs already: {state.lock} is locked")
    state.begin()
    reading, writing = os.pipe()
    try:
        pid = _spawn(state, words, lock, writing)
    finally:
        os.close(writing)
        os.close(lock)
    try:
        state.write_pid(pid)
        text = _ready_text(reading, plan, state, errors)
        if text is None:
            raise CommandError(_end_of(pid, state))
        if plan.ready_file is not None:
            write_ready_file(plan.ready_file, text)
    except BaseException:
        _end_child(pid)
        state.end(None)
        raise
    finally:
        os.close(reading)
    lines = text.splitlines()
    background = Background(
        pid=pid,
        addresses=lines[0].removeprefix(LISTENING),
        control=_urls(lines, CONTROL),
        registry=_urls(lines, REGISTRY),
        started_ms=SystemClock().now_ms(),
        words=list(words),
        directory=os.getcwd(),  # noqa: PTH109  a text, for JSON
        data=data,
        in_zookeeper=in_zookeeper,
        version=package_version(),
    )
    state.write(background)
    return background


def start_again(state: StateDirectory, background: Background, errors: TextIO) -> Background:
    """Start a broker with the options and in the directory of another one. Raises CommandError."""
    try:
        directory = chdir(background.directory)
        with directory:
            return start(state, background.words, errors)
    except FileNotFoundError as error:
        raise CommandError(f"{error.filename}: {error.strerror}") from None


def stop(state: StateDirectory, background: Background | None) -> None:
    """Ask the broker to end, and wait for its end.

    The caller holds `state.changing()`. Raises CommandError: it does not end.
    """
    pid = state.read_pid()
    if pid is None:
        raise CommandError(
            f"a broker runs, but its start was interrupted, so nobody knows its process: end the "
            f"one that has {state.lock} open"
        )
    try:
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(pid, signal.SIGTERM)
    except PermissionError:
        raise CommandError(f"the broker (pid {pid}) belongs to another user") from None
    lock = state.take(STOP_S)
    if lock is None:
        raise CommandError(
            f"the broker (pid {pid}) did not end within {STOP_S:.0f} s: kill -9 {pid} ends it; the "
            f"next start then recovers its data. Its log is {state.log}"
        )
    os.close(lock)
    state.end(background)


def _places(plan: ServePlan) -> tuple[list[str], bool]:
    """Return the directories of the data, and whether ZooKeeper has the metadata."""
    file_settings = read_properties(plan.config_file) if plan.config_file else {}
    settings = gather(file_settings, os.environ, list(plan.settings))
    in_zookeeper = bool(settings.get("zookeeper.connect"))
    if plan.in_memory:
        return [], in_zookeeper
    directories = settings.get("log.dirs") or settings.get("log.dir") or "minibroker-data"
    return [str(Path(name.strip()).absolute()) for name in directories.split(",")], in_zookeeper


def _spawn(state: StateDirectory, words: Sequence[str], lock: int, writing: int) -> int:
    """Start the process and return its id; it inherits both descriptors."""
    for descriptor in (lock, writing):
        os.set_inheritable(descriptor, True)
    command = [sys.executable, "-m", "minibroker", "serve", *words]
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return os.posix_spawn(
        sys.executable,
        [*command, f"--ready-file=/dev/fd/{writing}"],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(state.log), flags, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )


def _ready_text(reading: int, plan: ServePlan, state: StateDirectory, errors: TextIO) -> str | None:
    """Return the lines of the ready file, None if the process ends before. Tell a person that it
    takes longer.
    """
    servers = [server for server in (plan.control, plan.registry) if server is not None]
    expected = 1 + plan.brokers * len(servers)
    if not is_any_readable([reading], _QUIET_S) and errors.isatty():
        errors.write(f"minibroker is starting, see {state.log}\n")
        errors.flush()
    content = b""
    while content.count(b"\n") < expected:
        part = os.read(reading, _READ_BYTES)
        if not part:
            return None
        content += part
    return content.decode()


def _urls(lines: Sequence[str], opening: str) -> list[str]:
    """Return what stands behind the opening in the lines that have it."""
    return [line.removeprefix(opening) for line in lines if line.startswith(opening)]


def _end_of(pid: int, state: StateDirectory) -> str:
    """Return the sentence for a process that ended before it served, with the end of its log."""
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    how = f"with exit code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
    return f"the broker ended {how} before it served; the last lines of {state.log}:\n" + (
        state.last_lines().rstrip("\n")
    )


def _end_child(pid: int) -> None:
    """End a process that this one has started, unless it has ended."""
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
