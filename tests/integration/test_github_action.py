"""The example of a step for GitHub Actions, as far as it runs without GitHub: its script."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from confluent_kafka.admin import AdminClient

from tests.support.build_files import ROOT
from tests.support.clients import confluent_consume

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Start = Callable[..., "subprocess.CompletedProcess[str]"]

ACTION = ROOT / "examples" / "github_action"
START_S = 300
SEED = '{"topic": "invoices", "value": "first"}\n{"topic": "invoices", "value": "second"}\n'


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Yield a function that runs the script with inputs; the broker ends with the test."""
    program = Path(sys.executable).parent / "minibroker"
    environment = {
        **os.environ,
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "MINIBROKER": str(program),
    }
    inputs_by_default = {"TOPICS": "", "SEED": "", "PORT": "0"}

    def start(**inputs: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", ACTION / "start.sh"],
            env={**environment, **inputs_by_default, **inputs},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=START_S,
            check=False,
        )

    yield start
    stop = [program, "stop", "--state-dir", str(tmp_path / "minibroker-state")]
    subprocess.run(stop, timeout=START_S, capture_output=True, check=False)


def outputs(directory: Path) -> dict[str, str]:
    lines = (directory / "output").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_a_broker_has_the_topics_and_records_of_the_inputs(start: Start, tmp_path: Path) -> None:
    seed = tmp_path / "seed.jsonl"
    seed.write_text(SEED)
    done = start(TOPICS="orders:3\n\n", SEED=str(seed))
    assert done.returncode == 0, done.stdout
    bootstrap = outputs(tmp_path)["bootstrap"]
    assert confluent_consume(bootstrap, "invoices", 2) == ["first", "second"]
    topics = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=60).topics
    assert len(topics["orders"].partitions) == 3
    assert outputs(tmp_path)["control"].startswith("http://127.0.0.1:")


def test_a_broker_that_cannot_start_fails_the_step(start: Start, tmp_path: Path) -> None:
    done = start(TOPICS="orders:many")
    assert done.returncode == 1
    assert "orders:many" in done.stdout
    assert done.stdout.endswith("::error::minibroker did not start\n")
    assert not (tmp_path / "output").exists()


def test_each_input_and_output_of_the_action_is_used() -> None:
    action = yaml.safe_load((ACTION / "action.yml").read_text())
    text, script = (ACTION / "action.yml").read_text(), (ACTION / "start.sh").read_text()
    assert [name for name in action["inputs"] if f"inputs.{name} }}}}" not in text] == []
    assert [name for name in action["outputs"] if f'echo "{name}=' not in script] == []
    *_, step = action["runs"]["steps"]
    assert [name for name in step["env"] if f"${name}" not in script] == []
