"""Kafka brokers that learn of every change late: a topic, a setting, an ACL, a user.

A controller of Kafka answers before its brokers have loaded the change. On an idle machine that
takes some milliseconds, on a busy one seconds, and a caller that trusts the answer fails now and
then. With `MINIBROKER_LATE_METADATA_MS=300` in the environment every Kafka of a test run is so
late. Each kind of Kafka is: 3.9 with ZooKeeper, and KRaft. The changes wait in the broker itself,
at breakpoints of a debugger (`LateMetadata.java`), so clients reach it as always.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from tests.support import java
from tests.support.processes import ManagedProcess, free_port

if TYPE_CHECKING:
    from pathlib import Path

VARIABLE: Final = "MINIBROKER_LATE_METADATA_MS"
START_S: Final = 120.0


def delay_of_run_ms() -> int:
    """Return how late brokers of this run are, 0 for not at all."""
    return int(os.environ.get(VARIABLE, "0"))


class LateMetadata:
    """The delay of one broker, in milliseconds."""

    def __init__(self, delay_ms: int) -> None:
        self._delay_ms = delay_ms
        self._port = free_port()
        self._debugger: ManagedProcess | None = None

    @property
    def option(self) -> str:
        """Return the option with which the broker's Java takes a debugger."""
        address = f"127.0.0.1:{self._port}"
        return f"-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,quiet=y,address={address}"

    def begin(self, log_path: Path) -> None:
        """Delay the changes from now on, until the broker ends: those of its start, too.

        Raises StartError.
        """
        classes = java.compiled("LateMetadata")
        words = ("-cp", str(classes), "LateMetadata", str(self._port), str(self._delay_ms))
        debugger = ManagedProcess(["java", *java.JVM_OPTIONS, *words], log_path)
        debugger.wait_until(
            lambda: "attached" in debugger.log_tail(), START_S, "a debugger of Kafka"
        )
        self._debugger = debugger

    def end(self) -> None:
        """Delay nothing any more."""
        if self._debugger is not None:
            self._debugger.kill()
            self._debugger = None
