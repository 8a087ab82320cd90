"""Kafka services of public compose files and CI files, as sets of variables.

Each row is one service: where it stands, the image it was written for, its variables, and what its
users rely on: the addresses of their clients, published ports, topics, logins, the command of its
health check and commands of containers that prepare it. Read in November 2026. A value that the
file leaves to the user (`${HOST_IP}`) has one here.
"""

# ruff: noqa: E501  the value of a variable is one line
from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PLAIN: Final = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
}


class Service(NamedTuple):
    """One Kafka service."""

    source: str
    image: str
    variables: str
    """NAME=VALUE, a line each."""
    outside: str = ""
    """The address of clients on the host; empty: no port is published."""
    inside: str = ""
    """The address of clients in other containers."""
    ports: Mapping[int, int] = {}
    """Published port → port of the container, where they differ."""
    hostname: str = "kafka"
    """The name of the container; other containers reach it by this name."""
    addresses: Sequence[str] = ()
    """Addresses of the host besides loopback."""
    zookeeper: str = ""
    """HOST:PORT of the ZooKeeper beside it."""
    topics: Mapping[str, int] = {}
    """Name → partitions, as they are after the start."""
    outside_client: Mapping[str, str] = {}
    """Settings of a client on the host, as aiokafka names them; files of TLS are made."""
    inside_client: Mapping[str, str] = {}
    command: Sequence[str] = ("/etc/kafka/docker/run",)
    files: Mapping[str, str] = {}
    """Path → content of a file that the user mounts; `@NAME` stands for a made one."""
    health: Sequence[str] = ()
    """The command of the health check."""
    prepare: Sequence[str] = ()
    """Lines of shell that an init container or a CI script runs, in order."""


ZOOKEEPER: Final = "zookeeper:2181"
JMX: Final = (
    "-Dcom.sun.management.jmxremote -Dcom.sun.management.jmxremote.authenticate=false"
    " -Dcom.sun.management.jmxremote.ssl=false -Djava.rmi.server.hostname=kafka0"
    " -Dcom.sun.management.jmxremote.rmi.port=9997"
)
LOGGERS: Final = (
    "kafka.controller=INFO,kafka.producer.async.DefaultEventHandler=INFO,state.change.logger=INFO"
)

WURSTMEISTER: Final = (
    Service(
        "segmentio/kafka-go/docker-compose.yml",
        "wurstmeister/kafka",
        """
        KAFKA_VERSION=0.10.1.0
        KAFKA_CREATE_TOPICS=test-writer-0:3:1,test-writer-1:3:1
        KAFKA_ADVERTISED_HOST_NAME=localhost
        KAFKA_ADVERTISED_PORT=9092
        KAFKA_ZOOKEEPER_CONNECT=zookeeper:2181
        KAFKA_AUTO_CREATE_TOPICS_ENABLE=true
        """,
        outside="localhost:9092",
        zookeeper=ZOOKEEPER,
        topics={"test-writer-0": 3, "test-writer-1": 3},
    ),
    Service(
        "karafka/karafka/docker-compose.yml",
        "wurstmeister/kafka",
        """
        KAFKA_ADVERTISED_HOST_NAME=localhost
        KAFKA_ADVERTISED_PORT=9092
        KAFKA_ZOOKEEPER_CONNECT=zookeeper:2181
        KAFKA_AUTO_CREATE_TOPICS_ENABLE=true
        KAFKA_CREATE_TOPICS=integrations_00_02:2:1, integrations_00_03:3:1, benchmarks_00_10:10:1
        """,
        outside="localhost:9092",
        zookeeper=ZOOKEEPER,
        topics={"integrations_00_02": 2, "integrations_00_03": 3, "benchmarks_00_10": 10},
    ),
    Service(
        "wurstmeister/kafka-docker/docker-compose-single-broker.yml",
        "wurstmeister/kafka",
        """
        KAFKA_ADVERTISED_HOST_NAME=192.168.99.100
        KAFKA_CREATE_TOPICS=test:1:1
        KAFKA_ZOOKEEPER_CONNECT=zookeeper:2181
        """,
        outside="192.168.99.100:9092",
        addresses=("192.168.99.100",),
        zookeeper=ZOOKEEPER,
        topics={"test": 1},
    ),
    Service(
        "wurstmeister/kafka-docker/test/docker-compose.yml",
        "wurstmeister/kafka",
        """
        HOSTNAME_COMMAND=echo $(hostname)
        KAFKA_ADVERTISED_PORT=9092
        KAFKA_PORT=9092
        KAFKA_ZOOKEEPER_CONNECT=zookeeper:2181
        KAFKA_BROKER_ID=1
        """,
        inside="kafka_1:9092",
        hostname="kafka_1",
        zookeeper=ZOOKEEPER,
        command=("start-kafka.sh",),
    ),
    Service(
        "dapr/components-contrib/.github/infrastructure/docker-compose-kafka.yml",
        "wurstmeister/kafka",
        """
        KAFKA_ADVERTISED_HOST_NAME=127.0.0.1
        KAFKA_CREATE_TOPICS=binding-topic:1:1
        KAFKA_ZOOKEEPER_CONNECT=zookeeper:2181
        """,
        outside="127.0.0.1:9092",
        zookeeper=ZOOKEEPER,
        topics={"binding-topic": 1},
    ),
    Service(
        "zendesk/ruby-kafka/.circleci/config.yml (kafka-0.11)",
        "wurstmeister/kafka",
        """
        KAFKA_ADVERTISED_HOST_NAME=localhost
        KAFKA_ADVERTISED_PORT=9093
        KAFKA_PORT=9093
        KAFKA_ZOOKEEPER_CONNECT=localhost:2181
        KAFKA_DELETE_TOPIC_ENABLE=true
        """,
        inside="localhost:9093",
        zookeeper="localhost:2181",
    ),
    Service(
        "OpenVisualCloud/Ad-Insertion-Sample/deployment/docker-swarm/kafka.m4",
        "wurstmeister/kafka",
        """
        KAFKA_BROKER_ID=1
        KAFKA_ZOOKEEPER_CONNECT=zookeeper-service:2181
        KAFKA_LISTENERS=PLAINTEXT://:9092
        KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://kafka-service:9092
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=PLAINTEXT:PLAINTEXT
        KAFKA_INTER_BROKER_LISTENER_NAME=PLAINTEXT
        KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
        KAFKA_DEFAULT_REPLICATION_FACTOR=1
        KAFKA_AUTO_CREATE_TOPICS_ENABLE=true
        KAFKA_NUM_PARTITIONS=8
        KAFKA_LOG_RETENTION_MINUTES=30
        KAFKA_HEAP_OPTS=-Xmx2g -Xms2g
        KAFKA_LOG4J_ROOT_LOGLEVEL=ERROR
        """,
        inside="kafka-service:9092",
        hostname="kafka-service",
        zookeeper="zookeeper-service:2181",
    ),
)

CONFLUENT: Final = (
    Service(
        "ThreeDotsLabs/watermill/docker-compose.yml",
        "confluentinc/cp-kafka:5.0.1",
        """
        KAFKA_BROKER_ID=1
        KAFKA_ZOOKEEPER_CONNECT=zookeeper:2181
        KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9092
        KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
        KAFKA_NUM_PARTITIONS=8
        KAFKA_AUTO_CREATE_TOPICS_ENABLE=true
        """,
        outside="localhost:9092",
        zookeeper=ZOOKEEPER,
    ),
    Service(
        "tulios/kafkajs/docker-compose.2_4.yml",
        "confluentinc/cp-kafka:5.4.2",
        f"""
        KAFKA_BROKER_ID=0
        KAFKA_ZOOKEEPER_CONNECT=zookeeper:2181
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT,SSL:SSL,SSL_HOST:SSL,SASL_SSL:SASL_SSL,SASL_SSL_HOST:SASL_SSL
        KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://kafka1:29092,PLAINTEXT_HOST://localhost:9092,SSL://kafka1:29093,SSL_HOST://localhost:9093,SASL_SSL://kafka1:29094,SASL_SSL_HOST://localhost:9094
        KAFKA_AUTO_CREATE_TOPICS_ENABLE=true
        KAFKA_DELETE_TOPIC_ENABLE=true
        KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS=0
        KAFKA_SSL_KEYSTORE_FILENAME=kafka.server.keystore.jks
        KAFKA_SSL_KEYSTORE_CREDENTIALS=keystore_creds
        KAFKA_SSL_KEY_CREDENTIALS=sslkey_creds
        KAFKA_SSL_TRUSTSTORE_FILENAME=kafka.server.truststore.jks
        KAFKA_SSL_TRUSTSTORE_CREDENTIALS=truststore_creds
        KAFKA_SASL_MECHANISM_INTER_BROKER_PROTOCOL=PLAIN
        KAFKA_SASL_ENABLED_MECHANISMS=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
        KAFKA_OPTS=-Djava.security.auth.login.config=/opt/kafka/config/server-jaas.conf
        KAFKA_LOG4J_LOGGERS={LOGGERS}
        CONFLUENT_SUPPORT_METRICS_ENABLE=false
        """,
        outside="localhost:9094",
        inside="kafka1:29092",
        hostname="kafka1",
        zookeeper=ZOOKEEPER,
        outside_client={
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "test",
            "sasl_plain_password": "testtest",
            "ssl_cafile": "ca.pem",
        },
        files={
            "/etc/kafka/secrets/kafka.server.keystore.jks": "@keystore.p12",
            "/etc/kafka/secrets/kafka.server.truststore.jks": "@truststore.p12",
            "/etc/kafka/secrets/keystore_creds": "secret\n",
            "/etc/kafka/secrets/sslkey_creds": "secret\n",
            "/etc/kafka/secrets/truststore_creds": "secret\n",
            "/opt/kafka/config/server-jaas.conf": (
                "KafkaServer { org.apache.kafka.common.security.plain.PlainLoginModule required"
                ' username="test" password="testtest" user_test="testtest"; };'
            ),
        },
    ),
    Service(
        "nestjs/nest/integration/docker-compose.yml",
        "confluentinc/cp-kafka:7.9.1",
        """
        KAFKA_BROKER_ID=1
        KAFKA_ZOOKEEPER_CONNECT=zookeeper:2181
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT
        KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://kafka:29092,PLAINTEXT_HOST://localhost:9092
        KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
        KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS=0
        KAFKA_DELETE_TOPIC_ENABLE=true
        """,
        outside="localhost:9092",
        inside="kafka:29092",
        zookeeper=ZOOKEEPER,
    ),
    Service(
        "tchiotludo/akhq/docker-compose.yml",
        "confluentinc/cp-kafka",
        """
        KAFKA_BROKER_ID=0
        KAFKA_ZOOKEEPER_CONNECT=zookeeper:2181
        KAFKA_NUM_PARTITIONS=12
        KAFKA_COMPRESSION_TYPE=gzip
        KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
        KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR=1
        KAFKA_TRANSACTION_STATE_LOG_MIN_ISR=1
        KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://kafka:9092
        KAFKA_CONFLUENT_SUPPORT_METRICS_ENABLE=false
        KAFKA_JMX_PORT=9091
        KAFKA_AUTO_CREATE_TOPICS_ENABLE=true
        """,
        inside="kafka:9092",
        zookeeper=ZOOKEEPER,
    ),
    Service(
        "provectus/kafka-ui/documentation/compose/kafka-ui.yaml (kafka0)",
        "confluentinc/cp-kafka:5.3.1",
        f"""
        KAFKA_BROKER_ID=1
        KAFKA_ZOOKEEPER_CONNECT=zookeeper0:2181
        KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://kafka0:29092,PLAINTEXT_HOST://localhost:9092
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT
        KAFKA_INTER_BROKER_LISTENER_NAME=PLAINTEXT
        KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
        JMX_PORT=9997
        KAFKA_JMX_OPTS={JMX}
        """,
        outside="localhost:9092",
        inside="kafka0:29092",
        hostname="kafka0",
        zookeeper="zookeeper0:2181",
        topics={"second.users": 3, "second.messages": 2, "first.messages": 2},
        prepare=(
            "cub kafka-ready -b kafka0:29092 1 30",
            "kafka-topics --create --topic second.users --partitions 3 --replication-factor 1"
            " --if-not-exists --zookeeper zookeeper0:2181",
            "kafka-topics --create --topic second.messages --partitions 2 --replication-factor 1"
            " --if-not-exists --zookeeper zookeeper0:2181",
            "kafka-topics --create --topic first.messages --partitions 2 --replication-factor 1"
            " --if-not-exists --zookeeper zookeeper0:2181",
            "echo '{}' | kafka-console-producer --broker-list kafka0:29092 -topic second.users",
        ),
    ),
    Service(
        "ag2ai/faststream/docker-compose.yaml",
        "confluentinc/cp-kafka:8.0.0",
        """
        KAFKA_NODE_ID=1
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
        KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://127.0.0.1:9092
        KAFKA_PROCESS_ROLES=broker,controller
        KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
        KAFKA_BROKER_ID=1
        KAFKA_CONTROLLER_QUORUM_VOTERS=1@kafka:9093
        KAFKA_LISTENERS=PLAINTEXT://:9092,CONTROLLER://:9093
        KAFKA_INTER_BROKER_LISTENER_NAME=PLAINTEXT
        KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
        CLUSTER_ID=MkU3OEVBNTcwNTJENDM2Qk
        """,
        outside="127.0.0.1:9092",
    ),
    Service(
        "conduktor/kafka-stack-docker-compose/zk-single-kafka-single.yml",
        "confluentinc/cp-kafka:4.1.0",
        f"""
        KAFKA_ADVERTISED_LISTENERS=LISTENER_DOCKER_INTERNAL://kafka1:19092,LISTENER_DOCKER_EXTERNAL://127.0.0.1:9092
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=LISTENER_DOCKER_INTERNAL:PLAINTEXT,LISTENER_DOCKER_EXTERNAL:PLAINTEXT
        KAFKA_INTER_BROKER_LISTENER_NAME=LISTENER_DOCKER_INTERNAL
        KAFKA_ZOOKEEPER_CONNECT=zoo1:2181
        KAFKA_BROKER_ID=1
        KAFKA_LOG4J_LOGGERS={LOGGERS}
        KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
        """,
        outside="127.0.0.1:9092",
        inside="kafka1:19092",
        hostname="kafka1",
        zookeeper="zoo1:2181",
    ),
    Service(
        "karafka/rdkafka-ruby/docker-compose.yml",
        "confluentinc/cp-kafka:8.2.1",
        """
        CLUSTER_ID=kafka-docker-cluster-1
        KAFKA_INTER_BROKER_LISTENER_NAME=PLAINTEXT
        KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
        KAFKA_PROCESS_ROLES=broker,controller
        KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
        KAFKA_LISTENERS=PLAINTEXT://:9092,CONTROLLER://:9093
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
        KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://127.0.0.1:9092
        KAFKA_BROKER_ID=1
        KAFKA_CONTROLLER_QUORUM_VOTERS=1@127.0.0.1:9093
        ALLOW_PLAINTEXT_LISTENER=yes
        KAFKA_AUTO_CREATE_TOPICS_ENABLE=false
        KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR=1
        KAFKA_TRANSACTION_STATE_LOG_MIN_ISR=1
        KAFKA_ALLOW_EVERYONE_IF_NO_ACL_FOUND=true
        KAFKA_AUTHORIZER_CLASS_NAME=org.apache.kafka.metadata.authorizer.StandardAuthorizer
        """,
        outside="127.0.0.1:9092",
    ),
    Service(
        "Blizzard/node-rdkafka/docker-compose.yml",
        "confluentinc/cp-kafka",
        """
        KAFKA_BROKER_ID=1
        KAFKA_ZOOKEEPER_CONNECT=zookeeper:2181
        KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9092
        KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
        KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS=0
        KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR=1
        KAFKA_DEFAULT_REPLICATION_FACTOR=1
        KAFKA_TRANSACTION_STATE_LOG_MIN_ISR=1
        """,
        outside="localhost:9092",
        zookeeper=ZOOKEEPER,
    ),
    Service(
        "vectordotdev/vector/scripts/integration/kafka/compose.yaml",
        "confluentinc/cp-kafka:7.6.1",
        """
        KAFKA_BROKER_ID=1
        KAFKA_ZOOKEEPER_CONNECT=zookeeper:2181
        ZOOKEEPER_SASL_ENABLED=false
        KAFKA_LISTENERS=PLAINTEXT://:9091,SSL://:9092,SASL_PLAINTEXT://:9093
        KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://kafka:9091,SSL://kafka:9092,SASL_PLAINTEXT://kafka:9093
        KAFKA_SSL_KEYSTORE_TYPE=PKCS12
        KAFKA_SSL_KEY_CREDENTIALS=kafka.pass
        KAFKA_SSL_KEYSTORE_CREDENTIALS=kafka.pass
        KAFKA_SSL_KEYSTORE_FILENAME=kafka.p12
        KAFKA_SSL_CLIENT_AUTH=required
        KAFKA_SSL_TRUSTSTORE_TYPE=PKCS12
        KAFKA_SSL_TRUSTSTORE_FILENAME=kafka.p12
        KAFKA_SSL_TRUSTSTORE_CREDENTIALS=kafka.pass
        KAFKA_SSL_ENDPOINT_IDENTIFICATION_ALGORITHM=none
        KAFKA_OPTS=-Djava.security.auth.login.config=/etc/kafka/kafka_server_jaas.conf
        KAFKA_SASL_ENABLED_MECHANISMS=PLAIN
        KAFKA_SASL_MECHANISM_INTER_BROKER_PROTOCOL=PLAIN
        """,
        inside="kafka:9093",
        inside_client={
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "admin",
            "sasl_plain_password": "admin",
        },
        zookeeper=ZOOKEEPER,
        files={
            "/etc/kafka/secrets/kafka.pass": "store-secret",
            "/etc/kafka/secrets/kafka.p12": "@both.p12",
            "/etc/kafka/kafka_server_jaas.conf": (
                "KafkaServer { org.apache.kafka.common.security.plain.PlainLoginModule required"
                ' username="admin" password="admin" user_admin="admin"; };'
            ),
        },
    ),
    Service(
        "ClickHouse/ClickHouse/tests/integration/compose/docker_compose_kafka.yml",
        "confluentinc/cp-kafka:5.2.0",
        f"""
        KAFKA_ADVERTISED_LISTENERS=INSIDE://localhost:9092,OUTSIDE://kafka1:19092
        KAFKA_ADVERTISED_HOST_NAME=kafka1
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT
        KAFKA_INTER_BROKER_LISTENER_NAME=INSIDE
        KAFKA_BROKER_ID=1
        KAFKA_ZOOKEEPER_CONNECT=kafka_zookeeper:2181
        KAFKA_LOG4J_LOGGERS={LOGGERS}
        KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
        """,
        outside="localhost:9092",
        inside="kafka1:19092",
        hostname="kafka1",
        zookeeper="kafka_zookeeper:2181",
    ),
    Service(
        "getsentry/self-hosted/docker-compose.yml",
        "confluentinc/cp-kafka:7.6.1",
        """
        KAFKA_ZOOKEEPER_CONNECT=zookeeper:2181
        KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://kafka:9092
        KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
        KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS=1
        KAFKA_LOG_RETENTION_HOURS=24
        KAFKA_MESSAGE_MAX_BYTES=50000000
        KAFKA_MAX_REQUEST_SIZE=50000000
        CONFLUENT_SUPPORT_METRICS_ENABLE=false
        KAFKA_LOG4J_LOGGERS=kafka.cluster=WARN,kafka.controller=WARN,kafka.coordinator=WARN
        KAFKA_LOG4J_ROOT_LOGLEVEL=WARN
        KAFKA_TOOLS_LOG4J_LOGLEVEL=WARN
        """,
        inside="kafka:9092",
        zookeeper=ZOOKEEPER,
        health=("sh", "-c", "nc -z localhost 9092"),
    ),
    Service(
        "confluentinc/kafka-images/examples/confluent-local/docker-compose.yml",
        "confluentinc/confluent-local",
        """
        KAFKA_NODE_ID=1
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT
        KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://broker:29092,PLAINTEXT_HOST://localhost:9092
        KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
        KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS=0
        KAFKA_TRANSACTION_STATE_LOG_MIN_ISR=1
        KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR=1
        KAFKA_PROCESS_ROLES=broker,controller
        KAFKA_CONTROLLER_QUORUM_VOTERS=1@broker:29093
        KAFKA_LISTENERS=PLAINTEXT://broker:29092,CONTROLLER://broker:29093,PLAINTEXT_HOST://0.0.0.0:9092
        KAFKA_INTER_BROKER_LISTENER_NAME=PLAINTEXT
        KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
        KAFKA_LOG_DIRS=/tmp/kraft-combined-logs
        KAFKA_REST_HOST_NAME=rest-proxy
        KAFKA_REST_BOOTSTRAP_SERVERS=broker:29092
        KAFKA_REST_LISTENERS=http://0.0.0.0:8082
        CLUSTER_ID=4L6g3nShT-eMCtK--X86sw
        """,
        outside="localhost:9092",
        inside="broker:29092",
        hostname="broker",
    ),
    Service(
        "confluentinc/kafka-images/kafka/test/fixtures/cluster-bridged-plain.yml (kafka-1)",
        "confluentinc/cp-kafka",
        """
        KAFKA_BROKER_ID=1
        KAFKA_ZOOKEEPER_CONNECT=zookeeper-1:2181,zookeeper-2:2181,zookeeper-3:2181
        KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://kafka-1:9092
        """,
        inside="kafka-1:9092",
        hostname="kafka-1",
        zookeeper="zookeeper-1:2181",
        command=("/etc/confluent/docker/run",),
    ),
    Service(
        "confluentinc/kafka-images/examples/confluent-kafka/docker-compose.yml (kafka-1)",
        "confluentinc/cp-kafka",
        """
        KAFKA_NODE_ID=2
        KAFKA_PROCESS_ROLES=broker
        KAFKA_CONTROLLER_QUORUM_VOTERS=1@localhost:9093
        KAFKA_LISTENERS=PLAINTEXT://localhost:19092
        KAFKA_INTER_BROKER_LISTENER_NAME=PLAINTEXT
        KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:19092
        KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
        CLUSTER_ID=4L6g3nShT-eMCtK--X86sw
        KAFKA_CONFLUENT_METADATA_SERVER_LISTENERS=http://localhost:18090
        CONFLUENT_METRICS_REPORTER_BOOTSTRAP_SERVERS=localhost:19092
        """,
        inside="localhost:19092",
    ),
    Service(
        "hpcsc/kafka-compose/docker-compose.yml (broker-1)",
        "confluentinc/cp-kafka",
        """
        KAFKA_BROKER_ID=1
        KAFKA_ZOOKEEPER_CONNECT=zookeeper:2181
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT
        KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://broker-1:19092,PLAINTEXT_HOST://localhost:9092
        KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
        KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS=0
        """,
        outside="localhost:9092",
        inside="broker-1:19092",
        hostname="broker-1",
        zookeeper=ZOOKEEPER,
    ),
    Service(
        "ksindi/kafka-compose/docker-compose.yml",
        "confluentinc/cp-kafka",
        f"""
        KAFKA_BROKER_ID=1
        KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
        KAFKA_ZOOKEEPER_CONNECT=zookeeper-1:22181
        KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://kafka-1:29092
        KAFKA_LOG4J_LOGGERS={LOGGERS}
        """,
        inside="kafka-1:29092",
        hostname="kafka-1",
        zookeeper="zookeeper-1:22181",
        topics={"event": 1},
        prepare=(
            "cub kafka-ready -b kafka-1:29092 1 20",
            "kafka-topics --create --topic event --partitions 1 --replication-factor 1"
            " --if-not-exists --zookeeper zookeeper-1:22181",
        ),
    ),
    Service(
        "yan-khonski-it/kafka-compose/docker-compose.yml",
        "confluentinc/cp-kafka",
        """
        KAFKA_ZOOKEEPER_CONNECT=zookeeper:32181
        KAFKA_BROKER_ID=1
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT
        KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9092,PLAINTEXT_HOST://kafka:29092
        LISTENERS=PLAINTEXT://0.0.0.0:9092
        KAFKA_OFFSETS_TOPICS_REPLICATION_FACTOR=1
        """,
        inside="kafka:29092",
        zookeeper="zookeeper:32181",
    ),
    Service(
        "confluentinc/cp-all-in-one/cp-all-in-one/docker-compose.yml (7.0)",
        "confluentinc/cp-server",
        """
        KAFKA_BROKER_ID=1
        KAFKA_ZOOKEEPER_CONNECT=zookeeper:2181
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT
        KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://broker:29092,PLAINTEXT_HOST://localhost:9092
        KAFKA_METRIC_REPORTERS=io.confluent.metrics.reporter.ConfluentMetricsReporter
        KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
        KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS=0
        KAFKA_CONFLUENT_LICENSE_TOPIC_REPLICATION_FACTOR=1
        KAFKA_CONFLUENT_BALANCER_TOPIC_REPLICATION_FACTOR=1
        KAFKA_TRANSACTION_STATE_LOG_MIN_ISR=1
        KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR=1
        KAFKA_JMX_PORT=9101
        KAFKA_JMX_HOSTNAME=localhost
        KAFKA_CONFLUENT_SCHEMA_REGISTRY_URL=http://schema-registry:8081
        CONFLUENT_METRICS_REPORTER_BOOTSTRAP_SERVERS=broker:29092
        CONFLUENT_METRICS_REPORTER_TOPIC_REPLICAS=1
        CONFLUENT_METRICS_ENABLE=true
        CONFLUENT_SUPPORT_CUSTOMER_ID=anonymous
        """,
        outside="localhost:9092",
        inside="broker:29092",
        hostname="broker",
        zookeeper=ZOOKEEPER,
        prepare=("cub kafka-ready -b broker:29092 1 40",),
    ),
    Service(
        "sci-ndp/kafka-kraft/docker-compose.yml",
        "confluentinc/cp-kafka:7.6.1",
        """
        KAFKA_PROCESS_ROLES=broker,controller
        KAFKA_NODE_ID=1
        KAFKA_LISTENERS=INTERNAL://:9093,EXTERNAL://:9092,SECURE://:9094,CONTROLLER://:9095
        KAFKA_ADVERTISED_LISTENERS=INTERNAL://broker:9093,EXTERNAL://192.168.77.7:9092,SECURE://192.168.77.7:443
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,INTERNAL:SASL_PLAINTEXT,EXTERNAL:SASL_PLAINTEXT,SECURE:SASL_SSL
        KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
        KAFKA_CONTROLLER_QUORUM_VOTERS=1@broker:9095
        KAFKA_INTER_BROKER_LISTENER_NAME=INTERNAL
        CLUSTER_ID=4L6g3nShT-eMCtK--X86sw
        KAFKA_AUTO_CREATE_TOPICS_ENABLE=true
        KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
        KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR=1
        KAFKA_TRANSACTION_STATE_LOG_MIN_ISR=1
        KAFKA_NUM_PARTITIONS=3
        KAFKA_MIN_INSYNC_REPLICAS=1
        KAFKA_SASL_ENABLED_MECHANISMS=PLAIN,SCRAM-SHA-512
        KAFKA_SASL_MECHANISM_INTER_BROKER_PROTOCOL=PLAIN
        KAFKA_LISTENER_NAME_INTERNAL_SASL_ENABLED_MECHANISMS=PLAIN
        KAFKA_LISTENER_NAME_INTERNAL_PLAIN_SASL_JAAS_CONFIG=org.apache.kafka.common.security.plain.PlainLoginModule required username="root" password="toor" user_root="toor" user_app="ppa";
        KAFKA_LISTENER_NAME_EXTERNAL_SASL_ENABLED_MECHANISMS=PLAIN
        KAFKA_LISTENER_NAME_EXTERNAL_PLAIN_SASL_JAAS_CONFIG=org.apache.kafka.common.security.plain.PlainLoginModule required username="root" password="toor" user_root="toor" user_app="ppa";
        KAFKA_LISTENER_NAME_SECURE_SASL_ENABLED_MECHANISMS=SCRAM-SHA-512
        KAFKA_LISTENER_NAME_SECURE_SCRAM-SHA-512_SASL_JAAS_CONFIG=org.apache.kafka.common.security.scram.ScramLoginModule required;
        KAFKA_SSL_KEYSTORE_LOCATION=/etc/kafka/secrets/broker.p12
        KAFKA_SSL_KEYSTORE_PASSWORD=secret
        KAFKA_SSL_KEY_PASSWORD=secret
        KAFKA_SSL_TRUSTSTORE_LOCATION=/etc/kafka/secrets/truststore.p12
        KAFKA_SSL_TRUSTSTORE_PASSWORD=secret
        KAFKA_SSL_KEYSTORE_TYPE=PKCS12
        KAFKA_SSL_TRUSTSTORE_TYPE=PKCS12
        KAFKA_SUPER_USERS=User:root
        """,
        outside="192.168.77.7:9092",
        inside="broker:9093",
        ports={443: 9094},
        hostname="broker",
        addresses=("192.168.77.7",),
        outside_client={**PLAIN, "sasl_plain_username": "app", "sasl_plain_password": "ppa"},
        inside_client={**PLAIN, "sasl_plain_username": "root", "sasl_plain_password": "toor"},
        files={
            "/etc/kafka/secrets/broker.p12": "@keystore.p12",
            "/etc/kafka/secrets/truststore.p12": "@truststore.p12",
        },
    ),
)

APACHE_EXAMPLES: Final = "apache/kafka/docker/examples/docker-compose-files/single-node"
APACHE: Final = (
    Service(
        f"{APACHE_EXAMPLES}/plaintext",
        "apache/kafka",
        """
        KAFKA_NODE_ID=1
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT
        KAFKA_ADVERTISED_LISTENERS=PLAINTEXT_HOST://localhost:9092,PLAINTEXT://broker:19092
        KAFKA_PROCESS_ROLES=broker,controller
        KAFKA_CONTROLLER_QUORUM_VOTERS=1@broker:29093
        KAFKA_LISTENERS=CONTROLLER://:29093,PLAINTEXT_HOST://:9092,PLAINTEXT://:19092
        KAFKA_INTER_BROKER_LISTENER_NAME=PLAINTEXT
        KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
        CLUSTER_ID=4L6g3nShT-eMCtK--X86sw
        KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
        KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS=0
        KAFKA_TRANSACTION_STATE_LOG_MIN_ISR=1
        KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR=1
        KAFKA_LOG_DIRS=/tmp/kraft-combined-logs
        """,
        outside="localhost:9092",
        inside="broker:19092",
        hostname="broker",
    ),
    Service(
        f"{APACHE_EXAMPLES}/file-input",
        "apache/kafka",
        """
        CLUSTER_ID=4L6g3nShT-eMCtK--X86sw
        KAFKA_NODE_ID=1
        KAFKA_CONTROLLER_QUORUM_VOTERS=1@broker:29093
        KAFKA_LISTENERS=PLAINTEXT_HOST://:9092,SSL://:9093,CONTROLLER://:29093,PLAINTEXT://:19092
        KAFKA_PROCESS_ROLES=broker,controller
        """,
        outside="localhost:9092",
        inside="broker:19092",
        hostname="broker",
        files={
            "/mnt/shared/config/server.properties": (
                "advertised.listeners=PLAINTEXT_HOST://localhost:9092,SSL://localhost:9093,"
                "PLAINTEXT://broker:19092\n"
                "controller.listener.names=CONTROLLER\n"
                "inter.broker.listener.name=PLAINTEXT\n"
                "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT,"
                "PLAINTEXT_HOST:PLAINTEXT\n"
                "log.dirs=/tmp/kraft-combined-logs\nprocess.roles=broker\n"
                "ssl.client.auth=required\nssl.key.password=secret\n"
                "ssl.keystore.location=/etc/kafka/secrets/kafka01.keystore.jks\n"
                "ssl.keystore.password=secret\n"
                "ssl.truststore.location=/etc/kafka/secrets/kafka.truststore.jks\n"
                "ssl.truststore.password=secret\n"
            ),
            "/etc/kafka/secrets/kafka01.keystore.jks": "@keystore.p12",
            "/etc/kafka/secrets/kafka.truststore.jks": "@truststore.p12",
        },
    ),
    Service(
        f"{APACHE_EXAMPLES}/ssl",
        "apache/kafka",
        """
        KAFKA_NODE_ID=1
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=SSL:SSL,CONTROLLER:PLAINTEXT,SSL-INTERNAL:SSL
        KAFKA_ADVERTISED_LISTENERS=SSL://localhost:9093,SSL-INTERNAL://broker:19093
        KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
        KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS=0
        KAFKA_TRANSACTION_STATE_LOG_MIN_ISR=1
        KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR=1
        KAFKA_PROCESS_ROLES=broker,controller
        KAFKA_CONTROLLER_QUORUM_VOTERS=1@broker:29093
        KAFKA_LISTENERS=SSL://:9093,CONTROLLER://:29093,SSL-INTERNAL://:19093
        KAFKA_INTER_BROKER_LISTENER_NAME=SSL-INTERNAL
        KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
        KAFKA_LOG_DIRS=/tmp/kraft-combined-logs
        CLUSTER_ID=4L6g3nShT-eMCtK--X86sw
        KAFKA_SSL_KEYSTORE_FILENAME=kafka01.keystore.jks
        KAFKA_SSL_KEYSTORE_CREDENTIALS=kafka_keystore_creds
        KAFKA_SSL_KEY_CREDENTIALS=kafka_ssl_key_creds
        KAFKA_SSL_TRUSTSTORE_FILENAME=kafka.truststore.jks
        KAFKA_SSL_TRUSTSTORE_CREDENTIALS=kafka_truststore_creds
        KAFKA_SSL_CLIENT_AUTH=required
        """,
        outside="localhost:9093",
        hostname="broker",
        outside_client={
            "security_protocol": "SSL",
            "ssl_cafile": "ca.pem",
            "ssl_certfile": "client.pem",
            "ssl_keyfile": "client.pem",
        },
        files={
            "/etc/kafka/secrets/kafka01.keystore.jks": "@keystore.p12",
            "/etc/kafka/secrets/kafka.truststore.jks": "@truststore.p12",
            "/etc/kafka/secrets/kafka_keystore_creds": "secret",
            "/etc/kafka/secrets/kafka_ssl_key_creds": "secret",
            "/etc/kafka/secrets/kafka_truststore_creds": "secret",
        },
    ),
    Service(
        "Cooltk63/TK/README.md",
        "apache/kafka:3.7.0",
        """
        KAFKA_PROCESS_ROLES=broker,controller
        KAFKA_NODE_ID=1
        KAFKA_CONTROLLER_QUORUM_VOTERS=1@kafka:9093
        KAFKA_LISTENERS=PLAINTEXT://0.0.0.0:9092,CONTROLLER://0.0.0.0:9093
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
        KAFKA_INTER_BROKER_LISTENER_NAME=PLAINTEXT
        KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
        KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9092
        """,
        outside="localhost:9092",
    ),
    Service(
        "mmaracic/kafka-kraft-demo/docker-compose.yml",
        "apache/kafka:4.1.1",
        """
        KAFKA_BROKER_ID=1
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT,CONTROLLER:PLAINTEXT
        KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://broker:29092,PLAINTEXT_HOST://localhost:9092
        KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
        KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS=0
        KAFKA_TRANSACTION_STATE_LOG_MIN_ISR=1
        KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR=1
        KAFKA_PROCESS_ROLES=broker,controller
        KAFKA_NODE_ID=1
        KAFKA_CONTROLLER_QUORUM_VOTERS=1@broker:29093
        KAFKA_LISTENERS=PLAINTEXT://broker:29092,CONTROLLER://broker:29093,PLAINTEXT_HOST://0.0.0.0:9092
        KAFKA_INTER_BROKER_LISTENER_NAME=PLAINTEXT
        KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
        KAFKA_LOG_DIRS=/tmp/kraft-combined-logs
        CLUSTER_ID=MkU3OEVBNTcwNTJENDM2Qk
        """,
        outside="localhost:9092",
        inside="broker:29092",
        hostname="broker",
    ),
    Service(
        "DataDog/dd-trace-py/docker-compose.yml",
        "apache/kafka:3.8.0",
        """
        ALLOW_PLAINTEXT_LISTENER=yes
        KAFKA_LISTENERS=PLAINTEXT://:9092,CONTROLLER://:9093,EXTERNAL://:29092
        KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://kafka:9092,EXTERNAL://localhost:29092
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,EXTERNAL:PLAINTEXT,PLAINTEXT:PLAINTEXT
        KAFKA_NODE_ID=1
        KAFKA_INTER_BROKER_LISTENER_NAME=PLAINTEXT
        KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
        CLUSTER_ID=5L6g3nShT-eMCtK--X86sw
        KAFKA_PROCESS_ROLES=broker,controller
        KAFKA_CONTROLLER_QUORUM_VOTERS=1@kafka:9093
        KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
        """,
        outside="localhost:29092",
        inside="kafka:9092",
    ),
    Service(
        "open-telemetry/opentelemetry-python-contrib/tests/opentelemetry-docker-tests/tests/docker-compose.yml",
        "apache/kafka:3.9.1",
        """
        KAFKA_NODE_ID=1
        KAFKA_PROCESS_ROLES=broker,controller
        KAFKA_LISTENERS=PLAINTEXT://0.0.0.0:9092,CONTROLLER://0.0.0.0:9093
        KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9092
        KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
        KAFKA_CONTROLLER_QUORUM_VOTERS=1@localhost:9093
        KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
        KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR=1
        KAFKA_TRANSACTION_STATE_LOG_MIN_ISR=1
        """,
        outside="localhost:9092",
    ),
)

KAFKA_GO: Final = """
        KAFKA_CFG_BROKER_ID=1
        KAFKA_CFG_DELETE_TOPIC_ENABLE=true
        KAFKA_CFG_ADVERTISED_HOST_NAME=localhost
        KAFKA_CFG_ADVERTISED_PORT=9092
        KAFKA_CFG_ZOOKEEPER_CONNECT=localhost:2181
        KAFKA_CFG_AUTO_CREATE_TOPICS_ENABLE=true
        KAFKA_CFG_MESSAGE_MAX_BYTES=200000000
        KAFKA_CFG_LISTENERS=PLAINTEXT://:9092,SASL_PLAINTEXT://:9093
        KAFKA_CFG_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9092,SASL_PLAINTEXT://localhost:9093
        KAFKA_CFG_SASL_ENABLED_MECHANISMS=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
        KAFKA_CFG_AUTHORIZER_CLASS_NAME={}
        KAFKA_CFG_ALLOW_EVERYONE_IF_NO_ACL_FOUND=true
        KAFKA_OPTS=-Djava.security.auth.login.config=/opt/bitnami/kafka/config/kafka_jaas.conf
        ALLOW_PLAINTEXT_LISTENER=yes
        """
KAFKA_GO_COMMAND: Final = (
    "/bin/bash",
    "-c",
    "echo -e 'KafkaServer {\\norg.apache.kafka.common.security.scram.ScramLoginModule required\\n"
    ' username="adminscram"\\n password="admin-secret";\\n'
    ' org.apache.kafka.common.security.plain.PlainLoginModule required\\n username="adminplain"\\n'
    ' password="admin-secret"\\n user_adminplain="admin-secret";\\n  };\''
    " > /opt/bitnami/kafka/config/kafka_jaas.conf; /opt/bitnami/kafka/bin/kafka-configs.sh"
    " --zookeeper localhost:2181 --alter --add-config"
    ' "SCRAM-SHA-256=[password=admin-secret-256],SCRAM-SHA-512=[password=admin-secret-512]"'
    " --entity-type users --entity-name adminscram; exec /entrypoint.sh /run.sh",
)
BITNAMI: Final = (
    Service(
        "segmentio/kafka-go/.circleci/config.yml (kafka-370)",
        "bitnamilegacy/kafka:3.7.0",
        KAFKA_GO.format("kafka.security.authorizer.AclAuthorizer"),
        inside="localhost:9093",
        zookeeper="localhost:2181",
        inside_client={
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": "adminscram",
            "sasl_plain_password": "admin-secret-512",
        },
        command=KAFKA_GO_COMMAND,
    ),
    Service(
        "segmentio/kafka-go/.circleci/config.yml (kafka-270)",
        "bitnamilegacy/kafka:2.7.0",
        KAFKA_GO.format("kafka.security.auth.SimpleAclAuthorizer"),
        inside="localhost:9093",
        zookeeper="localhost:2181",
        inside_client={
            **PLAIN,
            "sasl_plain_username": "adminplain",
            "sasl_plain_password": "admin-secret",
        },
        command=KAFKA_GO_COMMAND,
    ),
    Service(
        "airtai/faststream/docker-compose.yaml",
        "bitnami/kafka:3.5.0",
        """
        KAFKA_ENABLE_KRAFT=true
        KAFKA_CFG_NODE_ID=1
        KAFKA_CFG_PROCESS_ROLES=broker,controller
        KAFKA_CFG_CONTROLLER_LISTENER_NAMES=CONTROLLER
        KAFKA_CFG_LISTENERS=PLAINTEXT://:9092,CONTROLLER://:9093
        KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
        KAFKA_CFG_ADVERTISED_LISTENERS=PLAINTEXT://127.0.0.1:9092
        KAFKA_BROKER_ID=1
        KAFKA_CFG_CONTROLLER_QUORUM_VOTERS=1@kafka:9093
        ALLOW_PLAINTEXT_LISTENER=true
        """,
        outside="127.0.0.1:9092",
    ),
    Service(
        "jaegertracing/jaeger/docker-compose/kafka/docker-compose.yml",
        "bitnami/kafka",
        """
        KAFKA_BROKER_ID=1
        KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
        KAFKA_CFG_ZOOKEEPER_CONNECT=zookeeper:2181
        ALLOW_PLAINTEXT_LISTENER=yes
        KAFKA_LISTENERS=INTERNAL://0.0.0.0:9092,OUTSIDE://0.0.0.0:9094
        KAFKA_ADVERTISED_LISTENERS=INTERNAL://kafka:9092,OUTSIDE://localhost:9094
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=INTERNAL:PLAINTEXT,OUTSIDE:PLAINTEXT
        KAFKA_INTER_BROKER_LISTENER_NAME=INTERNAL
        """,
        inside="kafka:9092",
        zookeeper=ZOOKEEPER,
        health=("sh", "-c", "kafka-topics.sh --list --bootstrap-server 127.0.0.1:9092"),
    ),
    Service(
        "segmentio/topicctl/docker-compose.yml (kafka1)",
        "bitnami/kafka:2.5.0",
        """
        KAFKA_CFG_BROKER_ID=1
        KAFKA_CFG_BROKER_RACK=zone1
        KAFKA_ZOOKEEPER_CONNECT=zookeeper:2181
        ALLOW_PLAINTEXT_LISTENER=yes
        KAFKA_CFG_LISTENERS=PLAINTEXT://:9092
        KAFKA_CFG_ADVERTISED_LISTENERS=PLAINTEXT://169.254.123.123:9092
        """,
        outside="169.254.123.123:9092",
        addresses=("169.254.123.123",),
        zookeeper=ZOOKEEPER,
    ),
    Service(
        "PostHog/posthog/docker-compose.base.yml",
        "posthog/kafka-container:v2.8.2 (bitnami)",
        """
        KAFKA_BROKER_ID=1001
        KAFKA_CFG_RESERVED_BROKER_MAX_ID=1001
        KAFKA_CFG_LISTENERS=PLAINTEXT://:9092
        KAFKA_CFG_ADVERTISED_LISTENERS=PLAINTEXT://kafka:9092
        KAFKA_CFG_ZOOKEEPER_CONNECT=zookeeper:2181
        ALLOW_PLAINTEXT_LISTENER=true
        """,
        inside="kafka:9092",
        zookeeper=ZOOKEEPER,
        health=(
            "sh",
            "-c",
            "kafka-cluster.sh cluster-id --bootstrap-server localhost:9092 || exit 1",
        ),
    ),
    Service(
        "netsampler/goflow2/compose/kcg/docker-compose.yml",
        "bitnami/kafka:3.9.0",
        """
        KAFKA_DELETE_TOPIC_ENABLE=true
        KAFKA_KRAFT_CLUSTER_ID=AAAAAAAAAAAAAAAAAAAAAA
        ALLOW_PLAINTEXT_LISTENER=yes
        KAFKA_ENABLE_KRAFT=yes
        KAFKA_CFG_NODE_ID=1
        KAFKA_CFG_BROKER_ID=1
        KAFKA_CFG_PROCESS_ROLES=broker,controller
        KAFKA_CFG_CONTROLLER_LISTENER_NAMES=CONTROLLER
        KAFKA_CFG_LISTENERS=CONTROLLER://localhost:9091,HOST://0.0.0.0:9092,INTERNAL://0.0.0.0:9093
        KAFKA_INTER_BROKER_LISTENER_NAME=INTERNAL
        KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT,HOST:PLAINTEXT
        KAFKA_CFG_ADVERTISED_LISTENERS=HOST://127.0.0.1:9092,INTERNAL://kafka:9093
        KAFKA_CFG_CONTROLLER_QUORUM_VOTERS=1@localhost:9091
        """,
        outside="127.0.0.1:9092",
        inside="kafka:9093",
    ),
    Service(
        "bitnami/bitnami-docker-kafka/docker-compose.yml",
        "bitnami/kafka:2",
        """
        KAFKA_CFG_ZOOKEEPER_CONNECT=zookeeper:2181
        ALLOW_PLAINTEXT_LISTENER=yes
        """,
        inside="kafka:9092",
        zookeeper=ZOOKEEPER,
    ),
    Service(
        "bitnami/bitnami-docker-kafka/docker-compose-cluster.yml (kafka-0)",
        "bitnami/kafka:2",
        """
        KAFKA_CFG_ZOOKEEPER_CONNECT=zookeeper:2181
        KAFKA_CFG_BROKER_ID=0
        ALLOW_PLAINTEXT_LISTENER=yes
        """,
        inside="kafka-0:9092",
        hostname="kafka-0",
        zookeeper=ZOOKEEPER,
        command=("/opt/bitnami/scripts/kafka/entrypoint.sh", "/opt/bitnami/scripts/kafka/run.sh"),
    ),
    Service(
        "bitnami/containers/bitnami/kafka/README.md (internal and external clients)",
        "bitnami/kafka",
        """
        KAFKA_CFG_ZOOKEEPER_CONNECT=zookeeper:2181
        ALLOW_PLAINTEXT_LISTENER=yes
        KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP=CLIENT:PLAINTEXT,EXTERNAL:PLAINTEXT
        KAFKA_CFG_LISTENERS=CLIENT://:9092,EXTERNAL://:9093
        KAFKA_CFG_ADVERTISED_LISTENERS=CLIENT://kafka:9092,EXTERNAL://localhost:9093
        KAFKA_CFG_INTER_BROKER_LISTENER_NAME=CLIENT
        """,
        outside="localhost:9093",
        inside="kafka:9092",
        zookeeper=ZOOKEEPER,
        prepare=(
            "echo hello | kafka-console-producer.sh --broker-list kafka:9092 --topic test",
            "kafka-console-consumer.sh --bootstrap-server kafka:9092 --topic test --from-beginning"
            " --max-messages 1",
        ),
        topics={"test": 1},
    ),
    Service(
        "torrejonv/teranode/deploy/dev/kafka.sh",
        "bitnami/kafka",
        """
        ALLOW_PLAINTEXT_LISTENER=yes
        KAFKA_CFG_NODE_ID=0
        KAFKA_CFG_PROCESS_ROLES=controller,broker
        KAFKA_CFG_LISTENERS=PLAINTEXT://:9092,CONTROLLER://:9093
        KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
        KAFKA_CFG_CONTROLLER_QUORUM_VOTERS=0@kafka-server:9093
        KAFKA_CFG_CONTROLLER_LISTENER_NAMES=CONTROLLER
        """,
        outside="localhost:9092",
        hostname="localhost",
    ),
    Service(
        "kylin-hunter/k-plat/plat-server-devops/doc/middleware/kafka/standalone/docker/kafka.sh",
        "bitnami/kafka:3.3.2",
        """
        KAFKA_CFG_NODE_ID=0
        KAFKA_CFG_PROCESS_ROLES=controller,broker
        KAFKA_CFG_LISTENERS=PLAINTEXT://:9092,CONTROLLER://:9093
        KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
        KAFKA_CFG_CONTROLLER_QUORUM_VOTERS=0@kafka-server:9093
        KAFKA_CFG_CONTROLLER_LISTENER_NAMES=CONTROLLER
        """,
        inside="kafka-server:9092",
        hostname="kafka-server",
    ),
    Service(
        "filipstojakovic/kafka-kraft-demo/docker-compose.yml",
        "bitnami/kafka",
        """
        KAFKA_ENABLE_KRAFT=yes
        KAFKA_CFG_PROCESS_ROLES=broker,controller
        KAFKA_CFG_CONTROLLER_LISTENER_NAMES=CONTROLLER
        KAFKA_CFG_LISTENERS=PLAINTEXT://:9092,CONTROLLER://:2181
        KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
        KAFKA_CFG_ADVERTISED_LISTENERS=PLAINTEXT://127.0.0.1:9092
        KAFKA_BROKER_ID=1
        KAFKA_CFG_NODE_ID=1
        KAFKA_CFG_CONTROLLER_QUORUM_VOTERS=1@127.0.0.1:2181
        ALLOW_PLAINTEXT_LISTENER=yes
        KAFKA_KRAFT_CLUSTER_ID=MkU3OEVBNTcwNTJENDM2Qk
        """,
        outside="127.0.0.1:9092",
    ),
    Service(
        "q1xuanx/kafka-compose-with-ui/docker-compose.yml",
        "bitnami/kafka:3.5.1",
        """
        KAFKA_BROKER_ID=1
        KAFKA_ZOOKEEPER_CONNECT=zookeeper:2181
        KAFKA_LISTENERS=PLAINTEXT://0.0.0.0:9092
        KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://192.168.88.110:9092
        ALLOW_PLAINTEXT_LISTENER=yes
        """,
        outside="192.168.88.110:9092",
        addresses=("192.168.88.110",),
        zookeeper=ZOOKEEPER,
    ),
    Service(
        "akvorado/akvorado/docker/docker-compose.yml",
        "bitnami/kafka:3.5",
        """
        KAFKA_ZOOKEEPER_PROTOCOL=PLAINTEXT
        KAFKA_CFG_ZOOKEEPER_CONNECT=zookeeper:2181
        KAFKA_CFG_DELETE_TOPIC_ENABLE=true
        KAFKA_CFG_LISTENERS=PLAINTEXT://:9092
        KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP=PLAINTEXT:PLAINTEXT
        KAFKA_CFG_ADVERTISED_LISTENERS=PLAINTEXT://kafka:9092
        KAFKA_CFG_INTER_BROKER_LISTENER_NAME=PLAINTEXT
        """,
        inside="kafka:9092",
        zookeeper=ZOOKEEPER,
        health=("kafka-topics.sh", "--list", "--bootstrap-server", "kafka:9092"),
    ),
    Service(
        "zendesk/ruby-kafka/.circleci/config.yml (kafka-2.7)",
        "bitnami/kafka:2.7.0",
        """
        ALLOW_PLAINTEXT_LISTENER=yes
        KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9093
        KAFKA_LISTENERS=PLAINTEXT://0.0.0.0:9093
        KAFKA_CFG_ZOOKEEPER_CONNECT=localhost:2181
        KAFKA_DELETE_TOPIC_ENABLE=true
        """,
        inside="localhost:9093",
        zookeeper="localhost:2181",
    ),
    Service(
        "elastic/apm-agent-python/tests/docker-compose.yml",
        "bitnami/kafka:3.1",
        """
        KAFKA_CFG_ZOOKEEPER_CONNECT=zookeeper:2181
        ALLOW_PLAINTEXT_LISTENER=yes
        """,
        inside="kafka:9092",
        zookeeper=ZOOKEEPER,
    ),
    Service(
        "bitnami/containers issue 29327",
        "bitnami/kafka",
        """
        KAFKA_BROKER_ID=1
        ALLOW_PLAINTEXT_LISTENER=yes
        KAFKA_CFG_ZOOKEEPER_CONNECT=zookeeper:2181
        KAFKA_CFG_AUTO_CREATE_TOPICS_ENABLE=false
        KAFKA_CLIENT_LISTENER_NAME=EXTERNAL
        KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP=INTERNAL:SASL_PLAINTEXT,EXTERNAL:SASL_PLAINTEXT
        KAFKA_CFG_LISTENERS=INTERNAL://:9091,EXTERNAL://:9092
        KAFKA_CFG_ADVERTISED_LISTENERS=INTERNAL://kafka:9091,EXTERNAL://kafka.local.net:30008
        KAFKA_CFG_INTER_BROKER_LISTENER_NAME=INTERNAL
        KAFKA_CFG_SASL_ENABLED_MECHANISMS=PLAIN
        KAFKA_CFG_SASL_MECHANISM_INTER_BROKER_PROTOCOL=PLAIN
        KAFKA_INTER_BROKER_USER=sa
        KAFKA_INTER_BROKER_PASSWORD=000000
        KAFKA_CFG_AUTHORIZER_CLASS_NAME=kafka.security.authorizer.AclAuthorizer
        KAFKA_CFG_ALLOW_EVERYONE_IF_NO_ACL_FOUND=false
        KAFKA_CFG_SUPER_USERS=User:sa
        """,
        inside="kafka:9091",
        zookeeper=ZOOKEEPER,
        inside_client={**PLAIN, "sasl_plain_username": "sa", "sasl_plain_password": "000000"},
    ),
)

SERVICES: Final = (*WURSTMEISTER, *CONFLUENT, *APACHE, *BITNAMI)


class Refused(NamedTuple):
    """A service that does not start, and the sentence that says why."""

    source: str
    variables: str
    sentence: str


VOTERS: Final = "1@kafka1:29093,2@kafka2:29093,3@kafka3:29093"
REFUSED: Final = (
    Refused(
        "WhiteStart/bitnami-kafka-cluster/docker-compose.yml",
        """
        KAFKA_ENABLE_KRAFT=no
        KAFKA_CFG_ZOOKEEPER_CONNECT=zookeeper:2181
        KAFKA_ZOOKEEPER_PROTOCOL=SASL
        KAFKA_ZOOKEEPER_USER=user
        KAFKA_ZOOKEEPER_PASSWORD=password
        KAFKA_CFG_LISTENERS=INTERNAL://:9092,EXTERNAL://:9094
        KAFKA_CFG_ADVERTISED_LISTENERS=INTERNAL://kafka:9092,EXTERNAL://localhost:9094
        KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP=INTERNAL:SASL_PLAINTEXT,EXTERNAL:SASL_PLAINTEXT
        KAFKA_CFG_INTER_BROKER_LISTENER_NAME=INTERNAL
        """,
        "KAFKA_ZOOKEEPER_PROTOCOL=SASL: minibroker does not log in at ZooKeeper",
    ),
    Refused(
        "daalvand/kafka-kraft/docker-compose.yml (kafka1 of three)",
        f"""
        KAFKA_NODE_ID=1
        KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,BROKER:PLAINTEXT,EXTERNAL:PLAINTEXT
        KAFKA_LISTENERS=BROKER://kafka1:29092,EXTERNAL://kafka1:9092,CONTROLLER://kafka1:29093
        KAFKA_ADVERTISED_LISTENERS=BROKER://kafka1:29092,EXTERNAL://kafka1:9092
        KAFKA_INTER_BROKER_LISTENER_NAME=BROKER
        KAFKA_CONTROLLER_QUORUM_VOTERS={VOTERS}
        KAFKA_PROCESS_ROLES=controller,broker
        """,
        f"controller.quorum.voters={VOTERS}: expected one controller",
    ),
    Refused(
        "confluentinc/kafka-images/examples/confluent-kafka/docker-compose.yml (controller-1)",
        """
        KAFKA_NODE_ID=1
        KAFKA_PROCESS_ROLES=controller
        KAFKA_CONTROLLER_QUORUM_VOTERS=1@localhost:9093
        KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
        KAFKA_LISTENERS=CONTROLLER://localhost:9093
        """,
        "process.roles=controller: there is no controller to run apart",
    ),
    Refused(
        "wurstmeister/kafka-docker/docker-compose-swarm.yml",
        """
        HOSTNAME_COMMAND=docker info | grep ^Name: | cut -d' ' -f 2
        KAFKA_ZOOKEEPER_CONNECT=zookeeper:2181
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT
        KAFKA_ADVERTISED_LISTENERS=INSIDE://:9092,OUTSIDE://_{HOSTNAME_COMMAND}:9094
        KAFKA_LISTENERS=INSIDE://:9092,OUTSIDE://:9094
        KAFKA_INTER_BROKER_LISTENER_NAME=INSIDE
        """,
        "HOSTNAME_COMMAND=docker info",
    ),
)


def variables_of(text: str) -> dict[str, str]:
    """Return name → value of lines NAME=VALUE."""
    pairs = (line.strip().partition("=") for line in text.splitlines() if line.strip())
    return {name: value for name, _, value in pairs}
