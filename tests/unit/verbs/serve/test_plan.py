"""Arguments to settings and options; exit codes and the sentences that go with them."""

from __future__ import annotations

import atexit
import logging
import ssl
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker import __version__
from minibroker.broker.config.topic_option import TopicToCreate, parse_topic
from minibroker.broker.security.listener_tls import ListenerTls
from minibroker.cli import main
from minibroker.cli.errors import EXIT_FAILED, EXIT_OK, EXIT_USAGE, UsageError
from minibroker.compilation import package_kind
from minibroker.verbs.serve.settings import build
from minibroker.verbs.serve.verb import parse_serve
from tests.support.certificates import shake_hands

if TYPE_CHECKING:
    from collections.abc import Callable


def test_without_arguments_it_is_kafkas_defaults_in_the_working_directory() -> None:
    config, options = build(parse_serve([]), {})
    assert str(config.listeners[0]) == "PLAINTEXT://127.0.0.1:9092"
    assert config.log_dirs == ("minibroker-data",)
    assert (options.topics, options.ready_file, options.in_memory) == ((), None, False)
    assert (options.loop, options.log_level) == ("auto", "info")


def test_flags_are_short_names_of_keys() -> None:
    arguments = parse_serve(
        [
            *("--listen", "127.0.0.1:0", "--data-dir=/d", "--zookeeper", "z:2181/k"),
            *("--set", "num.partitions=3", "--topic", "a:2", "--topic", "b"),
            *("--ready-file", "r", "--loop", "asyncio", "--log-level", "ERROR"),
        ]
    )
    config, options = build(arguments, {})
    assert str(config.listeners[0]) == "PLAINTEXT://127.0.0.1:0"
    assert config.log_dirs == ("/d",)
    assert config.zookeeper_connect == "z:2181/k"
    assert config.num_partitions == 3
    assert options.topics == (TopicToCreate("a", 2, {}), TopicToCreate("b", -1, {}))
    assert (options.ready_file, options.loop, options.log_level) == ("r", "asyncio", "error")


def test_the_later_flag_wins_and_flags_win_over_variables_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("num.partitions=1\nlog.dirs=/file\nbroker.rack=file\n")
    arguments = parse_serve(
        ["--data-dir", "/flag", "--config", str(path), "--set", "log.dirs=/set"]
    )
    config, _ = build(arguments, {"KAFKA_NUM_PARTITIONS": "2", "KAFKA_BROKER_RACK": "variable"})
    assert config.log_dirs == ("/set",)
    assert config.num_partitions == 2
    assert config.broker_rack == "variable"


@pytest.mark.parametrize(
    ("value", "listener"),
    [
        ("localhost:9092", "PLAINTEXT://localhost:9092"),
        (":9092", "PLAINTEXT://:9092"),
        ("[::1]:9092", "PLAINTEXT://[::1]:9092"),
        ("::1:9092", "PLAINTEXT://[::1]:9092"),
        ("PLAINTEXT://a:1", "PLAINTEXT://a:1"),
    ],
)
def test_listen(value: str, listener: str) -> None:
    assert parse_serve(["--listen", value]).settings == (("listeners", listener),)


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("a", TopicToCreate("a", -1, {})),
        ("a:6", TopicToCreate("a", 6, {})),
        ("a:6:cleanup.policy=compact", TopicToCreate("a", 6, {"cleanup.policy": "compact"})),
        ("a:6:3", TopicToCreate("a", 6, {}, 3)),
        ("a:6:3:flush.ms=1", TopicToCreate("a", 6, {"flush.ms": "1"}, 3)),
        ("a:flush.ms=1", TopicToCreate("a", -1, {"flush.ms": "1"})),
        ("a:1:x=0:1,0:2:y=", TopicToCreate("a", 1, {"x": "0:1,0:2", "y": ""})),
    ],
)
def test_topics(text: str, topic: TopicToCreate) -> None:
    assert parse_topic(text) == topic


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--nope"], "unknown argument '--nope'"),
        (["broker"], "unknown argument 'broker'"),
        (["--listen"], "--listen needs a value"),
        (["--listen", "--memory"], "--listen needs a value"),
        (["--listen", "9092"], "expected HOST:PORT"),
        (["--listen", "a:99999"], "expected HOST:PORT"),
        (["--set", "a"], "expected KEY=VALUE"),
        (["--set", "=a"], "expected KEY=VALUE"),
        (["--data-dir="], "--data-dir needs a directory"),
        (["--topic", "a:0"], "'0' is not a number of partitions"),
        (["--topic", "a:x"], "'x' is not a number of partitions"),
        (["--topic", ":1"], "expected NAME[:PARTITIONS"),
        (["--topic", "a:1:=x"], "'=x' is not KEY=VALUE"),
        (["--topic", "a:1:x"], "'x' is not a number of replicas"),
        (["--topic", "a:1:1:x"], "'x' is not KEY=VALUE"),
        (["--brokers", "0"], "--brokers 0: expected a number from 1 to 100"),
        (["--brokers", "x"], "--brokers x: expected a number from 1 to 100"),
        (["--loop", "trio"], "expected auto, uvloop or asyncio"),
        (["--log-level", "loud"], "expected debug, info, warning or error"),
        (["--memory", "--data-dir", "d"], "give one of them"),
    ],
)
def test_wrong_usage(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError) as caught:
        parse_serve(words)
    assert sentence in str(caught.value)
    assert main(["serve", *words]) == EXIT_USAGE
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == EXIT_OK
    assert capsys.readouterr().out == f"minibroker {__version__} ({package_kind()})\n"
    assert main(["--help"]) == EXIT_OK
    assert "\n  serve  " in capsys.readouterr().out
    assert main(["serve", "--help"]) == EXIT_OK
    help_text = capsys.readouterr().out
    for flag in ("--listen", "--data-dir", "--memory", "--topic", "--zookeeper", "--config"):
        assert flag in help_text


def test_no_command_and_an_unknown_one_are_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == EXIT_USAGE
    assert main(["swerve"]) == EXIT_USAGE
    output = capsys.readouterr()
    assert output.out == ""
    assert "unknown verb 'swerve' (did you mean serve?)" in output.err


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "minibroker", *words], capture_output=True, text=True, check=False
    )


def test_a_wrong_setting_is_one_sentence_and_exit_1() -> None:
    finished = run("serve", "--set", "num.partitions=many")
    assert finished.returncode == EXIT_FAILED
    assert finished.stdout == ""
    assert finished.stderr == (
        "minibroker: Invalid value many for configuration num.partitions: "
        "Not a number of type INT\n"
    )


def test_unknown_keys_are_named_in_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    arguments = parse_serve(["--set", "num.partitons=3", "--set", "b.c=1"])
    with caplog.at_level(logging.WARNING):
        build(arguments, {"KAFKA_A_B": "x"})
    (record,) = caplog.records
    assert record.getMessage() == "unknown configuration keys are ignored: a.b, b.c, num.partitons"


def ca_file(caplog: pytest.LogCaptureFixture) -> Path:
    return Path(caplog.messages[-1].removeprefix("clients have to trust the CA in "))


def test_a_certificate_is_made_for_the_address_and_the_authority_is_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = str(tmp_path / "data")
    arguments = parse_serve(
        ["--security", "SSL", "--listen", "my-host.example:9", "--data-dir", data]
    )
    with caplog.at_level(logging.INFO):
        config, _ = build(arguments, {})
        build(arguments, {})
    (listener,) = config.listeners
    assert str(listener) == "SSL://my-host.example:9"
    client = ssl.create_default_context(cafile=str(ca_file(caplog)))
    served = shake_hands(ListenerTls(listener, config).context, client, "my-host.example")
    assert served.version() == "TLSv1.3"
    assert ca_file(caplog).parent == tmp_path / "data-tls"


def test_certificates_go_with_the_rest_of_the_memory(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_exit: list[Callable[[], object]] = []
    monkeypatch.setattr(
        atexit,
        "register",
        lambda call, *items, **options: at_exit.append(partial(call, *items, **options)),
    )
    arguments = parse_serve(["--security", "SASL_SSL", "--user", "alice:secret", "--memory"])
    with caplog.at_level(logging.INFO):
        config, _ = build(arguments, {})
    assert config.listeners[0].name == "SASL_SSL"
    assert config.text("minibroker.users") == '"alice"="secret"'
    assert ca_file(caplog).exists()
    for call in at_exit:
        call()
    assert not ca_file(caplog).parent.exists()
