"""The variables of Kafka's images → what `minibroker serve` is told."""

from __future__ import annotations

import logging
import socket
import ssl
import threading
from socket import gethostname
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.config.control import ControlOptions
from minibroker.broker.config.registry import RegistryOptions
from minibroker.broker.config.topic_option import TopicToCreate
from minibroker.cli.errors import UsageError
from minibroker.container import launch
from minibroker.container.launch import arrange, listener_to_ask, ready_lines
from minibroker.container.secrets import put_secrets
from minibroker.container.variables import translate
from minibroker.container.zookeeper_port import dismiss, listen, main
from minibroker.kafka.errors import ConfigError
from minibroker.verbs.serve.settings import build

if TYPE_CHECKING:
    from pathlib import Path

    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.config.options import ServeOptions


# What Testcontainers' Java module sets, with one listener more.
TESTCONTAINERS = {
    "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
    "KAFKA_LISTENERS": (
        "CONTROLLER://0.0.0.0:9094,BROKER://0.0.0.0:9093,PLAINTEXT://0.0.0.0:9092,TC-0://kafka:19092"
    ),
    "KAFKA_ADVERTISED_LISTENERS": (
        "PLAINTEXT://localhost:32768,BROKER://9f3b6c1d2e4a:9093,TC-0://kafka:19092"
    ),
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": (
        "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,TC-0:PLAINTEXT"
    ),
    "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9094",
    "KAFKA_NODE_ID": "1",
    "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1",
    "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES": "9223372036854775807",
}


@pytest.fixture(autouse=True)
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Places that are the container's own, in a directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(launch, "PROPERTIES_FILES", (str(tmp_path / "server.properties"),))
    monkeypatch.setattr(launch, "LISTENER_FILE", str(tmp_path / "listener"))
    monkeypatch.setattr(
        launch, "_ZOOKEEPER_FILES", ("zookeeper.properties", str(tmp_path / "tmp" / "zookeeper"))
    )
    return tmp_path


def configured(environment: dict[str, str]) -> BrokerConfig:
    return build(*arrange(translate(environment)))[0]


def test_without_variables_the_host_and_other_containers_can_connect() -> None:
    config = configured({})
    assert [str(listener) for listener in config.listeners] == [
        "PLAINTEXT://:9092",
        "DOCKER://:19092",
    ]
    assert [str(listener) for listener in config.advertised_listeners] == [
        "PLAINTEXT://localhost:9092",
        f"DOCKER://{gethostname()}:19092",
    ]
    assert config.log_dirs == ("/var/lib/kafka/data",)
    assert listener_to_ask(config) == ":9092 PLAINTEXT"


def test_testcontainers_variables() -> None:
    config = configured(TESTCONTAINERS)
    assert [listener.name for listener in config.listeners] == ["BROKER", "PLAINTEXT", "TC-0"]
    assert (config.broker_id, config.cluster_id) == (1, "4L6g3nShT-eMCtK--X86sw")
    assert config.unknown_keys == ()
    assert config.offsets_topic_num_partitions == 1


def test_users_settings_win_over_the_images_defaults() -> None:
    config = configured(
        {
            "KAFKA_LOG_DIRS": "/data/kafka",
            "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:29092",
            "CLUSTER_ID": "a",
            "KAFKA_MINIBROKER_CLUSTER_ID": "b",
            "KAFKA_HEAP_OPTS": "-Xmx1g",
        }
    )
    assert config.log_dirs == ("/data/kafka",)
    assert [str(listener) for listener in config.listeners] == ["PLAINTEXT://0.0.0.0:29092"]
    assert config.cluster_id == "b"
    assert config.unknown_keys == ()


def test_an_empty_variable_is_none() -> None:
    config = configured({"KAFKA_LISTENERS": "", "KAFKA_NUM_PARTITIONS": "", "CLUSTER_ID": ""})
    assert (config.num_partitions, config.cluster_id) == (1, None)
    assert len(config.listeners) == 2


def test_the_file_that_apache_kafka_mounts_is_read_and_variables_are_stronger(
    outside: Path,
) -> None:
    (outside / "server.properties").write_text("num.partitions=5\nlog.dir=/d\nbroker.id=7\n")
    config = configured({"KAFKA_BROKER_ID": "8"})
    assert (config.num_partitions, config.log_dirs, config.broker_id) == (5, ("/d",), 8)


def test_topics_log_level_control_and_registry() -> None:
    arguments, settings = arrange(
        translate(
            {
                "KAFKA_CREATE_TOPICS": "orders:6:1",
                "MINIBROKER_LOG_LEVEL": "DEBUG",
                "MINIBROKER_CONTROL": "0.0.0.0:9644",
                "MINIBROKER_CONTROL_TOKEN": "secret",
                "MINIBROKER_CONTROL_READ_TOKEN": "reads",
                "MINIBROKER_CONTROL_TLS": "/etc/kafka/secrets/control.pem",
                "MINIBROKER_CONSOLE_READ_ONLY": "true",
                "MINIBROKER_REGISTRY": "0.0.0.0:8081",
                "MINIBROKER_REGISTRY_USERS": "alice:secret bob:other",
                "MINIBROKER_REGISTRY_TLS": "SSL",
            }
        )
    )
    _, options = build(arguments, settings)
    assert options.topics == (TopicToCreate("orders", 6, {}, 1),)
    assert options.log_level == "debug"
    assert options.control == ControlOptions(
        "0.0.0.0",
        9644,
        "secret",
        "reads",
        "/etc/kafka/secrets/control.pem",
        page_only_reads=True,
    )
    users = {"alice": "secret", "bob": "other"}
    assert options.registry == RegistryOptions("0.0.0.0", 8081, users, "SSL")
    with pytest.raises(ConfigError, match="KAFKA_CREATE_TOPICS"):
        arrange(translate({"KAFKA_CREATE_TOPICS": "orders:none"}))
    with pytest.raises(UsageError, match="MINIBROKER_CONSOLE_READ_ONLY=yes: expected true"):
        arrange(translate({"MINIBROKER_CONSOLE_READ_ONLY": "yes"}))


def test_a_controller_alone_is_not_started() -> None:
    with pytest.raises(ConfigError, match=r"process\.roles=controller: there is no controller"):
        arrange(translate({"KAFKA_PROCESS_ROLES": "controller"}))


@pytest.mark.parametrize("name", ["zookeeper.properties", "tmp/zookeeper"])
def test_a_zookeeper_of_the_start_script_is_not_asked(outside: Path, name: str) -> None:
    variables = {"KAFKA_ZOOKEEPER_CONNECT": "localhost:2181"}
    assert configured(variables).zookeeper_connect == "localhost:2181"
    (outside / "tmp").mkdir()
    (outside / name).write_text("clientPort=2181\ndataDir=/var/lib/zookeeper/data\n")
    assert configured(variables).zookeeper_connect is None
    other = {"KAFKA_ZOOKEEPER_CONNECT": "localhost:2182/chroot"}
    assert configured(other).zookeeper_connect == "localhost:2182/chroot"
    elsewhere = {"KAFKA_ZOOKEEPER_CONNECT": "zookeeper:2181"}
    assert configured(elsewhere).zookeeper_connect == "zookeeper:2181"


def test_the_lines_that_testcontainers_waits_for() -> None:
    running, started, raft = ready_lines(3)
    assert "Transitioning from RECOVERY to RUNNING" in running
    assert "[KafkaServer id=3] started" in started
    assert "Kafka Server started" in raft


def test_main_serves_and_says_what_has_no_effect(
    outside: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from minibroker.verbs.serve import process  # noqa: PLC0415  beside its only use

    served: list[tuple[BrokerConfig, ServeOptions]] = []
    monkeypatch.setattr(process, "run", lambda *both: served.append(both) or 5)
    monkeypatch.setattr(launch.os, "environ", TESTCONTAINERS)
    with caplog.at_level(logging.INFO):
        assert launch.main() == 5
    ((config, options),) = served
    assert options.ready_lines == ready_lines(1)
    assert (outside / "listener").read_text() == listener_to_ask(config) == "0.0.0.0:9093 PLAINTEXT"
    assert caplog.messages == [
        "no effect, minibroker is its own controller: controller.quorum.voters, process.roles"
    ]


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"KAFKA_NUM_PARTITIONS": "0"}, "num.partitions"),
        ({"KAFKA_CREATE_TOPICS": "a:x:1"}, "KAFKA_CREATE_TOPICS: 'a:x:1'"),
        ({"MINIBROKER_LOG_LEVEL": "loud"}, "--log-level 'loud'"),
        ({"MINIBROKER_CONTROL": "0.0.0.0:1"}, "MINIBROKER_CONTROL_TOKEN"),
        ({"KAFKA_PROCESS_ROLES": "controller"}, "leave this container out"),
    ],
)
def test_a_wrong_variable_is_one_sentence_and_exit_1(
    variables: dict[str, str],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(launch.os, "environ", variables)
    assert launch.main() == 1
    err = capsys.readouterr().err
    assert err.startswith("minibroker: ")
    assert sentence in err
    assert err.count("\n") == 1


def test_a_place_that_cannot_be_written_is_named(
    outside: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(launch, "LISTENER_FILE", str(outside / "none" / "listener"))
    monkeypatch.setattr(launch.os, "environ", {})
    assert launch.main() == 1
    assert "none/listener: No such file" in capsys.readouterr().err


def test_a_secured_broker_with_two_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    variables = {
        "MINIBROKER_SECURITY": "SASL_SSL",
        "MINIBROKER_USERS": "alice:secret bob:other",
        "KAFKA_LOG_DIRS": str(tmp_path / "data"),
    }
    config = configured(variables)
    assert [str(listener) for listener in config.advertised_listeners] == [
        "SASL_SSL://localhost:9092",
        f"DOCKER://{gethostname()}:19092",
    ]
    assert {listener.security_protocol for listener in config.listeners} == {"SASL_SSL"}
    assert listener_to_ask(config) == ":9092 SASL_SSL"
    assert config.originals["minibroker.users"] == '"alice"="secret" "bob"="other"'
    certificate = ssl.PEM_cert_to_DER_cert(config.originals["ssl.keystore.certificate.chain"])
    assert gethostname().encode() in certificate


def test_listeners_of_variables_are_secured_too() -> None:
    variables = {"MINIBROKER_USERS": "alice:secret", "KAFKA_LISTENERS": "SASL_PLAINTEXT://:9099"}
    config = configured(variables)
    assert [str(listener) for listener in config.listeners] == ["SASL_PLAINTEXT://:9099"]


def test_the_health_check_asks_the_listener_that_asks_least() -> None:
    config = configured(
        {
            "KAFKA_LISTENERS": "A://:1,B://:2,C://:3",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "A:SSL,B:SASL_PLAINTEXT,C:SASL_SSL",
            "KAFKA_INTER_BROKER_LISTENER_NAME": "B",
        }
    )
    assert listener_to_ask(config) == ":2 SASL_PLAINTEXT"


def test_users_of_kafka_storage_reach_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "given_users", lambda: '"SCRAM-SHA-256:a"="salt=x"')
    config = configured({})
    assert config.originals["minibroker.scram.credentials"] == '"SCRAM-SHA-256:a"="salt=x"'


# Files that variables of Kafka's images name become settings.


def test_stores_and_passwords(tmp_path: Path) -> None:
    for name, content in (("k.p12", "x"), ("t.p12", "x"), ("one", "secret\n"), ("two", " b ")):
        (tmp_path / name).write_text(content)
    variables = {
        "KAFKA_SSL_KEYSTORE_FILENAME": "k.p12",
        "KAFKA_SSL_KEYSTORE_CREDENTIALS": "one",
        "KAFKA_SSL_KEY_CREDENTIALS": "two",
        "KAFKA_SSL_TRUSTSTORE_FILENAME": "t.p12",
        "KAFKA_SSL_TRUSTSTORE_CREDENTIALS": "one",
        "KAFKA_NUM_PARTITIONS": "3",
    }
    put_secrets(variables, str(tmp_path))
    assert variables == {
        "KAFKA_SSL_KEYSTORE_LOCATION": f"{tmp_path}/k.p12",
        "KAFKA_SSL_KEYSTORE_PASSWORD": "secret",
        "KAFKA_SSL_KEY_PASSWORD": " b ",
        "KAFKA_SSL_TRUSTSTORE_LOCATION": f"{tmp_path}/t.p12",
        "KAFKA_SSL_TRUSTSTORE_PASSWORD": "secret",
        "KAFKA_NUM_PARTITIONS": "3",
    }


def test_files_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 5000)
    for variable, name, sentence in (
        ("KAFKA_SSL_KEYSTORE_FILENAME", "no", f"no: there is no file {tmp_path}/no; mount"),
        ("KAFKA_SSL_KEY_CREDENTIALS", "large", "large has more than 4096 bytes"),
    ):
        with pytest.raises(ConfigError, match=variable) as raised:
            put_secrets({variable: name}, str(tmp_path))
        assert sentence in str(raised.value)


# A port that listens and is no ZooKeeper.


def test_a_connection_is_closed_at_once(tmp_path: Path) -> None:
    file = tmp_path / "zookeeper.properties"
    file.write_text("clientPort=0\ndataDir=/var/lib/zookeeper/data\n")
    with listen(str(file)) as listening:
        thread = threading.Thread(target=dismiss, args=(listening,))
        thread.start()
        address = ("127.0.0.1", listening.getsockname()[1])
        with socket.create_connection(address, 60) as client:
            assert client.recv(1) == b""
        thread.join(60)


def test_an_impossible_setting_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "zookeeper.properties"
    file.write_text("clientPort=many")
    with pytest.raises(ConfigError, match="clientPort=many"):
        listen(str(file))
    assert main([str(tmp_path / "none")]) == 1
    assert "cannot read the configuration file" in capsys.readouterr().err
    with socket.create_server(("", 0)) as holder:
        file.write_text(f"clientPort={holder.getsockname()[1]}")
        assert main([str(file)]) == 1
    assert "in use" in capsys.readouterr().err
