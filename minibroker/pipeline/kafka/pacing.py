"""A limit on bytes in a second, for one task that reads or writes records.

Tasks run on several machines and do not know each other, so each of them keeps to its share. It
waits after a batch, until the time has passed that its bytes may take. So no time is saved up, and
after a slow phase nothing is faster than the share. A broker sees small bursts: a client fetches
ahead of its reader.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

_COLUMNS = ("key", "value", "headers")


def paced(batches: Iterable[pa.RecordBatch], bytes_per_s: float) -> Iterator[pa.RecordBatch]:
    """Yield `batches` not faster than `bytes_per_s` bytes of records a second; 0 is no limit.

    The work between two batches counts as time that has passed. The last batch is waited for, too:
    a task with many small ranges would not keep the limit otherwise.
    """
    if bytes_per_s <= 0:
        yield from batches
        return
    for batch in batches:
        begun_s = time.monotonic()
        yield batch
        left_s = begun_s + record_bytes(batch) / bytes_per_s - time.monotonic()
        if left_s > 0:
            threading.Event().wait(left_s)


def share_of_task(bytes_per_s: int | None, tasks: int, cores: int) -> float:
    """Return the bytes of a second in one of `tasks` tasks on `cores` cores, 0 for no limit."""
    return 0.0 if bytes_per_s is None else bytes_per_s / max(1, min(tasks, cores))


def record_bytes(batch: pa.RecordBatch) -> int:
    """Return the bytes of keys, values and headers, with four to each of them for its length."""
    names = batch.schema.names
    return sum(batch.column(name).nbytes for name in _COLUMNS if name in names)
