"""Whoever types what README.md says, from its first line on, in an empty directory, gets what it
promises.

The commands run in a shell as they stand there, but for ports, which a test does not choose. Each
has a check of what it leaves; a new one without a check fails here, and so does a new section. The
pipeline's are in `tests/pipeline/test_readme.py`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib.metadata import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support import readme
from tests.support.clients import confluent_consume
from tests.support.processes import free_port
from tests.support.reacting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.timeout(300)

ROOT = readme.README.parent
BIN = Path(sys.executable).parent
SECONDS = 60.0
PIPELINE = "Pipeline"

MY_SERVICE = '''
"""What the README's tests are about, with confluent-kafka."""

import contextlib
import threading

from confluent_kafka import Consumer, Producer


def run_my_service(bootstrap_servers, topic):
    producer = Producer({"bootstrap.servers": bootstrap_servers, "retry.backoff.ms": 10})
    producer.produce(topic, b"{}", b"order-1", headers=[("source", b"web")])
    assert producer.flush(60) == 0


@contextlib.contextmanager
def my_consumer(bootstrap_servers, topic, group):
    consumer = Consumer({
        "bootstrap.servers": bootstrap_servers,
        "group.id": group,
        "heartbeat.interval.ms": 100,
        "log_level": 0,
    })
    consumer.subscribe([topic])
    over = threading.Event()

    def consume():
        while not over.is_set():
            consumer.poll(0.1)

    thread = threading.Thread(target=consume)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        consumer.close()
'''


def commands(section: str) -> list[str]:
    """Those of a section that are run."""
    found = readme.commands(block for block in readme.blocks() if block.section == section)
    return [command for command in found if readme.reason_not_to_run(command) is None]


def example(section: str) -> str:
    """The only block of Python in a section."""
    (found,) = (
        block.text
        for block in readme.blocks()
        if (block.section, block.language) == (section, "python")
    )
    return found


def said(command: str, directory: Path) -> str:
    """Run a shell's command, and return its stdout. Raises AssertionError when it fails."""
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        cwd=directory,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}


@contextmanager
def serving(command: str, directory: Path) -> Iterator[str]:
    """HOST:PORT of the broker that a command starts; Ctrl-C ends it, and it ends well."""
    with subprocess.Popen(
        ["bash", "-c", f"exec {command}"],
        cwd=directory,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            found = re.fullmatch(r"minibroker listening on (\S+)\n", process.stdout.readline())
            assert found is not None, command
            yield found[1]
        finally:
            process.terminate()
            code = process.wait(SECONDS)
    assert code == 0, command


def run_all(
    lines: list[str], directory: Path, address: str, checks: dict[str, Callable[[str], bool]]
) -> None:
    """Each of `lines`, and whether what it printed or left is what its check wants.

    Args:
        checks: how a command begins → its check, by what the command printed.
    """
    for command in lines:
        (check,) = (one for start, one in checks.items() if command.startswith(start))
        printed = said(command.replace("127.0.0.1:9092", address), directory)
        assert check(printed), f"{command} printed {printed}"


def what_make_runs(target: str) -> str:
    """The last line of a target's recipe, for a shell that has the environment's commands."""
    asked = ["make", "--no-print-directory", "--dry-run", "-C", str(ROOT), target]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=SECONDS, check=True)
    return done.stdout.splitlines()[-1].replace(".venv/bin/", "")


def test_every_section_has_a_test_or_a_reason() -> None:
    tested = {readme.TOP, "Starting it", "In Python tests", "From any language", "Looking inside"}
    without = {
        (block.section, text)
        for block in readme.blocks()
        if block.section not in tested | {PIPELINE}
        for text in (readme.commands([block]) or [block.text])
        if readme.reason_not_to_run(text) is None
    }
    assert not without


def test_no_reason_is_left_over() -> None:
    texts = [*readme.commands(readme.blocks()), *(block.text for block in readme.blocks())]
    unused = {
        start
        for start in readme.NOT_RUN
        if not any(text.lstrip().startswith(start) for text in texts)
    }
    assert not unused


def test_what_pip_is_to_install_is_an_extra() -> None:
    extras = metadata("minibroker").get_all("Provides-Extra") or []
    lines = [line for line in readme.commands(readme.blocks()) if line.startswith("pip install")]
    named = [re.fullmatch(r"pip install 'minibroker\[(\w+)\]'", line) for line in lines]
    assert [one and one[1] in extras for one in named] == [True] * len(lines)


def test_make_knows_each_target() -> None:
    lines = [line for line in readme.commands(readme.blocks()) if line.startswith("make ")]
    assert len(lines) > 1
    for line in lines:
        assert re.search(rf"^{line.split()[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
def test_the_first_commands_and_a_look_at_what_they_left(tmp_path: Path) -> None:
    first, *clients = commands(readme.TOP)
    command = what_make_runs(first.removeprefix("make "))
    assert "--listen 127.0.0.1:9092" in command
    with serving(command.replace(":9092", ":0"), tmp_path) as address:
        run_all(
            clients,
            tmp_path,
            address,
            {
                "echo hello | kcat": lambda printed: (
                    confluent_consume(address, "greetings", 1) == ["hello"] and not printed
                ),
                "kcat": lambda printed: printed == "hello\n",
            },
        )
        commit_in_partition_7(address)
    assert [path.name for path in tmp_path.iterdir()] == ["minibroker-data"]
    run_all(
        commands("Looking inside"),
        tmp_path,
        address,
        {
            "minibroker dump-log --print-data-log": lambda printed: (
                "Dumping minibroker-data/orders-0/00000000000000000000.log" in printed
                and "payload: an order" in printed
            ),
            "minibroker dump-log --offsets-decoder": lambda printed: (
                "payload: " in printed and GROUP_IN_PARTITION_7 in printed
            ),
            "minibroker check-log": lambda printed: printed.endswith("sound\n"),
        },
    )


GROUP_IN_PARTITION_7 = "group-9"


def commit_in_partition_7(address: str) -> None:
    """A record in `orders`, and a group that has read it."""
    producer = Producer({"bootstrap.servers": address})
    producer.produce("orders", b"an order")
    assert producer.flush(SECONDS) == 0
    consumer = Consumer({"bootstrap.servers": address, "group.id": GROUP_IN_PARTITION_7})
    consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
    consumer.close()


def test_a_broker_from_a_test_in_any_language(tmp_path: Path, monkeypatch: Any) -> None:
    """The block in Python, with a client where the reader puts one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", environment()["PATH"])
    found: dict[str, Any] = {"use": lambda address: answers.append(round_trip(address))}
    answers: list[list[str]] = []
    text = example("Starting it")
    assert "\n...\n" in text
    exec(text.replace("\n...\n", "\nuse(address)\n"), found)
    found["broker"].stdout.close()
    assert answers == [["value"]]
    assert found["broker"].returncode == 0
    assert list(tmp_path.iterdir()) == []


def round_trip(address: str) -> list[str]:
    producer = Producer({"bootstrap.servers": address})
    producer.produce("topic", b"value")
    assert producer.flush(SECONDS) == 0
    return confluent_consume(address, "topic", 1)


def test_the_tests_in_python_pass(tmp_path: Path) -> None:
    """As a user's own: a service of some lines, and pytest in a process of its own."""
    (tmp_path / "my_service.py").write_text(MY_SERVICE)
    names = "from my_service import my_consumer, run_my_service\n\n"
    (tmp_path / "test_my_service.py").write_text(names + example("In Python tests"))
    options = "-q -W error -o asyncio_default_fixture_loop_scope=function -p no:cacheprovider"
    printed = said(f"python -m pytest {options}", tmp_path)
    count = example("In Python tests").count("def test_")
    assert f"{count} passed" in printed


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_control_api_by_hand(tmp_path: Path) -> None:
    serve, *calls = commands("From any language")
    control = f"127.0.0.1:{free_port()}"
    with serving(serve.replace("127.0.0.1:9093", control), tmp_path) as address:
        wait_until((tmp_path / "ready").exists, "the ready file is there")
        assert (tmp_path / "ready").read_text().splitlines() == [
            f"minibroker listening on {address}",
            f"minibroker control on http://{control}",
        ]
        before_ms = time.time() * 1000

        def faults() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = json.loads(said(f"curl -s {control}/faults", tmp_path))
            return found

        run_all(
            [
                call.replace("curl", "curl -sS", 1).replace("127.0.0.1:9093", control)
                for call in calls
            ],
            tmp_path,
            address,
            {
                f"curl -sS {control}/health/ready": lambda text: json.loads(text)["ready"],
                f"curl -sS {control}/metrics": lambda text: "\nkafka_" in text,
                f"curl -sS {control}/faults": lambda _: (
                    [(one["id"], one["error"], one["times"]) for one in faults()]
                    == [(1, "NOT_LEADER_OR_FOLLOWER", 2)]
                ),
                "curl -sS -X DELETE": lambda _: faults() == [],
                f"curl -sS {control}/clock": lambda text: (
                    json.loads(text)["now_ms"] - before_ms >= 600_000
                ),
            },
        )
