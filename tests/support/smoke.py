"""`make smoke`: 10,000 records through every client, over a stop, a kill and two restarts.

Each client writes its share with each of the five codecs to a topic of its own. Then the broker is
stopped by SIGTERM and started again, killed and started again, and every client reads its topic
back: each record must be there once. Prints a table; exits 1 when any is missing or double.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.support.broker import Minibroker
from tests.support.clients import CLIENTS, CODECS, Client, expected

RECORDS = 10_000


def main() -> int:
    """Run everything; return the exit code."""
    runnable = [client for client in CLIENTS if client.missing is None]
    print(f"{'client':<18}{'codecs':<32}{'written':>9}{'read':>9}{'once':>6}{'seconds':>9}")
    with tempfile.TemporaryDirectory(prefix="minibroker-smoke-") as directory:
        broker = Minibroker(
            Path(directory) / "data",
            Path(directory) / "broker.log",
            settings={"num.partitions": "3"},
        )
        broker.start()
        try:
            seconds = {client.name: _write(client, broker.address) for client in runnable}
            broker.stop()
            broker.start()
            broker.kill()
            broker.start()
            good = [_read(client, broker.address, seconds[client.name]) for client in runnable]
        finally:
            broker.kill()
    for client in CLIENTS:
        if client.missing is not None:
            print(f"{client.name:<18}not run: {client.missing}")
    print("stopped by SIGTERM and by SIGKILL in between:", "all good" if all(good) else "FAILED")
    return 0 if all(good) else 1


def _write(client: Client, address: str) -> float:
    started = time.monotonic()
    share = RECORDS // len(CODECS)
    for codec in CODECS:
        client.produce(address, _topic(client), codec, f"{codec}-", share)
    return time.monotonic() - started


def _read(client: Client, address: str, seconds: float) -> bool:
    started = time.monotonic()
    values = Counter(client.consume(address, _topic(client), RECORDS))
    share = RECORDS // len(CODECS)
    expected_values = Counter(value for codec in CODECS for value in expected(f"{codec}-", share))
    seconds += time.monotonic() - started
    once = "yes" if values == expected_values else "NO"
    print(
        f"{client.name:<18}{', '.join(CODECS):<32}{RECORDS:>9,}{values.total():>9,}"
        f"{once:>6}{seconds:>9.1f}"
    )
    return values == expected_values


def _topic(client: Client) -> str:
    return "smoke-" + client.name.replace(" ", "-")


if __name__ == "__main__":
    sys.exit(main())
