"""`up`, `status`, `stop` and `reset` with real brokers: what they say, and what is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from minibroker import __version__
from minibroker.client import admin
from minibroker.client.client import Client
from minibroker.client.settings import client_settings
from minibroker.compilation import package_kind
from minibroker.verbs.background.state import StateDirectory, StateOptions

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.verbs.background.conftest import Command, Outcome


def address_of(words: Outcome) -> str:
    """Return the address that a start has written."""
    line = words.output.splitlines()[0]
    return line.removeprefix("minibroker listening on ")


def topics_at(address: str) -> set[str]:
    client = Client(client_settings({"bootstrap.servers": address}))
    return {name for name, topic in admin.describe(client).topics.items() if not topic.is_internal}


def pid_in(state: Path) -> int:
    return int((state / "broker.pid").read_text())


def test_it_runs_until_it_is_stopped(run: Command, up: Command, state: Path) -> None:
    assert run("status") == (3, "minibroker is not running\n", "")
    started = up("--data-dir", "d", "--topic", "orders:2")
    assert started.code == 0
    assert topics_at(address_of(started)) == {"orders"}
    assert started.errors.startswith(f"pid {pid_in(state)}, log {state / 'broker.log'}; ")

    code, output, _ = run("status")
    assert code == 0
    assert output.startswith(f"minibroker is running at {address_of(started)}\n  pid      ")
    assert f"\n  version  {__version__} ({package_kind()})\n" in output
    assert "\n  topics   1\n" in output
    assert f"\n  data     {state.parent / 'd'}\n" in output

    assert run("stop") == (0, "minibroker stopped\n", "")
    assert (state.parent / "d" / ".kafka_cleanshutdown").exists()
    assert run("status")[:2] == (
        3,
        f"minibroker is not running\n  log      {state / 'broker.log'}\n",
    )
    assert run("stop") == (0, "minibroker is not running\n", "")


def test_a_second_start_writes_the_address_or_refuses_other_options(up: Command) -> None:
    started = up("--memory")
    assert up("--memory") == started
    code, output, errors = up("--memory", "--topic", "more")
    assert (code, output) == (1, "")
    assert f"it runs already at {address_of(started)}" in errors
    assert "with other options" in errors


def test_two_starts_at_once_make_one_broker(run: Command, state: Path) -> None:
    command = [sys.executable, "-m", "minibroker", "up", "-d", "--memory"]
    command += ["--listen", "127.0.0.1:0", "--state-dir", str(state)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    first, second = (process.communicate(timeout=60)[0] for process in both)
    assert [process.returncode for process in both] == [0, 0]
    assert first == second
    assert run("stop").output == "minibroker stopped\n"


def test_a_start_that_fails_shows_the_end_of_the_log(run: Command, up: Command) -> None:
    code, output, errors = up("--memory", "--set", "num.partitions=many")
    assert (code, output) == (1, "")
    first, last = errors.splitlines()
    assert first.startswith(
        "minibroker up: the broker ended with exit code 1 before it served; the last lines of "
    )
    assert last.startswith("  minibroker: Invalid value many for configuration num.partitions")
    assert run("status").code == 3
    assert up("--memory").code == 0


def test_wrong_usage_starts_nothing(run: Command, state: Path) -> None:
    code, _, errors = run("up", "-d", "--lisen", "127.0.0.1:0")
    assert code == 2
    assert "unknown argument '--lisen' (did you mean --listen?); see minibroker up --help" in errors
    assert not state.exists()


def test_a_killed_broker_is_not_running(run: Command, up: Command, state: Path) -> None:
    up("--data-dir", "d")
    pid = pid_in(state)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    code, output, _ = run("status")
    assert code == 3
    assert output.startswith(
        f"minibroker is not running: it ended without minibroker stop (pid {pid})\n"
    )
    assert run("stop").output == "minibroker is not running\n"
    assert up("--data-dir", "d").code == 0
    assert (state / "broker.previous.log").exists()


def test_a_pid_that_another_process_has_by_now_is_left_alone(
    run: Command, up: Command, state: Path
) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        assert up("--memory").code == 0
        os.kill(pid_in(state), signal.SIGKILL)
        os.waitpid(pid_in(state), 0)
        (state / "broker.pid").write_text(f"{other.pid}\n")
        details = json.loads((state / "broker.json").read_text())
        (state / "broker.json").write_text(json.dumps({**details, "pid": other.pid}))
        assert run("status").code == 3
        assert run("stop").output == "minibroker is not running\n"
        assert up("--memory").code == 0
        assert other.poll() is None
        other.communicate(b"\n")


def test_a_broker_whose_start_was_interrupted_is_named(
    run: Command, up: Command, state: Path
) -> None:
    up("--memory")
    pid = (state / "broker.pid").read_text()
    details = (state / "broker.json").read_text()
    for name in ("broker.pid", "broker.json"):
        (state / name).unlink()
    assert run("status").output.startswith("minibroker is starting\n")
    assert "nobody knows its process" in run("stop").errors
    assert "a broker runs already" in up("--memory").errors
    (state / "broker.pid").write_text(pid)
    (state / "broker.json").write_text(details)


def test_a_reset_begins_with_nothing_and_keeps_what_is_not_its_own(
    run: Command, up: Command, state: Path
) -> None:
    data = state.parent / "d"
    started = up("--data-dir", "d", "--topic", "orders:2", "--ready-file", "ready")
    assert (state.parent / "ready").read_text() == started.output
    client = Client(client_settings({"bootstrap.servers": address_of(started)}))
    admin.create_topic(client, "more", 1, {}, timeout_s=30)
    (data / "notes").write_text("mine")
    (data / "backup-2").mkdir()
    (data / "backup-2" / "notes").write_text("mine")

    code, output, errors = run("reset")
    assert code == 0
    assert topics_at(output.strip().removeprefix("minibroker listening on ")) == {"orders"}
    assert errors.splitlines() == [
        f"{data / name} stays: no broker has made it" for name in ("backup-2", "notes")
    ]


def test_a_reset_without_a_broker_or_with_zookeeper_is_refused(
    run: Command, up: Command, state: Path
) -> None:
    assert "no broker was started here" in run("reset").errors
    up("--memory")
    details = json.loads((state / "broker.json").read_text())
    (state / "broker.json").write_text(json.dumps({**details, "in_zookeeper": True}))
    assert "its metadata are in ZooKeeper" in run("reset").errors
    assert run("status").code == 0


def test_a_reset_of_several_brokers_writes_all_addresses(
    run: Command, up: Command, state: Path
) -> None:
    started = up("--brokers", "2", "--data-dir", "d", "--control", "127.0.0.1:0")
    code, output, errors = run("reset")
    assert (code, errors) == (0, "")
    for words in (started.output, output):
        listening, *control = words.splitlines()
        assert len(listening.split(",")) == 2
        assert [line.startswith("minibroker control on http://") for line in control] == [True] * 2
    assert {path.name for path in (state.parent / "d").glob("broker-*")} == {"broker-0", "broker-1"}


def test_status_names_the_schema_registries(run: Command, up: Command) -> None:
    registry = ("--registry", "127.0.0.1:0", "--control", "127.0.0.1:0")
    started = up("--brokers", "2", "--memory", *registry)
    lines = started.output.splitlines()
    urls = [line.split()[-1] for line in lines if line.startswith("minibroker registry on ")]
    assert len(urls) == 2
    output = run("status").output
    assert [line.split() for line in output.splitlines() if "registry" in line] == [
        ["registry", url] for url in urls
    ]
    assert output.count("control ") == 2


def test_a_stopped_broker_can_be_reset(run: Command, up: Command, state: Path) -> None:
    up("--data-dir", "d")
    run("stop")
    assert run("reset").code == 0
    assert run("status").code == 0


def test_a_secured_broker_has_its_topics_unknown(run: Command, up: Command) -> None:
    up("--memory", "--user", "alice:secret")
    code, output, _ = run("status")
    assert code == 0
    assert "\n  topics   unknown: a client without a login gets no answer (" in output


def test_without_detach_it_is_serve(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from minibroker.verbs.serve import process  # noqa: PLC0415  beside its only use

    monkeypatch.setattr(process, "run", lambda config, options: 7 if options.in_memory else 0)
    assert run("up", "--memory").code == 7


def test_a_state_directory_that_cannot_be_written_is_named(run: Command, state: Path) -> None:
    state.write_text("a file")
    code, output, errors = run("up", "-d", "--memory")
    assert (code, output) == (1, "")
    assert f"the state directory {state} cannot be written: " in errors
    assert "give another one with --state-dir" in errors
    state.unlink()


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        ("/var/state", "/var/state/minibroker"),
        ("relative", "/users/ada/.local/state/minibroker"),
        ("", "/users/ada/.local/state/minibroker"),
    ],
)
def test_the_state_directory_is_that_of_xdg(
    monkeypatch: pytest.MonkeyPatch, variable: str, expected: str
) -> None:
    monkeypatch.setenv("HOME", "/users/ada")
    state = StateDirectory(StateOptions(), {"XDG_STATE_HOME": variable})
    assert str(state.directory) == expected


def test_damaged_details_are_named(run: Command, state: Path) -> None:
    state.mkdir()
    (state / "broker.json").write_text("{")
    code, _, errors = run("status")
    assert code == 1
    assert f"{state / 'broker.json'} is damaged" in errors
    (state / "broker.json").unlink()
