"""Instructions that a broker executes for one request of a fixed load, for `benchmarks.diff`.

`callgrind` counts them. Rows with one request in flight show what a client waits for.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks import scale_wire, single_requests, wire
from benchmarks.callgrind import counted
from benchmarks.rows.raw import RawClient
from benchmarks.sides import (
    FETCH_BYTES,
    TOPIC,
    Measured,
    Side,
    connected,
    fetch_all,
    started,
)

RAW_REQUESTS: Final = 1000
PRODUCE_REQUESTS: Final = 500
SINGLE_REQUESTS: Final = 100
"""Requests one after the other, after as many that warm up."""
WARM_UP_REQUESTS: Final = 300
FETCH_RECORDS: Final = 20 * (FETCH_BYTES // 16_384) * 16
"""20 MB in batches of 16 records of 1 KB."""
BATCH_SHAPES: Final = ((16, 1000), (150, 100), (100, 1000), (10, 10_000))
"""Records of a batch, bytes of a value."""


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


def count_single(side: Side, directory: Path) -> Measured:
    """Return the instructions of each load of requests that come one after the other."""
    figures: Measured = {}
    with counted(side, directory) as counter, connected(counter.broker) as connection:
        for name, load in single_requests.loads(connection, counter.broker.port):
            load(SINGLE_REQUESTS)
            figures[name] = counter.each(partial(load, SINGLE_REQUESTS))
    return figures


def _batch(records: int, value_bytes: int) -> bytes:
    return scale_wire.Batches(records, value_bytes).at(time.time_ns() // 1_000_000)


ROWS: Final[dict[str, Callable[[Side, Path], Measured]]] = {
    "start": count_start,
    "raw": count_raw,
    "produce": count_produced,
    "fetch": count_fetched,
    "single": count_single,
}
