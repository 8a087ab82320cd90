"""The server stands on uvicorn without its program, and others in the process have it whole."""

from __future__ import annotations

import subprocess
import sys

OTHERS = """
import sys
import minibroker.control.server
left_out = {"click", "multiprocessing", "uvicorn.main", "uvicorn.server"} & set(sys.modules)
assert left_out == set(), left_out
import uvicorn
assert not hasattr(uvicorn, "nothing")
from uvicorn import Server
assert Server is uvicorn.Server is uvicorn.server.Server is sys.modules["uvicorn.main"].Server
assert uvicorn.run is sys.modules["uvicorn.main"].run
assert callable(uvicorn.main)
"""
OTHERS_FIRST = """
import uvicorn
import minibroker.control.server
assert uvicorn.Server is uvicorn.server.Server
"""


def run(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_program_of_uvicorn_is_imported_when_somebody_asks_for_it() -> None:
    run(OTHERS)


def test_uvicorn_that_is_imported_already_stays_as_it_is() -> None:
    run(OTHERS_FIRST)
