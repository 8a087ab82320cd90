"""Variables of bitnami's and wurstmeister's images → those of apache/kafka."""

from __future__ import annotations

from socket import gethostname
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.config.topic_option import TopicToCreate
from minibroker.cli.errors import UsageError
from minibroker.container import launch, variables
from minibroker.container.bitnami import put_bitnami
from minibroker.container.launch import arrange
from minibroker.container.old_addresses import put_listeners, put_outputs
from minibroker.container.topics import parse_topics
from minibroker.container.variables import Translated, translate
from minibroker.kafka.errors import ConfigError
from minibroker.verbs.serve.settings import build

if TYPE_CHECKING:
    from pathlib import Path

    from minibroker.broker.config.broker import BrokerConfig


SASL = {
    "KAFKA_CFG_LISTENERS": "CLIENT://:9092,INTERNAL://:9093",
    "KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP": "CLIENT:SASL_PLAINTEXT,INTERNAL:SASL_PLAINTEXT",
    "KAFKA_CFG_INTER_BROKER_LISTENER_NAME": "INTERNAL",
    "KAFKA_CFG_SASL_MECHANISM_INTER_BROKER_PROTOCOL": "PLAIN",
}
TLS = {
    "KAFKA_CFG_LISTENERS": "SSL://:9092",
    "KAFKA_CFG_SECURITY_INTER_BROKER_PROTOCOL": "SSL",
    "KAFKA_CERTIFICATE_PASSWORD": "secret",
}


@pytest.fixture(autouse=True)
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(launch, "PROPERTIES_FILES", (str(tmp_path / "server.properties"),))
    return tmp_path


def configured(environment: dict[str, str]) -> BrokerConfig:
    return build(*arrange(translate(environment)))[0]


def notes_of(environment: dict[str, str]) -> str:
    return "\n".join(translate(environment).notes)


def test_each_setting_of_bitnami_is_one_of_the_broker() -> None:
    config = configured(
        {
            "KAFKA_ENABLE_KRAFT": "yes",
            "KAFKA_KRAFT_CLUSTER_ID": "MkU3OEVBNTcwNTJENDM2Qk",
            "KAFKA_CFG_NODE_ID": "3",
            "KAFKA_CFG_NUM_PARTITIONS": "5",
            "KAFKA_CFG_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "KAFKA_CFG_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
            "KAFKA_CFG_ADVERTISED_LISTENERS": "PLAINTEXT://127.0.0.1:9092",
            "KAFKA_CFG_MAX_REQUEST_SIZE": "10",
            "KAFKA_EXTRA_FLAGS": "--override log.retention.hours=7",
            "ALLOW_PLAINTEXT_LISTENER": "yes",
        }
    )
    assert (config.broker_id, config.num_partitions) == (3, 5)
    assert config.cluster_id == "MkU3OEVBNTcwNTJENDM2Qk"
    assert config.originals["log.retention.hours"] == "7"
    assert [str(listener) for listener in config.listeners] == ["PLAINTEXT://:9092"]
    assert config.log_dirs == ("/bitnami/kafka/data",)
    assert config.unknown_keys == ()


def test_bitnamis_defaults_without_listeners() -> None:
    config = configured({"KAFKA_CFG_ZOOKEEPER_CONNECT": "zookeeper:2181"})
    (listener,) = config.advertised_listeners
    assert str(listener) == f"PLAINTEXT://{gethostname()}:9092"
    assert config.originals["broker.id"] == "-1"
    assert configured({"KAFKA_ENABLE_KRAFT": "yes"}).broker_id == 0


def test_a_listener_keeps_the_line_in_its_name() -> None:
    config = configured(
        {**SASL, "KAFKA_CFG_LISTENER_NAME_SASL_SSL_SSL_CLIENT_AUTH": "none", "KAFKA_CFG_X_Y": "1"}
    )
    assert config.originals["listener.name.sasl_ssl.ssl.client.auth"] == "none"
    assert "x.y" in config.unknown_keys


def test_of_two_names_the_shorter_is_stronger_and_the_other_is_named() -> None:
    both = {"KAFKA_CFG_BROKER_ID": "1", "KAFKA_BROKER_ID": "2"}
    assert configured(both).broker_id == 2
    assert (
        notes_of(both)
        == "KAFKA_CFG_BROKER_ID has no effect, KAFKA_BROKER_ID is set, too, and stronger"
    )
    assert notes_of({**both, "KAFKA_CFG_BROKER_ID": "2"}) == ""


def test_users_of_clients_and_of_brokers() -> None:
    environment = {
        "KAFKA_CLIENT_USERS": "alice,bob",
        "KAFKA_CLIENT_PASSWORDS": "a-secret;b-secret",
        "KAFKA_INTER_BROKER_USER": "broker",
        "KAFKA_INTER_BROKER_PASSWORD": "between",
    }
    config = configured({**SASL, **environment})
    assert config.originals["minibroker.users"] == '"alice"="a-secret" "bob"="b-secret"'
    assert config.originals["sasl.enabled.mechanisms"] == "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
    line = config.originals["listener.name.internal.plain.sasl.jaas.config"]
    assert '"username"="broker" "password"="between"' in line
    assert '"user_alice"="a-secret" "user_bob"="b-secret" "user_broker"="between"' in line
    assert "listener.name.client.plain.sasl.jaas.config" not in config.originals
    assert notes_of({**SASL, **environment}) == ""


def test_brokers_that_log_in_by_scram_have_a_credential() -> None:
    config = configured(
        {
            **SASL,
            "KAFKA_CFG_SASL_MECHANISM_INTER_BROKER_PROTOCOL": "SCRAM-SHA-256",
            "KAFKA_INTER_BROKER_USER": "broker",
        }
    )
    credentials = config.originals["minibroker.scram.credentials"]
    assert credentials.startswith('"SCRAM-SHA-256:broker"="salt=')
    line = config.originals["listener.name.internal.scram-sha-256.sasl.jaas.config"]
    assert line.endswith('ScramLoginModule required "username"="broker" "password"="bitnami";')


def test_the_default_password_is_named() -> None:
    assert "user may log in with the password 'bitnami'" in notes_of(SASL)
    assert configured(SASL).originals["minibroker.users"] == '"user"="bitnami"'


def test_a_jaas_file_has_the_users(tmp_path: Path) -> None:
    (tmp_path / "kafka_jaas.conf").write_text("KafkaServer { };")
    environment = dict(SASL)
    assert put_bitnami(environment, (str(tmp_path / "none"), str(tmp_path))) == []
    assert environment["KAFKA_OPTS"] == (
        f"-Djava.security.auth.login.config={tmp_path}/kafka_jaas.conf"
    )
    assert "KAFKA_MINIBROKER_USERS" not in environment
    own = {**SASL, "KAFKA_OPTS": "-Djava.security.auth.login.config=/mine"}
    put_bitnami(own, (str(tmp_path),))
    assert own["KAFKA_OPTS"] == "-Djava.security.auth.login.config=/mine"


def test_a_secret_may_be_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("from-a-file\n")
    environment = {**SASL, "KAFKA_CLIENT_PASSWORDS_FILE": str(tmp_path / "password")}
    assert configured(environment).originals["minibroker.users"] == '"user"="from-a-file"'
    environment["KAFKA_CLIENT_PASSWORDS_FILE"] = str(tmp_path / "none")
    with pytest.raises(ConfigError, match="none cannot be read"):
        translate(environment)


def test_stores_of_bitnami(tmp_path: Path) -> None:
    certificates = tmp_path / "certs"
    certificates.mkdir()
    for name in ("kafka.keystore.jks", "kafka.truststore.jks"):
        (certificates / name).touch()
    environment = {**TLS, "KAFKA_TLS_SSL_CLIENT_AUTH": "none"}
    put_bitnami(environment, (str(tmp_path),))
    assert environment["KAFKA_SSL_KEYSTORE_LOCATION"] == f"{certificates}/kafka.keystore.jks"
    assert environment["KAFKA_SSL_TRUSTSTORE_PASSWORD"] == "secret"
    assert environment["KAFKA_SSL_CLIENT_AUTH"] == "required"
    assert environment["KAFKA_LISTENER_NAME_SSL_SSL_CLIENT_AUTH"] == "none"
    for name, text in (
        ("kafka.keystore.pem", "c"),
        ("kafka.keystore.key", "k"),
        ("kafka.truststore.pem", "t"),
    ):
        (certificates / name).write_text(f"{text}\n")
    environment = {**TLS, "KAFKA_TLS_TYPE": "PEM", "KAFKA_TLS_CLIENT_AUTH": "none"}
    put_bitnami(environment, (str(tmp_path),))
    assert environment["KAFKA_SSL_KEYSTORE_CERTIFICATE_CHAIN"] == "c"
    assert environment["KAFKA_SSL_KEYSTORE_KEY"] == "k"
    assert environment["KAFKA_SSL_TRUSTSTORE_CERTIFICATES"] == "t"
    assert environment["KAFKA_SSL_CLIENT_AUTH"] == "none"


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"KAFKA_ZOOKEEPER_PROTOCOL": "SASL_SSL"}, "minibroker does not log in at ZooKeeper"),
        ({"KAFKA_CLIENT_SASL_MECHANISMS": "PLAIN"}, "each user may log in by every enabled"),
        ({"ALLOW_PLAINTEXT_LISTENER": "no"}, "every listener is PLAINTEXT"),
        ({"KAFKA_EXTRA_FLAGS": "-daemon"}, "expected --override KEY=VALUE"),
        ({**SASL, "KAFKA_CLIENT_USERS": "a,b"}, "has 2 names and KAFKA_CLIENT_PASSWORDS has 1"),
        (TLS, "there is no file kafka.keystore.jks: mount it at /bitnami/kafka/config/certs"),
        ({**TLS, "KAFKA_TLS_TYPE": "P12"}, "KAFKA_TLS_TYPE=P12: expected JKS or PEM"),
        ({"KAFKA_LOG4J_ROOT_LOGLEVEL": "LOUD"}, "KAFKA_LOG4J_ROOT_LOGLEVEL=LOUD: expected one"),
    ],
)
def test_a_variable_that_cannot_be_honoured_is_refused(
    environment: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        translate({"KAFKA_ENABLE_KRAFT": "no", **environment})


def test_variables_without_effect_are_named_with_their_reason() -> None:
    environment = {
        "KAFKA_HEAP_OPTS": "-Xmx1g",
        "KAFKA_JMX_PORT": "9101",
        "JMX_PORT": "9101",
        "CONFLUENT_METRICS_ENABLE": "true",
        "KAFKA_REST_HOST_NAME": "rest",
        "PATH": "/bin",
    }
    assert notes_of(environment) == (
        "these variables have no effect: CONFLUENT_METRICS_ENABLE, KAFKA_REST_HOST_NAME (it is of"
        " Confluent's own programs, which are not in this image); JMX_PORT, KAFKA_JMX_PORT (there"
        " is no JMX; MINIBROKER_CONTROL=0.0.0.0:9644 has the metrics at /metrics); KAFKA_HEAP_OPTS"
        " (no Java runs here)"
    )
    assert configured(environment).unknown_keys == ()


@pytest.mark.parametrize(
    ("environment", "level"),
    [
        ({"KAFKA_LOG4J_ROOT_LOGLEVEL": "WARN, stdout"}, "warning"),
        ({"BITNAMI_DEBUG": "true", "KAFKA_CFG_NODE_ID": "1"}, "debug"),
        ({"KAFKA_LOG4J_ROOT_LOGLEVEL": "WARN", "MINIBROKER_LOG_LEVEL": "info"}, "info"),
    ],
)
def test_the_level_of_the_log(environment: dict[str, str], level: str) -> None:
    assert translate(environment).variables["MINIBROKER_LOG_LEVEL"] == level


# Host names, ports and commands, as wurstmeister's image has them.


@pytest.mark.parametrize(
    ("environment", "listeners", "advertised"),
    [
        ({"KAFKA_ADVERTISED_HOST_NAME": "here"}, "PLAINTEXT://:9092", "PLAINTEXT://here:9092"),
        (
            {"KAFKA_ADVERTISED_HOST_NAME": "here", "KAFKA_ADVERTISED_PORT": "1", "KAFKA_PORT": "2"},
            "PLAINTEXT://:2",
            "PLAINTEXT://here:1",
        ),
        ({"KAFKA_HOST_NAME": "0.0.0.0", "KAFKA_PORT": "2"}, "PLAINTEXT://0.0.0.0:2", None),
        ({"KAFKA_PORT": "tcp://10.0.0.1:9092"}, None, None),
        (
            {"KAFKA_LISTENERS": "A://:1", "KAFKA_ADVERTISED_HOST_NAME": "here"},
            "A://:1",
            "PLAINTEXT://here:9092",
        ),
    ],
)
def test_old_keys_are_listeners(
    environment: dict[str, str], listeners: str | None, advertised: str | None
) -> None:
    assert put_listeners(environment) == []
    assert environment.get("KAFKA_LISTENERS") == listeners
    assert environment.get("KAFKA_ADVERTISED_LISTENERS") == advertised
    assert not environment.keys() - {"KAFKA_LISTENERS", "KAFKA_ADVERTISED_LISTENERS"}


def test_listeners_are_stronger_than_old_keys() -> None:
    environment = {"KAFKA_ADVERTISED_LISTENERS": "A://x:1", "KAFKA_ADVERTISED_HOST_NAME": "here"}
    (note,) = put_listeners(environment)
    assert note.startswith("KAFKA_ADVERTISED_HOST_NAME: no effect, KAFKA_ADVERTISED_LISTENERS is")


def test_the_output_of_a_command_replaces_its_name() -> None:
    environment = {
        "HOSTNAME_COMMAND": "echo this-host",
        "PORT_COMMAND": "echo 9094",
        "KAFKA_ADVERTISED_LISTENERS": "OUT://_{HOSTNAME_COMMAND}:_{PORT_COMMAND}",
        "BROKER_ID_COMMAND": "echo 7",
        "RACK_COMMAND": "echo r1",
        "KAFKA_BROKER_RACK": "r2",
    }
    put_outputs(environment)
    assert environment == {
        "KAFKA_ADVERTISED_LISTENERS": "OUT://this-host:9094",
        "KAFKA_BROKER_ID": "7",
        "KAFKA_BROKER_RACK": "r2",
    }
    alone = {"HOSTNAME_COMMAND": "echo this-host"}
    put_outputs(alone)
    assert alone == {"KAFKA_ADVERTISED_HOST_NAME": "this-host"}


@pytest.mark.parametrize("command", ["false", "echo", "exit 3"])
def test_a_command_without_a_line_ends_the_start(command: str) -> None:
    with pytest.raises(ConfigError, match=f"RACK_COMMAND={command}: it ended with code"):
        put_outputs({"RACK_COMMAND": command})


def test_data_go_where_the_user_has_mounted_a_volume(monkeypatch: pytest.MonkeyPatch) -> None:
    for volume, directory in (
        ("/bitnami", "/bitnami/kafka/data"),
        ("/kafka", f"/kafka/kafka-logs-{gethostname()}"),
        ("/none", "/var/lib/kafka/data"),
    ):
        monkeypatch.setattr(variables.os.path, "ismount", lambda path, at=volume: path == at)
        assert translate({}).data_dir == directory


def test_words_of_kafka_server_start(outside: Path) -> None:
    (outside / "mine.properties").write_text("num.partitions=5\n")
    words = [str(outside / "mine.properties"), "--override", "num.partitions=6"]
    arguments, settings = arrange(Translated({"KAFKA_NUM_PARTITIONS": "7"}, "/d", {}, []), words)
    assert build(arguments, settings)[0].num_partitions == 6
    sample = ["/opt/kafka/config/kraft/server.properties"]
    assert arrange(translate({}), sample)[0].config_file is None
    with pytest.raises(UsageError, match="expected KEY=VALUE"):
        arrange(translate({}), ["--override", "x"])


def test_the_form_of_other_images() -> None:
    assert parse_topics("orders:6:1,users:3:1:compact, audit:1:1:delete") == [
        TopicToCreate("orders", 6, {}, 1),
        TopicToCreate("users", 3, {"cleanup.policy": "compact"}, 1),
        TopicToCreate("audit", 1, {"cleanup.policy": "delete"}, 1),
    ]


def test_the_form_of_the_flag() -> None:
    assert parse_topics("a, b:2, c:cleanup.policy=compact, d:3:segment.ms=6:retention.ms=7") == [
        TopicToCreate("a", -1, {}),
        TopicToCreate("b", 2, {}),
        TopicToCreate("c", -1, {"cleanup.policy": "compact"}),
        TopicToCreate("d", 3, {"segment.ms": "6", "retention.ms": "7"}),
    ]


def test_lines_of_a_compose_file() -> None:
    assert [topic.name for topic in parse_topics("\n  a:1:1,\n  b:1:1,\n")] == ["a", "b"]
    assert parse_topics("") == []


def test_two_policies_want_another_separator() -> None:
    (topic,) = parse_topics("users:3:1:compact,delete;", ";")
    assert topic.configs == {"cleanup.policy": "compact,delete"}
    with pytest.raises(ConfigError, match="KAFKA_CREATE_TOPICS_SEPARATOR"):
        parse_topics("users:3:1:compact,delete")


def test_more_replicas_are_for_several_brokers() -> None:
    assert [topic.replicas for topic in parse_topics("b:1:1,a:1:3,c:1:2:compact,d:1")] == [
        1,
        3,
        2,
        0,
    ]


@pytest.mark.parametrize(
    "entry",
    ["a:0:1", "a:1:0", "a:x:1", ":1:1", "a:1:1:compact:more", "a:²:1", "a:x", ":2", "a:-1:1"],
)
def test_an_unreadable_part_is_named(entry: str) -> None:
    with pytest.raises(ConfigError, match="KAFKA_CREATE_TOPICS") as raised:
        parse_topics(f"good:1:1,{entry}")
    assert entry in str(raised.value)
