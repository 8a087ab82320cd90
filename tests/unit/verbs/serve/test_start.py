"""The imports of a start: what a broker alone loads before it has answered its first Metadata."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.wire import WireClient

if TYPE_CHECKING:
    from pathlib import Path

OWN_MODULES_MAX = 187
"""The modules of ours in such a start. A module more is 0.1 to 1 ms more for every start: a part
that a broker alone does not need is imported when something asks for it.
"""


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of the modules that `minibroker serve --memory` has imported at that answer."""
    directory: Path = tmp_path_factory.mktemp("start")
    words = ["serve", "--memory", "--listen", "127.0.0.1:0", "--loop", "asyncio"]
    with subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "minibroker", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(directory)},
    ) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline().rpartition(":")[2])
            with WireClient("127.0.0.1", port) as client:
                assert client.call("metadata", 4, topics=[])["brokers"]
        finally:
            process.kill()
        errors = process.communicate(timeout=60)[1]
    return set(re.findall(r"^import time: .*\| +(\S+)$", errors, re.MULTILINE))


def test_the_modules_of_a_start_are_counted(imported: set[str]) -> None:
    own = {name for name in imported if name.startswith("minibroker.")}
    assert "minibroker.broker.handlers.common.leaders" in own  # of the handler of Metadata
    assert len(own) <= OWN_MODULES_MAX, sorted(own)


@pytest.mark.parametrize(
    "name",
    [
        "minibroker.broker.peers",
        "minibroker.broker.replication.fetcher",
        "minibroker.client.async_connection",
    ],
)
def test_a_broker_alone_imports_nothing_that_asks_other_brokers(
    imported: set[str], name: str
) -> None:
    assert name not in imported


@pytest.mark.parametrize("name", ["argparse", "tempfile", "shutil", "bz2", "encodings.idna"])
def test_a_start_does_without_these_modules_of_python(imported: set[str], name: str) -> None:
    assert name not in imported
