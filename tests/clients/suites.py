"""The own suites of aiokafka and franz-go, as programs that end with a result for each test.

Neither is changed but for what it cannot be told: where Kafka is and how to log in.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from tests.clients.fresh_kafka import MECHANISM, PASSWORD, USER
from tests.support.build_files import BUILD, required

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.clients.comparison import Results
    from tests.clients.fresh_kafka import Way

CONFTEST: Final = Path(__file__).parent / "aiokafka_conftest.py"
SUITE_SECONDS: Final = 1800
"""Longest time of a run; what has not ended then has no result."""


class Suite(Protocol):
    """A suite that is fetched."""

    name: str

    def results(self, way: Way, log: Path, names: Sequence[str] = ()) -> Results:
        """Return test → its result: of all, or of the tests that are named.

        `log`: the file for what the suite prints.
        """


class Aiokafka:
    """The suite of aiokafka 0.14: its modules that speak with Kafka."""

    name = "aiokafka"
    SOURCE: Final = BUILD / "suites" / "aiokafka"
    MODULES: Final = (
        *("consumer", "producer", "client", "admin", "transactional_producer"),
        *("transactional_consumer", "pep492", "conn", "sasl"),
    )
    VERSIONS: Final = {"3.9.1": "3.9.0", "4.3.1": "4.0.0", "4.4.0": "4.0.0"}
    """Release → the one that the suite is told."""
    RESULT: Final = re.compile(r"^(PASSED|FAILED|ERROR|SKIPPED) (tests/\S+::\S+)", re.MULTILINE)

    def __init__(self, directory: Path) -> None:
        """`directory`: for a copy of the tests, with a `conftest.py` that needs no container."""
        required(self.SOURCE / ".done")
        self._directory = directory / "aiokafka"
        shutil.copytree(self.SOURCE / "tests", self._directory / "tests")
        shutil.copy(CONFTEST, self._directory / "tests" / "conftest.py")

    def results(self, way: Way, log: Path, names: Sequence[str] = ()) -> Results:
        """Do `Suite.results`. The order is that of the files, and random names have a seed."""
        login = {"SUITE_USER": USER, "SUITE_PASSWORD": PASSWORD, "SUITE_MECHANISM": MECHANISM}
        addresses = {f"SUITE_{name}": address for name, address in way.addresses.items()}
        printed = run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-rA", "--timeout=120"),
                *("-p", "no:minibroker", "-p", "no:cacheprovider", "-c", os.devnull),
                *("--rootdir=.", *(names or [f"tests/test_{name}.py" for name in self.MODULES])),
            ],
            self._directory,
            {
                "SUITE_KAFKA": way.address,
                "SUITE_VERSION": self.VERSIONS[way.ground.release],
                "PYTHONPATH": "",
                "PYTHONHASHSEED": "0",
                "SUITE_CERTIFICATES": str(way.certificates),
                **addresses,
                **(login if way.is_secured else {}),
            },
            log,
        )
        return {name: result for result, name in self.RESULT.findall(printed)}


class FranzGo:
    """The suite of franz-go's client, with share groups where Kafka has them."""

    name = "franz-go"
    SOURCE: Final = BUILD / "suites" / "franz-go"
    RECORDS: Final = 20_000
    """Records of each test that moves some; half a million by default."""
    NO_TLS: Final = "^TestIssue769$"
    """A test with a dialer of its own, which its client refuses beside TLS; it ends the suite."""
    RESULT: Final = re.compile(r"^ *--- (PASS|FAIL|SKIP): (\S+)", re.MULTILINE)

    def __init__(self) -> None:
        self._program = required(self.SOURCE / ".done").parent / "kgo.test"

    def results(self, way: Way, log: Path, names: Sequence[str] = ()) -> Results:
        """Do `Suite.results`. A part of a test is run with the test."""
        tests = sorted({name.partition("/")[0] for name in names})
        login = f"{USER}:{PASSWORD}:256"
        logins = way.addresses.get("SASL_PLAINTEXT")
        printed = run(
            [
                *(str(self._program), "-test.v", "-test.parallel=4"),
                *(["-test.run", f"^({'|'.join(tests)})$"] if tests else []),
                *([f"-test.skip={self.NO_TLS}"] if way.ground.has_tls else []),
                f"-test.timeout={SUITE_SECONDS}s",
            ],
            self.SOURCE / "pkg" / "kgo",
            {
                "KGO_SEEDS": way.address,
                "KGO_TEST_RF": str(way.ground.brokers),
                "KGO_TEST_RECORDS": str(self.RECORDS),
                "KGO_TEST_SCRAM": login,
                **({"KGO_TEST_TLS": f"ca:{way.certificates}/ca.crt"} if way.is_secured else {}),
                **(
                    {"KGO_TEST_SCRAM_SEEDS": logins, "KGO_TEST_OAUTH_SEEDS": logins}
                    if logins
                    else {}
                ),
            },
            log,
        )
        return {name: result for result, name in self.RESULT.findall(printed)}


def run(command: list[str], directory: Path, variables: Mapping[str, str], log: Path) -> str:
    """Return what a program prints to stdout; all that it prints is in `log` and beside it."""
    with log.open("w") as output, log.with_suffix(".errors").open("w") as errors:
        ended = subprocess.Popen(
            command, cwd=directory, stdout=output, stderr=errors, env={**os.environ, **variables}
        )
        try:
            ended.wait(SUITE_SECONDS)
        except subprocess.TimeoutExpired:
            errors.write(f"\nnot ended after {SUITE_SECONDS} s\n")
        finally:
            ended.kill()
            ended.wait()
    return log.read_text(errors="replace")
