"""A module under the sampler: it runs as with `python -m`, and its stacks are counted."""

import subprocess
import sys
import textwrap
from pathlib import Path

from benchmarks.peers import ROOT
from benchmarks.profile_broker import summary


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
