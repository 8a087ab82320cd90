"""franz-go's own suite of its client: the same result before Kafka and through the proxy.

Share groups are left out: their suite wants settings of Kafka that change while it runs. `make
client-suites` runs it, 8 minutes.
"""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING, Final

import pytest

from minibroker.testing import Proxy
from tests.support.made import BUILD, required

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.peers import KafkaPeer

SUITE: Final = BUILD / "suites" / "franz-go"
PROGRAM: Final = SUITE / "kgo.test"
RECORDS: Final = 20_000
"""Records of each test that moves some; half a million by default."""
SUITE_SECONDS: Final = 600
RESULT: Final = re.compile(r"^ *--- (PASS|FAIL|SKIP): (\S+)", re.MULTILINE)


def results(address: str) -> dict[str, str]:
    """Return test → its result of a run of the suite."""
    required(SUITE / ".done")
    ended = subprocess.run(
        [
            *(str(PROGRAM), "-test.v", "-test.parallel=4", "-test.skip=Share"),
            f"-test.timeout={SUITE_SECONDS}s",
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=SUITE / "pkg" / "kgo",
        env={
            **os.environ,
            "KGO_SEEDS": address,
            "KGO_TEST_RF": "1",
            "KGO_TEST_RECORDS": str(RECORDS),
        },
    )
    return {name: outcome for outcome, name in RESULT.findall(ended.stdout)}


@pytest.mark.parametrize("release", ["kafka_39", "kafka_44"])
def test_the_suite_gives_the_same_result_through_the_proxy(
    request: pytest.FixtureRequest, release: str, tmp_path: Path
) -> None:
    kafka: KafkaPeer = request.getfixturevalue(release)
    directly = results(kafka.address)
    with Proxy(kafka.address) as proxy:
        through = results(proxy.bootstrap)
        assert proxy.requests
        assert proxy.events == []
    assert through == directly
    assert directly["TestGroupETL"] == directly["TestTxnEtl"] == "PASS"
