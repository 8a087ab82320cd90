"""`make proxy-suites`: the own suites of two clients give the same result through the proxy.

Each run has Kafkas of its own, which are empty. Tests that differ run again, three times on either
side. The output is a table: suite, Kafka, tests, equal, and the others by name.
"""

from __future__ import annotations

import argparse
import signal
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from tests.clients.comparison import Verdict, unlike, verdict
from tests.clients.fresh_kafka import GROUNDS, Kafkas
from tests.clients.suites import Aiokafka, FranzGo
from tests.support.build_files import BUILD
from tests.support.memory import directory_in_memory

if TYPE_CHECKING:
    from pathlib import Path

    from tests.clients.comparison import Results
    from tests.clients.fresh_kafka import Ground
    from tests.clients.suites import Suite

REPEATS: Final = 3
LOGS: Final = BUILD / "proxy-suites"
SUITES: Final = ("aiokafka", "franz-go")
USUAL: Final = ("3.9.1", "4.3.1", "secured", "login", "minibrokers")


def main(arguments: list[str] | None = None) -> int:
    """Return 1 when a test differs, 0 otherwise."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    LOGS.mkdir(parents=True, exist_ok=True)
    print("suite     Kafka                             tests  pass  equal  differ  unsteady  hour")
    differing = 0
    with directory_in_memory() as directory, Kafkas(directory) as kafkas:
        for name in options.suite or SUITES:
            suite: Suite = Aiokafka(directory) if name == "aiokafka" else FranzGo()
            for ground in options.kafka or USUAL:
                row = compare(suite, kafkas, GROUNDS[ground], options.tests)
                differing += len(row.differing)
                _show(suite, GROUNDS[ground], row)
        for event in sorted(set(kafkas.events)):
            print(f"the proxy found unusual: {event}")
    return 1 if differing else 0


def compare(suite: Suite, kafkas: Kafkas, ground: Ground, names: list[str]) -> Verdict:
    """Run the suite, or some of its tests, on both sides; those that differ again."""
    directly, through = _pair(suite, kafkas, ground, names, "first")
    again = unlike(directly, through)
    repeats = [
        _pair(suite, kafkas, ground, again, f"repeat-{number}")
        for number in range(REPEATS if again else 0)
    ]
    return verdict(directly, through, repeats)


def _pair(
    suite: Suite, kafkas: Kafkas, ground: Ground, names: list[str], run: str
) -> tuple[Results, Results]:
    with kafkas.directly(ground) as way:
        directly = suite.results(way, _log(suite, ground, run, "directly"), names)
    with kafkas.through_proxy(ground) as way:
        through = suite.results(way, _log(suite, ground, run, "through"), names)
    return directly, through


def _log(suite: Suite, ground: Ground, run: str, side: str) -> Path:
    title = ground.title.replace(" ", "-").replace(",", "")
    return LOGS / f"{suite.name}-{title}-{run}-{side}.log"


def _show(suite: Suite, ground: Ground, row: Verdict) -> None:
    hour = datetime.now(UTC).strftime("%H:%M")
    print(
        f"{suite.name:<10}{ground.title:<34}{row.tests:>5}{row.passed:>6}{row.equal:>7}"
        f"{len(row.differing):>8}{len(row.unsteady):>10}  {hour}"
    )
    kinds = {
        "differs": row.differing,
        "unsteady": row.unsteady,
        "equal when repeated": row.steadied,
    }
    for word, tests in kinds.items():
        for name, results in tests.items():
            print(f"    {word}: {name}: {results}")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make proxy-suites", description=__doc__)
    parser.add_argument("--suite", action="append", choices=SUITES)
    parser.add_argument("--kafka", action="append", choices=GROUNDS)
    parser.add_argument("tests", nargs="*", help="names as the suite has them; all by default")
    return parser


if __name__ == "__main__":
    sys.exit(main())
