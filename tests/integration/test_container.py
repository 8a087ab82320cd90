"""The image's entry points, started in the same ways as Kafka's images.

Every row of `STARTS` is a Kafka module of Testcontainers: its variables, its command and the start
script that it copies into the running container, as they are; only ports are free ones, because the
container shares this machine's network. Read from testcontainers-java 1.21 and 2.0,
testcontainers-python 4.15, testcontainers-go 0.40 and @testcontainers/kafka 12.2.

That needs no Docker engine, so its own work is not tested here: networks and published ports,
HEALTHCHECK, volumes.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.request import urlopen

import pytest

from minibroker.cli.errors import UsageError
from minibroker.container.launch import arrange
from minibroker.container.variables import translate
from minibroker.verbs.serve.settings import build
from tests.support import kerberos
from tests.support.build_files import BUILD, required
from tests.support.certificates import authority_pem, broker_certificate, pkcs12_of
from tests.support.clients import confluent_consume, confluent_produce, expected
from tests.support.container import ROOT, WHEELS, Container, build_layer, missing
from tests.support.examples import python_project
from tests.support.memory import directory_in_memory
from tests.support.processes import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Start = Callable[..., Container]

COMPOSE_READER: Final = BUILD / "compose-go" / "cmd"

CLUSTER_ID: Final = "4L6g3nShT-eMCtK--X86sw"
RUNNING: Final = "Transitioning from RECOVERY to RUNNING"
STARTED: Final = "[KafkaServer id=1] started"
RAFT_STARTED: Final = "Kafka Server started"

TMP: Final = "/tmp"  # the container's
JAVA_SCRIPT: Final = f"{TMP}/testcontainers_start.sh"
WAIT_FOR_SCRIPT: Final = "while [ ! -f {0} ]; do sleep 0.1; done; {0}"

FORMAT: Final = """\
sed -i '/KAFKA_ZOOKEEPER_CONNECT/d' /etc/confluent/docker/configure
echo 'kafka-storage format --ignore-formatted -t "4L6g3nShT-eMCtK--X86sw" \
-c /etc/kafka/kafka.properties' >> /etc/confluent/docker/configure
"""
ZOOKEEPER: Final = """\
echo 'clientPort=2181' > {0}zookeeper.properties
echo 'dataDir=/var/lib/zookeeper/data' >> {0}zookeeper.properties
echo 'dataLogDir=/var/lib/zookeeper/log' >> {0}zookeeper.properties
zookeeper-server-start {0}zookeeper.properties &
"""
NO_CHECKS: Final = "echo '' > /etc/confluent/docker/ensure \n"
PYTHON_SCRIPT: Final = """\
#!/bin/bash
{0}
export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:{1},BROKER://$(hostname -i):9092
. /etc/confluent/docker/bash-config
/etc/confluent/docker/configure
/etc/confluent/docker/launch"""
GO_SCRIPT: Final = """\
#!/bin/bash
source /etc/confluent/docker/bash-config
export KAFKA_ADVERTISED_LISTENERS="PLAINTEXT://localhost:{0},BROKER://9f3b6c1d2e4a:9092\
${EXTRA_ADVERTISED_LISTENERS:+,${EXTRA_ADVERTISED_LISTENERS}}"
echo Starting Kafka KRaft mode
sed -i '/KAFKA_ZOOKEEPER_CONNECT/d' /etc/confluent/docker/configure
echo 'kafka-storage format --ignore-formatted -t "$(kafka-storage random-uuid)" \
-c /etc/kafka/kafka.properties' >> /etc/confluent/docker/configure
echo '' > /etc/confluent/docker/ensure
/etc/confluent/docker/configure
/etc/confluent/docker/launch"""

COMMON: Final = {
    "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES": "9223372036854775807",
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    "KAFKA_BROKER_ID": "1",
    "KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:{0},BROKER://0.0.0.0:{1}",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
}
KRAFT: Final = {
    **COMMON,
    "CLUSTER_ID": CLUSTER_ID,
    "KAFKA_LISTENERS": "BROKER://0.0.0.0:{1},CONTROLLER://0.0.0.0:9094,PLAINTEXT://0.0.0.0:{0}",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": (
        "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
    ),
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9094",
    "KAFKA_NODE_ID": "1",
}
IN_CONTAINER: Final = {**COMMON, "KAFKA_ZOOKEEPER_CONNECT": "localhost:2181"}


class Way(NamedTuple):
    """One way a module starts Kafka; `{0}` is the client's port, `{1}` the other brokers'."""

    name: str
    variables: dict[str, str]
    script: str
    waits_for: str
    command: str = WAIT_FOR_SCRIPT.format(JAVA_SCRIPT)
    path: str = JAVA_SCRIPT


def _java(variables: dict[str, str], name: str, lines: str, run: str, waits_for: str) -> Way:
    advertised = "PLAINTEXT://localhost:{0},BROKER://9f3b6c1d2e4a:9093"
    script = f"#!/bin/bash\nexport KAFKA_ADVERTISED_LISTENERS={advertised}\n{lines}{run} \n"
    return Way(name, variables, script, waits_for)


CP_RUN: Final = "/etc/confluent/docker/run"
TC_START: Final = "/tc-start.sh"
GO_START: Final = "/usr/sbin/testcontainers_start.sh"
PYTHON_WAITS: Final = f"while [ ! -f {TC_START} ]; do sleep 0.1; done; sh {TC_START}"
PYTHON_ZOOKEEPER: Final = ZOOKEEPER.format("") + "export KAFKA_ZOOKEEPER_CONNECT='localhost:2181'\n"
STARTS: Final = (
    _java(KRAFT, "java-apache", "", "/etc/kafka/docker/run", RUNNING),
    _java(KRAFT, "java-confluent", "", CP_RUN, RUNNING),
    _java(KRAFT, "java-old-kraft", NO_CHECKS + FORMAT, CP_RUN, RUNNING),
    _java(
        IN_CONTAINER, "java-old-zookeeper", NO_CHECKS + ZOOKEEPER.format(f"{TMP}/"), CP_RUN, STARTED
    ),
    Way(
        "python-kraft",
        KRAFT,
        PYTHON_SCRIPT.replace("{0}", FORMAT).replace("{1}", "{0}"),
        RAFT_STARTED,
        PYTHON_WAITS,
        TC_START,
    ),
    Way(
        "python-zookeeper",
        COMMON,
        PYTHON_SCRIPT.replace("{0}", PYTHON_ZOOKEEPER).replace("{1}", "{0}"),
        STARTED,
        PYTHON_WAITS,
        TC_START,
    ),
    Way(
        "go",
        KRAFT,
        GO_SCRIPT,
        RUNNING,
        f"while [ ! -f {GO_START} ]; do sleep 0.1; done; bash {GO_START}",
        GO_START,
    ),
    _java(KRAFT, "node-kraft", FORMAT, CP_RUN, RUNNING),
    _java(IN_CONTAINER, "node-zookeeper", NO_CHECKS + ZOOKEEPER.format(""), CP_RUN, STARTED),
)

pytestmark = pytest.mark.timeout(600)  # the first one makes the image's files

needs_namespaces = pytest.mark.skipif(missing() is not None, reason=f"no container: {missing()}")


@pytest.fixture(scope="module")
def layer() -> Iterator[Path]:
    if kerberos.missing() is None:
        required(WHEELS / ".kerberos")
    with directory_in_memory() as directory:
        yield build_layer(directory)


@pytest.fixture
def start(layer: Path, tmp_path: Path) -> Iterator[Start]:
    """Yield a function that starts containers of this test, each in a directory of its own."""
    running: list[Container] = []

    def start(command: Sequence[str] = ("/etc/kafka/docker/run",), **variables: str) -> Container:
        directory = tmp_path / str(len(running))
        running.append(Container(layer, directory, command, variables=variables))
        return running[-1]

    yield start
    for container in running:
        container.stop()


def on_free_ports(**variables: str) -> tuple[int, dict[str, str]]:
    """Return the port for clients, and `variables` with two listeners."""
    port, other = free_port(), free_port()
    return port, {name: text.format(port, other) for name, text in variables.items()}


def cluster_id_of(port: int) -> str:
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415  as heavy as the container

    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
    return str(admin.list_topics(timeout=300).cluster_id)


@needs_namespaces
@pytest.mark.parametrize("way", STARTS, ids=[way.name for way in STARTS])
def test_testcontainers_start_it(way: Way, start: Start) -> None:
    port, variables = on_free_ports(**way.variables)
    zookeeper = str(free_port())  # where the image shows a port and no ZooKeeper
    variables = {name: text.replace("2181", zookeeper) for name, text in variables.items()}
    container = start(("sh", "-c", way.command), **variables)
    container.wait_until_entered()
    assert container.execute("/opt/minibroker/bin/health").returncode == 1
    script = way.script.replace("{0}", str(port)).replace("2181", zookeeper)
    container.copy_in(way.path, script)
    container.wait_for_line(way.waits_for)
    health = container.execute("/opt/minibroker/bin/health")
    assert (health.returncode, health.stderr) == (0, "")
    address = f"localhost:{port}"
    confluent_produce(address, "orders", "none", "order", 3)
    assert sorted(confluent_consume(address, "orders", 3)) == sorted(expected("order", 3))
    if way.variables is KRAFT:
        assert cluster_id_of(port) == CLUSTER_ID
    if "zookeeper-server-start" in way.script:
        container.wait_for_line("no ZooKeeper is started here")
        socket.create_connection(("127.0.0.1", int(zookeeper)), 60).close()
    assert "ERROR" not in container.log.read_text()


DESCRIBE: Final = """\
import json, sys
import minibroker_container as module
module.CLIENT_PORT, module.NETWORK_PORT, module.CONTROL_PORT = map(int, sys.argv[1:])
container = [module.variables(["orders:3"], "secret"), module.COMMAND, module.START_SCRIPT]
print(json.dumps([*container, module.start_script("localhost", module.CLIENT_PORT)]))
"""


@needs_namespaces
def test_the_container_class_of_the_examples_starts_it(start: Start, tmp_path: Path) -> None:
    """In Java it has the same variables and the same script; its own test says so."""
    project, python = python_project("testcontainers/python", "examples-venv", tmp_path)
    port, network_port, control_port = (free_port() for _ in range(3))
    described = subprocess.run(
        [
            python,
            "-c",
            DESCRIBE,
            *map(str, (port, network_port, control_port)),
        ],
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    )
    variables, command, path, script = json.loads(described.stdout)
    container = start(command, **variables)
    container.wait_until_entered()
    container.copy_in(path, script)
    container.wait_for_line(RUNNING)
    with urlopen(f"http://127.0.0.1:{control_port}/health/ready", timeout=60) as answer:
        assert answer.status == 200
    confluent_produce(f"localhost:{port}", "orders", "none", "order", 3)
    directories = {path.name for path in (container.root / "var/lib/kafka/data").iterdir()}
    assert {"orders-0", "orders-1", "orders-2"} <= directories


@needs_namespaces
def test_topics_data_and_variables_as_arguments(start: Start) -> None:
    port, _ = on_free_ports()
    variables = {
        "KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://localhost:{port}",
        "KAFKA_CREATE_TOPICS": "orders:3:1, users:1:1:compact",
    }
    container = start(("/etc/kafka/docker/run", "KAFKA_NUM_PARTITIONS=5"), **variables)
    container.wait_for_line(RUNNING)
    address = f"localhost:{port}"
    confluent_produce(address, "made-by-a-client", "none", "x", 1)
    directories = {path.name for path in (container.root / "var/lib/kafka/data").iterdir()}
    assert {"orders-0", "orders-1", "orders-2", "users-0"} <= directories
    assert {f"made-by-a-client-{index}" for index in range(5)} <= directories
    checked = container.execute("minibroker", "check-log", "/var/lib/kafka/data")
    assert checked.returncode == 0, checked.stdout + checked.stderr


@needs_namespaces
def test_a_wrong_variable_ends_the_container_with_one_sentence(start: Start) -> None:
    container = start(KAFKA_NUM_PARTITIONS="many")
    assert container.process.popen.wait(180) == 1
    (line,) = container.log.read_text().splitlines()
    assert line.startswith("minibroker: ")
    assert "num.partitions" in line


@needs_namespaces
def test_ids_are_kafkas(start: Start) -> None:
    container = start(("sh", "-c", "kafka-storage random-uuid; sleep 1000"))
    container.wait_until_entered()
    answer = container.execute("kafka-storage", "random-uuid")
    assert (answer.returncode, len(answer.stdout)) == (0, 23)
    assert container.execute("kafka-storage", "info").returncode == 1


def _program(name: str) -> str:
    return str(Path(sys.executable).parent / name)


def test_the_dockerfile_is_linted() -> None:
    answer = subprocess.run(
        [_program("hadolint"), "--format", "json", str(ROOT / "Dockerfile")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert json.loads(answer.stdout) == []


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """Return docker-compose.yml as Compose reads it: checked, with all defaults."""
    if shutil.which("go") is None and not COMPOSE_READER.exists():
        pytest.skip("not run: Go is not installed, which what reads compose files is made with")
    command = [str(required(COMPOSE_READER)), "-format", "json", str(ROOT / "docker-compose.yml")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    model: dict[str, Any] = json.loads(run.stdout)
    return model


def services_of(compose: dict[str, Any], profile: str) -> dict[str, Any]:
    """Return the services that `docker compose --profile … up` starts; "" for no profile."""
    return {
        name: service
        for name, service in compose["services"].items()
        if profile in service.get("profiles", [profile])
    }


@pytest.mark.parametrize(
    "profile", ["", "console", "registry", "spark", "zookeeper", "secured", "cluster", "compat"]
)
def test_a_profile_of_the_compose_file_is_whole(compose: dict[str, Any], profile: str) -> None:
    """Compose checks these only when it starts them."""
    services = services_of(compose, profile)
    assert "minibroker" in services
    assert (len(services) > 1) == bool(profile)
    for service in services.values():
        assert service.get("depends_on", {}).keys() <= services.keys()
        volumes = [volume for volume in service.get("volumes", []) if volume["type"] == "volume"]
        assert {volume["source"] for volume in volumes} <= compose["volumes"].keys()
    published = [
        port["published"] for service in services.values() for port in service.get("ports", [])
    ]
    assert len(published) == len(set(published))
    assert {
        port.get("host_ip") for service in services.values() for port in service.get("ports", [])
    } == {"127.0.0.1"}


def test_the_secured_broker_of_the_compose_file(
    compose: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = services_of(compose, "secured")["minibroker-secured"]
    variables = {key: str(value) for key, value in service["environment"].items()}
    monkeypatch.chdir(tmp_path)  # the certificate is made beside the data
    monkeypatch.setattr("minibroker.container.variables.DATA_DIR", str(tmp_path / "data"))
    with pytest.raises(UsageError, match="user 'alice': the password is empty"):
        arrange(translate(variables))
    variables["MINIBROKER_USERS"] += "from-outside"
    config = build(*arrange(translate(variables)))[0]
    assert {listener.security_protocol for listener in config.listeners} == {"SASL_SSL"}
    assert [listener.port for listener in config.listeners] == [9097, 19097]
    assert config.originals["minibroker.users"] == '"alice"="from-outside"'
    assert config.inter_broker_listener_name == "SASL_SSL"
    assert (tmp_path / "data-tls" / "ca.pem").is_file()
    targets = {volume["target"] for volume in service["volumes"]}
    assert targets == {"/var/lib/kafka/data", "/var/lib/kafka/data-tls"}


def test_the_brokers_of_the_compose_file_reach_each_other_and_replicate(
    compose: dict[str, Any],
) -> None:
    services = {
        name: service
        for name, service in services_of(compose, "cluster").items()
        if name.startswith("minibroker-")
    }
    configs = {}
    for name, service in services.items():
        variables = {key: str(value) for key, value in service["environment"].items()}
        configs[name] = build(*arrange(translate(variables)))[0]
    assert sorted(config.broker_id for config in configs.values()) == [1, 2, 3]
    assert {config.zookeeper_connect for config in configs.values()} == {"zookeeper:2181/cluster"}
    assert len({service["volumes"][0]["source"] for service in services.values()}) == 3
    for name, config in configs.items():
        assert config.default_replication_factor == 3
        assert config.integer("transaction.state.log.min.isr") == 2
        advertised = {listener.name: listener for listener in config.advertised_listeners}
        assert advertised[config.inter_broker_listener_name].host == name
        (port,) = services[name]["ports"]
        assert int(port["published"]) == port["target"] == advertised["PLAINTEXT"].port


def test_the_compose_file_names_a_version_of_each_image(compose: dict[str, Any]) -> None:
    """An image without a version would change from one day to the next."""
    fetched = [
        service["image"] for service in compose["services"].values() if "build" not in service
    ]
    assert fetched
    for image in fetched:
        _, _, version = image.rpartition(":")
        assert re.match(r"v?\d", version), image


def test_the_compose_file_builds_existing_images(compose: dict[str, Any]) -> None:
    stages = re.findall(r"^FROM \S+ AS (\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    builds = [service["build"] for service in compose["services"].values() if "build" in service]
    assert {build["context"] for build in builds} == {str(ROOT)}
    assert {build["target"] for build in builds if "target" in build} <= set(stages)


# Secured modes: as in the tests of testcontainers-java 2.0, and in `withSaslSslListener` of
# @testcontainers/kafka 12.1.

SECRETS: Final = "/etc/kafka/secrets"
JAAS: Final = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="admin" password="admin" user_admin="admin" user_test="secret";'
)
SASL_MAP: Final = "PLAINTEXT:SASL_PLAINTEXT,BROKER:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
ADD_SCRAM: Final = (
    'echo \'kafka-storage format --ignore-formatted -t "$CLUSTER_ID" '
    "--add-scram {} -c /etc/kafka/kafka.properties' >> /etc/confluent/docker/configure\n"
)
LOOPBACK: Final = "BROKER://9f3b6c1d2e4a:9093"
NODE_USER: Final = "SCRAM-SHA-512=[name=app-user,password=userPassword]"


def script_of(port: int, lines: str, more: str = "", run: str = CP_RUN) -> str:
    """Return a start script as Testcontainers writes it."""
    advertised = f"PLAINTEXT://localhost:{port},{LOOPBACK}{more}"
    return f"#!/bin/bash\nexport KAFKA_ADVERTISED_LISTENERS={advertised}\n{lines}{run} \n"


def logged_in(port: int, mechanism: str, user: str, password: str, **more: str) -> Any:
    """Return the metadata that a client gets. Raises KafkaException."""
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415  as heavy as the container

    settings = {
        "bootstrap.servers": f"localhost:{port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
        "log_level": "0",
        **{key.replace("_", "."): value for key, value in more.items()},
    }
    return AdminClient(settings).list_topics(timeout=180)


def started(start: Start, variables: dict[str, str], script: str, line: str) -> Container:
    """Start a container, copy the script in, and return it when it serves and is healthy."""
    container = start(("sh", "-c", WAIT_FOR_SCRIPT.format(JAVA_SCRIPT)), **variables)
    container.wait_until_entered()
    container.copy_in(JAVA_SCRIPT, script)
    container.wait_for_line(line)
    health = container.execute("/opt/minibroker/bin/health")
    assert (health.returncode, health.stderr) == (0, "")
    assert "ERROR" not in container.log.read_text()
    return container


@needs_namespaces
def test_java_starts_it_with_plain(start: Start) -> None:
    port, variables = on_free_ports(**KRAFT)
    variables |= {
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": SASL_MAP,
        "KAFKA_SASL_MECHANISM_INTER_BROKER_PROTOCOL": "PLAIN",
        "KAFKA_LISTENER_NAME_PLAINTEXT_SASL_ENABLED_MECHANISMS": "PLAIN",
        "KAFKA_LISTENER_NAME_BROKER_SASL_ENABLED_MECHANISMS": "PLAIN",
        "KAFKA_LISTENER_NAME_BROKER_PLAIN_SASL_JAAS_CONFIG": JAAS,
        "KAFKA_LISTENER_NAME_PLAINTEXT_PLAIN_SASL_JAAS_CONFIG": JAAS,
        "KAFKA_AUTHORIZER_CLASS_NAME": "kafka.security.authorizer.AclAuthorizer",
        "KAFKA_SUPER_USERS": "User:admin",
    }
    started(start, variables, script_of(port, ""), RUNNING)
    assert logged_in(port, "PLAIN", "test", "secret").brokers


@needs_namespaces
def test_java_starts_it_with_scram(start: Start) -> None:
    port, variables = on_free_ports(**KRAFT)
    jaas = f"{SECRETS}/kafka_server_jaas.conf"
    variables |= {
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": SASL_MAP,
        "KAFKA_LISTENER_NAME_PLAINTEXT_SASL_ENABLED_MECHANISMS": "SCRAM-SHA-256",
        "KAFKA_SASL_MECHANISM_INTER_BROKER_PROTOCOL": "SCRAM-SHA-256",
        "KAFKA_SASL_ENABLED_MECHANISMS": "SCRAM-SHA-256",
        "KAFKA_OPTS": f"-Djava.security.auth.login.config={jaas}",
    }
    add = ADD_SCRAM.format("SCRAM-SHA-256=[name=admin,password=admin]")
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    login = f'KafkaServer {{ {module} required username="admin" password="admin"; }};'
    lines = f"sed -i '/KAFKA_ZOOKEEPER_CONNECT/d' /etc/confluent/docker/configure\n{add}"
    container = start(("sh", "-c", WAIT_FOR_SCRIPT.format(JAVA_SCRIPT)), **variables)
    container.wait_until_entered()
    container.copy_in(jaas, login)
    container.copy_in(JAVA_SCRIPT, script_of(port, lines))
    container.wait_for_line(RUNNING)
    assert logged_in(port, "SCRAM-SHA-256", "admin", "admin").brokers
    assert "password=admin" not in container.log.read_text()


@needs_namespaces
@pytest.mark.parametrize("mode", ["kraft", "zookeeper"])
def test_node_starts_it_with_a_sasl_ssl_listener(start: Start, mode: str, tmp_path: Path) -> None:
    secure, zookeeper = free_port(), str(free_port())
    port, variables = on_free_ports(**KRAFT)
    own = variables["KAFKA_LISTENERS"]
    variables |= {
        "KAFKA_LISTENERS": f"SECURE://0.0.0.0:{secure},{own}",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": (
            "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL,CONTROLLER:PLAINTEXT"
        ),
        "KAFKA_SSL_PROTOCOL": "TLSv1.2",
        "KAFKA_SSL_KEYSTORE_LOCATION": f"{SECRETS}/server.keystore.pfx",
        "KAFKA_SSL_KEYSTORE_PASSWORD": "serverKeystorePassword",
        "KAFKA_SSL_KEYSTORE_TYPE": "PKCS12",
        "KAFKA_SASL_ENABLED_MECHANISMS": "SCRAM-SHA-512",
        "KAFKA_LISTENER_NAME_SECURE_SCRAM-SHA-512_SASL_JAAS_CONFIG": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
    }
    lines = FORMAT.partition("\n")[2] + ADD_SCRAM.format(f'"{NODE_USER}"')
    if mode == "zookeeper":
        variables["KAFKA_ZOOKEEPER_CONNECT"] = f"localhost:{zookeeper}"
        lines = ZOOKEEPER.format("").replace("2181", zookeeper)
    container = start(("sh", "-c", WAIT_FOR_SCRIPT.format(JAVA_SCRIPT)), **variables)
    container.wait_until_entered()
    store = container.root / SECRETS.lstrip("/") / "server.keystore.pfx"
    store.write_bytes(pkcs12_of(broker_certificate(), "serverKeystorePassword"))
    script = script_of(port, lines, f",SECURE://localhost:{secure}")
    container.copy_in(JAVA_SCRIPT, script)
    container.wait_for_line(RUNNING if mode == "kraft" else STARTED)
    if mode == "zookeeper":
        name, _, password = NODE_USER.partition("name=")[2].partition(",")
        configs = ("kafka-configs", "--alter", "--zookeeper", f"localhost:{zookeeper}")
        entity = ("--entity-type", "users", "--entity-name", name)
        creation = container.execute(
            *configs, *entity, "--add-config", f"SCRAM-SHA-512=[{password}"
        )
        assert (creation.returncode, creation.stderr) == (0, "")
    authority = tmp_path / "ca.pem"
    authority.write_text(authority_pem())
    tls = {"security_protocol": "SASL_SSL", "ssl_ca_location": str(authority)}
    assert logged_in(secure, "SCRAM-SHA-512", "app-user", "userPassword", **tls).brokers
    assert "userPassword" not in container.log.read_text()


@needs_namespaces
def test_stores_and_passwords_that_kafkas_images_name(start: Start, tmp_path: Path) -> None:
    port = free_port()
    variables = {
        "KAFKA_ADVERTISED_LISTENERS": f"SSL://localhost:{port}",
        "KAFKA_SECURITY_INTER_BROKER_PROTOCOL": "SSL",
        "KAFKA_SSL_KEYSTORE_FILENAME": "broker.p12",
        "KAFKA_SSL_KEYSTORE_CREDENTIALS": "password.txt",
        "KAFKA_SSL_KEY_CREDENTIALS": "password.txt",
        "KAFKA_SSL_KEYSTORE_TYPE": "PKCS12",
    }
    waiting = start(
        ("sh", "-c", f"while [ ! -f {TMP}/go ]; do sleep 0.1; done; {CP_RUN}"), **variables
    )
    waiting.wait_until_entered()
    secrets = waiting.root / SECRETS.lstrip("/")
    (secrets / "broker.p12").write_bytes(pkcs12_of(broker_certificate(), "changeit"))
    (secrets / "password.txt").write_text("changeit\n")
    waiting.copy_in(f"{TMP}/go", "")
    waiting.wait_for_line(RUNNING)
    health = waiting.execute("/opt/minibroker/bin/health")
    assert (health.returncode, health.stderr) == (0, "")
    authority = tmp_path / "ca.pem"
    authority.write_text(authority_pem())
    tls = {"security.protocol": "SSL", "ssl.ca.location": str(authority)}
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415  as heavy as the container

    admin = AdminClient({"bootstrap.servers": f"localhost:{port}", **tls})
    assert admin.list_topics(timeout=180).brokers


@needs_namespaces
@pytest.mark.skipif(kerberos.missing() is not None, reason=f"{kerberos.missing()}")
def test_kerberos_with_the_options_of_java_that_kafkas_images_take(
    start: Start, tmp_path: Path
) -> None:
    from tests.support import kerberos_dialogues  # noqa: PLC0415  needs libkrb5

    port = free_port()
    options = {"auth.login.config": "jaas.conf", "krb5.conf": "krb5.conf"}
    jaas = (
        "KafkaServer {\n com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true"
        f' storeKey=true\n keyTab="{SECRETS}/kafka.keytab" principal="{kerberos.BROKER}";\n}};\n'
    )
    variables = {
        "KAFKA_ADVERTISED_LISTENERS": f"SASL_PLAINTEXT://localhost:{port}",
        "KAFKA_SECURITY_INTER_BROKER_PROTOCOL": "SASL_PLAINTEXT",
        "KAFKA_SASL_MECHANISM_INTER_BROKER_PROTOCOL": "GSSAPI",
        "KAFKA_SASL_ENABLED_MECHANISMS": "GSSAPI",
        "KAFKA_SASL_KERBEROS_SERVICE_NAME": "kafka",
        "KAFKA_DELEGATION_TOKEN_SECRET_KEY": "to see who has logged in",
        "KAFKA_OPTS": " ".join(
            f"-Djava.security.{name}={SECRETS}/{file}" for name, file in options.items()
        ),
    }
    with kerberos.running_kdc(tmp_path / "kdc") as kdc:
        waiting = start(("sh", "-c", WAIT_FOR_SCRIPT.format(JAVA_SCRIPT)), **variables)
        waiting.wait_until_entered()
        waiting.copy_in(f"{SECRETS}/jaas.conf", jaas)
        waiting.copy_in(f"{SECRETS}/krb5.conf", kdc.config.read_text())
        keytab = waiting.root / SECRETS.lstrip("/") / "kafka.keytab"
        keytab.write_bytes(Path(kdc.keytab(kerberos.BROKER)).read_bytes())
        waiting.copy_in(JAVA_SCRIPT, f"#!/bin/bash\n{CP_RUN}\n")
        waiting.wait_for_line(RUNNING)
        health = waiting.execute("/opt/minibroker/bin/health")
        assert (health.returncode, health.stderr) == (0, "")
        expected = json.loads((ROOT / "tests/golden/kerberos.json").read_text())["a_ticket"]
        assert kerberos_dialogues.play("localhost", port, kdc, "a_ticket") == expected


@needs_namespaces
def test_a_secured_broker_with_two_variables(start: Start, tmp_path: Path) -> None:
    """As in the profile `secured` of docker-compose.yml, on a free port."""
    port = free_port()
    container = start(
        MINIBROKER_SECURITY="SASL_SSL",
        MINIBROKER_USERS="alice:secret bob:other",
        KAFKA_LISTENERS=f"SASL_SSL://:{port}",
        KAFKA_ADVERTISED_LISTENERS=f"SASL_SSL://localhost:{port}",
    )
    container.wait_for_line(RUNNING)
    health = container.execute("/opt/minibroker/bin/health")
    assert (health.returncode, health.stderr) == (0, "")
    authority = tmp_path / "ca.pem"
    authority.write_bytes((container.root / "var/lib/kafka/data-tls/ca.pem").read_bytes())
    tls = {"security_protocol": "SASL_SSL", "ssl_ca_location": str(authority)}
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        assert logged_in(port, mechanism, "bob", "other", **tls).brokers
