"""Start-up budget and sampled stacks, as printed."""

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

from benchmarks.importtime import by_package, parse
from benchmarks.peers import ROOT
from benchmarks.profile_broker import summary

IMPORTS = """\
import time: self [us] | cumulative | imported package
import time:       300 |        300 |     uvloop.loop
import time:       200 |        500 |   uvloop
some line of the broker's own
import time:        50 |         50 |   minibroker.server.listener
import time:        70 |        620 | minibroker.app
"""


def test_importtime_lines_are_read_and_others_left() -> None:
    imports = parse(IMPORTS)
    assert [module.module for module in imports] == [
        "uvloop.loop",
        "uvloop",
        "minibroker.server.listener",
        "minibroker.app",
    ]
    assert imports[0].depth == 2
    assert by_package(imports) == {"uvloop": 500, "minibroker.server": 50, "minibroker.app": 70}


def test_summary_of_stacks() -> None:
    stacks = ["3 a.py:main:1;b.py:work:7", "1 a.py:main:2"]
    text = summary(stacks, top=5)
    assert "4 samples" in text
    own, inclusive, lines = text.split("\n\n")[1:]
    assert "75.0%  b.py:work" in own
    assert "100.0%  a.py:main" in inclusive
    assert "75.0%  b.py:work:7" in lines


def test_sampled_module_writes_its_stacks(tmp_path: Path) -> None:
    """A module that burns CPU until it was sampled a few times ends with its function on top."""
    module = tmp_path / "burner.py"
    module.write_text(
        textwrap.dedent(
            """
            import os, signal, time
            def burn():
                until = time.process_time() + 0.1
                while time.process_time() < until:
                    pass
            os.kill(os.getpid(), signal.SIGUSR2)
            burn()
            """
        )
    )
    output = tmp_path / "stacks"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.sampled", str(output), "-m", "burner"],
        env={"PYTHONPATH": f"{ROOT}:{tmp_path}"},
        check=True,
        capture_output=True,
    )
    assert not done.stderr
    assert "burner.py:burn" in summary(output.read_text().splitlines(), top=1)
    assert signal.getsignal(signal.SIGPROF) is signal.SIG_DFL
