"""aiokafka's own suite: the same result before Kafka and through the proxy.

`make client-suites` runs it, 15 minutes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from minibroker.testing import Proxy
from tests.support.made import BUILD, required

if TYPE_CHECKING:
    from tests.support.peers import KafkaPeer

SUITE: Final = BUILD / "suites" / "aiokafka"
CONFTEST: Final = Path(__file__).parent / "aiokafka_conftest.py"
MODULES: Final = (
    *("consumer", "producer", "client", "admin", "transactional_producer"),
    *("transactional_consumer", "pep492", "conn"),
)
LEFT_OUT: Final = "not ssl"
"""Their certificates are those of the container."""
VERSIONS: Final = {"kafka_39": "3.9.0", "kafka_44": "4.0.0"}
"""Release → the one that the suite is told."""
RESULT: Final = re.compile(r"^(PASSED|FAILED|ERROR|SKIPPED) (tests/\S+::\S+)", re.MULTILINE)


def results(directory: Path, address: str, version: str) -> dict[str, str]:
    """Return test → its result of a run of the suite."""
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-rA", "--timeout=120", "-k", LEFT_OUT),
            *("-p", "no:minibroker", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir=."),
            *(f"tests/test_{name}.py" for name in MODULES),
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


@pytest.mark.parametrize("release", VERSIONS)
def test_the_suite_gives_the_same_result_through_the_proxy(
    request: pytest.FixtureRequest, release: str, tmp_path: Path
) -> None:
    required(SUITE / ".done")
    shutil.copytree(SUITE / "tests", tmp_path / "tests")
    shutil.copy(CONFTEST, tmp_path / "tests" / "conftest.py")
    kafka: KafkaPeer = request.getfixturevalue(release)
    directly = results(tmp_path, kafka.address, VERSIONS[release])
    with Proxy(kafka.address) as proxy:
        through = results(tmp_path, proxy.bootstrap, VERSIONS[release])
        assert proxy.requests
        assert proxy.events == []
    assert through == directly
    assert set(directly.values()) <= {"PASSED", "SKIPPED"}
