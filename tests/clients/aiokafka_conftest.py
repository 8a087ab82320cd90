"""The `conftest.py` of aiokafka's suite, on a Kafka that runs: its own one starts a container.

ACLs and users come from Kafka's protocol, there from tools in the container. Tests of Kerberos are
skipped, and those of listeners that this Kafka has not. With a login in the environment every
client of the suite has it by default.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import AIOKafkaClient, AIOKafkaConsumer, AIOKafkaProducer, conn  # type: ignore[import-untyped]
from aiokafka.admin import AIOKafkaAdminClient  # type: ignore[import-untyped]
from aiokafka.helpers import create_ssl_context  # type: ignore[import-untyped]
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_REASON = "needs something that this Kafka has not"
CERTIFICATES = Path(os.environ["SUITE_CERTIFICATES"])
WAIT_SECONDS = 30.0

if "SUITE_USER" in os.environ:
    _LOGIN = {
        "security_protocol": "SASL_SSL",
        "ssl_context": create_ssl_context(cafile=str(CERTIFICATES / "ca.crt")),
        "sasl_mechanism": os.environ["SUITE_MECHANISM"],
        "sasl_plain_username": os.environ["SUITE_USER"],
        "sasl_plain_password": os.environ["SUITE_PASSWORD"],
    }
    for _client in (AIOKafkaClient, AIOKafkaConsumer, AIOKafkaProducer, AIOKafkaAdminClient):
        _client.__init__.__kwdefaults__.update(_LOGIN)
    conn.create_conn.__kwdefaults__.update(_LOGIN)


@pytest.fixture(autouse=True)
def seed(request: pytest.FixtureRequest) -> None:
    """Give each test the same random names in every run."""
    random.seed(request.node.nodeid)


class Missing:
    """A part of the container: a test that asks it for anything is skipped."""

    def __getattr__(self, name: str) -> Any:
        pytest.skip(_REASON)

    __truediv__ = __getattr__


def wait_until(holds: Callable[[], bool], condition: str) -> None:
    """Ask Kafka until it says so. Raises AssertionError."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"not so after {WAIT_SECONDS:g} s: {condition}"


def all_acls(user: str | None = None) -> AclBindingFilter:
    """Return the filter of all ACLs, or of those of a user."""
    return AclBindingFilter(
        ResourceType.ANY,
        None,  # type: ignore[arg-type]
        ResourcePatternType.ANY,
        user,  # type: ignore[arg-type]
        None,  # type: ignore[arg-type]
        AclOperation.ANY,
        AclPermissionType.ANY,
    )


class AccessLists:
    """The ACLs of a test: the suite's `ACLManager`. A change waits until the broker has it."""

    def __init__(self, admin: AdminClient) -> None:
        self._admin = admin

    def list_acl(self, principal: str | None = None) -> list[AclBinding]:
        """Return the ACLs of everybody, or of a user."""
        user = None if principal is None else f"User:{principal}"
        bindings: list[AclBinding] = self._admin.describe_acls(all_acls(user)).result(WAIT_SECONDS)
        return bindings

    def add_acl(self, *, operation: str, **parameters: Any) -> None:
        """Add one; the parameters are those of the tool."""
        allowed, denied = parameters.get("allow_principal"), parameters.get("deny_principal")
        resources = {
            "topic": ResourceType.TOPIC,
            "group": ResourceType.GROUP,
            "transactional_id": ResourceType.TRANSACTIONAL_ID,
        }
        kind, name = next(
            ((kind, parameters[key]) for key, kind in resources.items() if key in parameters),
            (ResourceType.BROKER, "kafka-cluster"),
        )
        binding = AclBinding(
            kind,
            name,
            ResourcePatternType.LITERAL,
            f"User:{allowed or denied}",
            "*",
            AclOperation[operation.upper()],
            AclPermissionType.ALLOW if allowed else AclPermissionType.DENY,
        )
        for future in self._admin.create_acls([binding]).values():
            future.result(WAIT_SECONDS)
        wait_until(lambda: binding in self.list_acl(), f"{binding} is there")

    def cleanup(self) -> None:
        """Remove all."""
        for future in self._admin.delete_acls([all_acls()]).values():
            future.result(WAIT_SECONDS)
        wait_until(lambda: not self.list_acl(), "no ACL is there")


class Users:
    """Users with passwords: the suite's `KafkaConfig`."""

    def __init__(self, admin: AdminClient) -> None:
        self._admin = admin

    def add_scram_user(self, username: str, password: str) -> None:
        """Add one, for SCRAM-SHA-256 and SCRAM-SHA-512; the broker knows it."""
        kinds = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
        for kind in kinds:
            info = ScramCredentialInfo(kind, 4096)
            change = UserScramCredentialUpsertion(username, info, password.encode())
            for future in self._admin.alter_user_scram_credentials([change]).values():
                future.result(WAIT_SECONDS)
        wait_until(lambda: self._has_both(username), f"{username} is there")

    def _has_both(self, username: str) -> bool:
        answers = self._admin.describe_user_scram_credentials([username])
        assert isinstance(answers, dict)
        return len(answers[username].result(WAIT_SECONDS).scram_credential_infos) == 2


@pytest.fixture(scope="class")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Yield the loop of a class of tests."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield loop
    if not loop.is_closed():
        loop.call_soon(loop.stop)
        loop.run_forever()
        loop.close()
    gc.collect()
    asyncio.set_event_loop(None)


@pytest.fixture(scope="class")
def setup_test_class_serverless(
    request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop
) -> None:
    """Give a class of tests its loop."""
    cls: Any = request.cls
    cls.loop = loop


@pytest.fixture(scope="class")
def setup_test_class(request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop) -> None:
    """Give a class of tests its loop, and where Kafka is."""
    addresses = os.environ["SUITE_KAFKA"].split(",")
    host, _, port = addresses[0].rpartition(":")
    cls: Any = request.cls
    cls.loop = loop
    cls.kafka_host, cls.kafka_port, cls.hosts = host, int(port), addresses
    cls.kafka_version = os.environ["SUITE_VERSION"]
    cls.acl_manager = cls.kerberos_utils = cls.kafka_config = cls.ssl_folder = Missing()
    if "SUITE_SASL_PLAINTEXT" in os.environ:
        admin = AdminClient({"bootstrap.servers": ",".join(addresses)})
        cls.acl_manager, cls.kafka_config = AccessLists(admin), Users(admin)
        cls.ssl_folder = CERTIFICATES
        cls.kafka_ssl_port = port_of("SSL")
        cls.kafka_sasl_plain_port = port_of("SASL_PLAINTEXT")


def port_of(listener: str) -> int:
    """Return the port of a listener that this Kafka has."""
    return int(os.environ[f"SUITE_{listener}"].rpartition(":")[2])
