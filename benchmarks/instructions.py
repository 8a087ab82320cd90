"""Instructions that a broker executes for one request of a fixed load, for `benchmarks.diff`.

Valgrind's callgrind counts those of the process, not the kernel's. The number hardly depends on the
machine or on its other work: two runs differ by 1 %, so a change of a few percent shows where the
clock shows nothing. It is no time: an instruction that copies counts once for each step, and a
system call counts nothing.
"""

import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks import scale_wire, wire
from benchmarks.rows.raw import RawClient
from benchmarks.sides import (
    FETCH_BYTES,
    TOPIC,
    Measured,
    Running,
    Side,
    connected,
    fetch_all,
    started,
)

RAW_REQUESTS: Final = 1000
PRODUCE_REQUESTS: Final = 500
WARM_UP_REQUESTS: Final = 300
FETCH_RECORDS: Final = 20 * (FETCH_BYTES // 16_384) * 16
"""20 MB in batches of 16 records of 1 KB."""
BATCH_SHAPES: Final = ((16, 1000), (150, 100), (100, 1000), (10, 10_000))
"""Records of a batch, bytes of a value."""
_DUMP_PATIENCE_S: Final = 60.0
_DUMP_PAUSE_S: Final = 0.01
_TOTALS: Final = re.compile(r"^totals: (\d+)$", re.MULTILINE)
"""The last line of a dump: it says too that the dump is whole."""


class CounterError(Exception):
    """The instructions cannot be counted; the message says why, and what to do."""


def require_valgrind() -> None:
    """Raise CounterError where valgrind is not installed."""
    if not (shutil.which("valgrind") and shutil.which("callgrind_control")):
        raise CounterError(
            "valgrind is not installed, and counts the instructions: "
            "apt-get install valgrind, or leave --instructions out"
        )


class Counter:
    """A broker below callgrind, whose counter runs only for a load."""

    def __init__(self, broker: Running) -> None:
        self.broker = broker
        self._dumps = 0

    def each(self, load: Callable[[], int]) -> float:
        """Return the instructions for one request of `load`, which returns how many it sent."""
        self._control("--zero")
        self._control("--instr=on")
        request_count = load()
        self._control("--instr=off")
        return self.dump() / request_count

    def dump(self) -> int:
        """Return the instructions since the last dump. Raises CounterError."""
        self._control("--dump")
        self._dumps += 1
        path = _dumps_below(self.broker.directory).with_suffix(f".{self._dumps}")
        deadline = time.monotonic() + _DUMP_PATIENCE_S
        while time.monotonic() < deadline:
            if path.exists() and (totals := _TOTALS.search(path.read_text())):
                return int(totals[1])
            time.sleep(_DUMP_PAUSE_S)
        raise CounterError(f"callgrind wrote no {path.name} within {_DUMP_PATIENCE_S:g} s")

    def _control(self, option: str) -> None:
        command = ["callgrind_control", option, str(self.broker.child.pid)]
        result = subprocess.run(command, check=False, capture_output=True, text=True)
        if result.returncode:
            raise CounterError(f"{' '.join(command)} failed: {result.stderr.strip()}")


@contextmanager
def counted(side: Side, directory: Path, *, at_start: bool = False) -> Iterator[Counter]:
    """Yield a counter of a new broker, which runs from the first instruction if `at_start`."""
    tool = [
        "valgrind",
        "--tool=callgrind",
        f"--instr-atstart={'yes' if at_start else 'no'}",
        f"--callgrind-out-file={_dumps_below(directory)}",
        "--quiet",
    ]
    with started(side, directory, tool) as broker:
        yield Counter(broker)


def _dumps_below(directory: Path) -> Path:
    return directory / "callgrind"


def count_start(side: Side, directory: Path) -> Measured:
    """Return the instructions from the start to the first answer, in millions."""
    _compile_modules(side, directory)
    with counted(side, directory, at_start=True) as counter:
        return {"start to the first answer, million": counter.dump() / 1e6}


def _compile_modules(side: Side, directory: Path) -> None:
    """Start the side once, so that Python has compiled what it imports."""
    first = directory / "first"
    first.mkdir()
    with started(side, first):
        pass


def count_raw(side: Side, directory: Path) -> Measured:
    """Return the instructions of a Produce of one record, with 1, 5 and 50 requests in flight."""
    figures: Measured = {}
    with counted(side, directory) as counter, connected(counter.broker) as connection:
        client = RawClient(connection, TOPIC, wire.one_record_batch(b"x" * 100))
        for in_flight in (1, 5, 50):
            client.exchange(in_flight, WARM_UP_REQUESTS)
            figures[f"raw Produce, {in_flight} in flight"] = counter.each(
                partial(client.exchange, in_flight, RAW_REQUESTS)
            )
    return figures


def count_produced(side: Side, directory: Path) -> Measured:
    """Return the instructions of a Produce of one batch, for each shape of a batch."""
    figures: Measured = {}
    with counted(side, directory) as counter, connected(counter.broker) as connection:
        for records, value_bytes in BATCH_SHAPES:
            frame = wire.produce_frame(TOPIC, _batch(records, value_bytes))
            wire.pipeline(connection, TOPIC, frame, WARM_UP_REQUESTS)
            figures[f"Produce, {records} records of {value_bytes} bytes"] = counter.each(
                partial(wire.pipeline, connection, TOPIC, frame, PRODUCE_REQUESTS)
            )
    return figures


def count_fetched(side: Side, directory: Path) -> Measured:
    """Return the instructions of a Fetch of 1 MB, all of it in the system's cache."""
    records, value_bytes = BATCH_SHAPES[0]
    with counted(side, directory) as counter, connected(counter.broker) as connection:
        frame = wire.produce_frame(TOPIC, _batch(records, value_bytes))
        wire.pipeline(connection, TOPIC, frame, FETCH_RECORDS // records)
        fetch_all(connection, FETCH_RECORDS)
        return {"Fetch of 1 MB": counter.each(partial(fetch_all, connection, FETCH_RECORDS))}


def _batch(records: int, value_bytes: int) -> bytes:
    return scale_wire.Batches(records, value_bytes).at(time.time_ns() // 1_000_000)


ROWS: Final[dict[str, Callable[[Side, Path], Measured]]] = {
    "start": count_start,
    "raw": count_raw,
    "produce": count_produced,
    "fetch": count_fetched,
}
