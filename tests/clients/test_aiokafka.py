"""aiokafka's own suite: the same result before Kafka and through the proxy.

`make client-suites` runs it, 15 minutes.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from minibroker.testing import Proxy
from tests.support.made import BUILD, required
from tests.support.peers import KafkaPeer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from tests.support.peers import ZooKeeper

SUITE: Final = BUILD / "suites" / "aiokafka"
CONFTEST: Final = Path(__file__).parent / "aiokafka_conftest.py"
MODULES: Final = (
    *("consumer", "producer", "client", "admin", "transactional_producer"),
    *("transactional_consumer", "pep492", "conn"),
)
LEFT_OUT: Final = "not ssl"
"""Their certificates are those of the container."""
VERSIONS: Final = {"3.9.1": "3.9.0", "4.4.0": "4.0.0"}
"""Release → the one that the suite is told."""
RESULT: Final = re.compile(r"^(PASSED|FAILED|ERROR|SKIPPED) (tests/\S+::\S+)", re.MULTILINE)


def results(directory: Path, address: str, version: str) -> dict[str, str]:
    """Return test → its result of a run of the suite; one that fails has a second try.

    Some tests ask for a topic at once that Kafka has just said it made.
    """
    modules = [f"tests/test_{name}.py" for name in MODULES]
    outcomes = run_suite(directory, address, version, modules)
    failed = [name for name, outcome in outcomes.items() if outcome in ("FAILED", "ERROR")]
    return outcomes | (run_suite(directory, address, version, failed) if failed else {})


def run_suite(directory: Path, address: str, version: str, names: list[str]) -> dict[str, str]:
    """Return test → its result of a run of these modules or tests."""
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-rA", "--timeout=120", "-k", LEFT_OUT),
            *("-p", "no:minibroker", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir=."),
            *names,
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=directory,
        env={**os.environ, "SUITE_KAFKA": address, "SUITE_VERSION": version, "PYTHONPATH": ""},
    )
    outcomes = {name: outcome for outcome, name in RESULT.findall(ended.stdout)}
    assert outcomes, ended.stdout + ended.stderr
    return outcomes


@pytest.fixture
def kafkas(
    zookeeper: ZooKeeper, tmp_path: Path
) -> Callable[[str], AbstractContextManager[KafkaPeer]]:
    """Return a function that runs a new Kafka: some tests want topics that are not there yet."""
    numbers = itertools.count()

    @contextmanager
    def run(release: str) -> Iterator[KafkaPeer]:
        number = next(numbers)
        chroot = f"{zookeeper.connect}/aiokafka-{number}" if release.startswith("3") else None
        peer = KafkaPeer(
            release,
            tmp_path / f"kafka-{number}",
            zookeeper=chroot,
            settings={"num.partitions": "2"},
        )
        peer.start()
        try:
            yield peer
        finally:
            peer.kill()

    return run


@pytest.mark.parametrize("release", VERSIONS)
def test_the_suite_gives_the_same_result_through_the_proxy(
    kafkas: Callable[[str], AbstractContextManager[KafkaPeer]], release: str, tmp_path: Path
) -> None:
    required(SUITE / ".done")
    shutil.copytree(SUITE / "tests", tmp_path / "tests")
    shutil.copy(CONFTEST, tmp_path / "tests" / "conftest.py")
    with kafkas(release) as kafka:
        directly = results(tmp_path, kafka.address, VERSIONS[release])
    with kafkas(release) as kafka, Proxy(kafka.address) as proxy:
        through = results(tmp_path, proxy.bootstrap, VERSIONS[release])
        assert proxy.requests
        assert proxy.events == []
    assert through == directly
    assert set(directly.values()) <= {"PASSED", "SKIPPED"}
