"""`minibroker serve` behind the command line: first line, exit code, what it says then."""

from __future__ import annotations

import asyncio
import gc
import resource
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.app import Broker
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.control import ControlOptions
from minibroker.broker.config.options import ServeOptions
from minibroker.cli import main
from minibroker.kafka.errors import ConfigError
from minibroker.verbs.serve.process import run

if TYPE_CHECKING:
    from collections.abc import Callable


def files_in(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def config(directory: Path, **settings: str) -> BrokerConfig:
    by_key = {key.replace("_", "."): value for key, value in settings.items()}
    listeners = "PLAINTEXT://127.0.0.1:0"
    return BrokerConfig({"listeners": listeners, "log.dirs": str(directory), **by_key})


def run_until_ready(config: BrokerConfig, options: ServeOptions) -> int:
    """`run` in this thread; SIGTERM comes as soon as the ready file is there."""
    assert options.ready_file is not None
    ready = Path(options.ready_file)
    loop_made: list[asyncio.AbstractEventLoop] = []

    class Watch:
        """Looks for the file from the broker's own loop."""

        def __call__(self) -> None:
            if ready.exists():
                signal.raise_signal(signal.SIGTERM)
            else:
                loop_made[0].call_later(0.01, self)

    from minibroker.verbs.serve import process  # noqa: PLC0415  beside the only patch

    original = process._serve

    async def watched(config: BrokerConfig, options: ServeOptions) -> int:
        loop = asyncio.get_running_loop()
        loop_made.append(loop)
        loop.call_soon(Watch())
        return await original(config, options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "_serve", watched)
        return run(config, options)


def test_as_many_files_may_be_open_as_the_system_allows(tmp_path: Path) -> None:
    """Shells give a low soft limit; the JVM raises it before Kafka begins."""
    first_limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, first_limits[1]))
    try:
        options = ServeOptions(ready_file=str(tmp_path / "ready"))
        assert run_until_ready(config(tmp_path / "data"), options) == 0
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (first_limits[1], first_limits[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, first_limits)


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_a_run_says_where_it_listens_and_ends_with_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], loop: str
) -> None:
    options = ServeOptions(ready_file=str(tmp_path / "ready"), loop=loop)
    assert run_until_ready(config(tmp_path / "data"), options) == 0
    out, err = capsys.readouterr()
    line = (tmp_path / "ready").read_text()
    assert out == line
    assert line.startswith("minibroker listening on 127.0.0.1:")
    assert err == ""


def test_more_lines_follow_once_it_serves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ServeOptions(ready_file=str(tmp_path / "ready"), ready_lines=("one", "two"))
    assert run_until_ready(config(tmp_path / "data"), options) == 0
    first, *more = capsys.readouterr().out.splitlines()
    assert first.startswith("minibroker listening on ")
    assert more == ["one", "two"]


def test_the_garbage_collector_goes_again_before_the_broker_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector_states: list[bool] = []

    async def start(_: Broker, __: object) -> None:
        collector_states.append(gc.isenabled())
        raise ConfigError("it is seen")

    monkeypatch.setattr(Broker, "start", start)
    assert main(["serve", "--data-dir", str(tmp_path / "data"), "--listen", "127.0.0.1:0"]) == 1
    assert collector_states == [True]


def test_the_garbage_collector_rests_until_the_broker_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector_states: list[bool] = []
    monkeypatch.setattr(
        "minibroker.verbs.serve.process.run", lambda *_: collector_states.append(gc.isenabled())
    )
    main(["serve", "--data-dir", str(tmp_path / "data")])
    assert collector_states == [False]
    assert gc.isenabled()


def test_in_memory_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    options = ServeOptions(ready_file=str(tmp_path / "ready"), in_memory=True)
    assert run_until_ready(BrokerConfig({"listeners": "PLAINTEXT://127.0.0.1:0"}), options) == 0
    assert files_in(tmp_path) == {"ready"}


def with_data_of_another_broker(directory: Path) -> BrokerConfig:
    data = directory / "data"
    data.mkdir()
    (data / "meta.properties").write_text("version=0\nbroker.id=7\n")
    return config(data)


@pytest.mark.parametrize(
    "break_it",
    [
        lambda directory: config(directory / "file" / "data"),
        with_data_of_another_broker,
    ],
)
def test_a_failed_start_is_one_sentence_and_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], break_it: Callable[[Path], BrokerConfig]
) -> None:
    (tmp_path / "file").write_text("")
    assert run(break_it(tmp_path), ServeOptions()) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("minibroker: ")
    assert err.count("\n") == 1


def test_a_ready_file_that_cannot_be_written_is_one_sentence_and_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ServeOptions(ready_file=str(tmp_path / "no" / "ready"))
    assert run(config(tmp_path / "data"), options) == 1
    _, err = capsys.readouterr()
    assert err.startswith("minibroker: ")
    assert str(tmp_path / "no" / "ready") in err
    assert ".kafka_cleanshutdown" in files_in(tmp_path / "data")


def test_several_brokers_are_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ServeOptions(ready_file=str(tmp_path / "ready"), brokers=3)
    assert run_until_ready(config(tmp_path / "data"), options) == 0
    line = (tmp_path / "ready").read_text()
    assert capsys.readouterr().out == line
    addresses = line.removeprefix("minibroker listening on ").rstrip().split(",")
    assert len(set(addresses)) == 3
    assert {"broker-0", "broker-1", "broker-2"} < files_in(tmp_path / "data")


def test_each_of_several_brokers_has_a_control_api(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ServeOptions(
        ready_file=str(tmp_path / "ready"), brokers=2, control=ControlOptions("127.0.0.1", 0)
    )
    assert run_until_ready(config(tmp_path / "data"), options) == 0
    _, *control = capsys.readouterr().out.splitlines()
    assert len(set(control)) == 2
    assert all(line.startswith("minibroker control on http://127.0.0.1:") for line in control)
    options = ServeOptions(brokers=3, control=ControlOptions("127.0.0.1", 65534))
    assert run(config(tmp_path / "more"), options) == 1
    assert "--control 127.0.0.1:65534: the ports of the other" in capsys.readouterr().err


@pytest.mark.parametrize(("first", "then"), [(1, 3), (3, 1)])
def test_data_of_one_broker_and_of_several_are_not_mixed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], first: int, then: int
) -> None:
    options = ServeOptions(ready_file=str(tmp_path / "ready"), brokers=first)
    assert run_until_ready(config(tmp_path / "data"), options) == 0
    capsys.readouterr()
    assert run(config(tmp_path / "data"), ServeOptions(brokers=then)) == 1
    _, err = capsys.readouterr()
    assert f"{tmp_path / 'data'} has the data of" in err
    assert "give another --data-dir" in err
