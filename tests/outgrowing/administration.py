"""Changes that an administrator makes in each phase, so that each side has news for the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from tests.outgrowing.nodes import METADATA_VERSION, Nodes
from tests.outgrowing.reading import WAIT_S
from tests.outgrowing.view import BROKER, CLIENT_METRICS, GROUP, TOPIC
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tests.outgrowing.nodes import Login

GROWN = "grown"
SET = 0
KEPT_PHASES = 2
"""After so many phases what was made goes again."""


class Administration:
    """Makes, changes and removes one thing of each kind in each phase."""

    def __init__(
        self, clients: Mapping[str, str], login: Login | None, group_ids: Iterable[str]
    ) -> None:
        self._address = clients["bootstrap.servers"]
        self._login = login
        self._clients = dict(clients)
        self._group_ids = list(group_ids)

    def change(self, phase: int) -> None:
        """Change everything."""
        self._admin = AdminClient(self._clients)
        self._change_topics(phase)
        self._change_acls(phase)
        self._change_credentials(phase)
        with Nodes(self._address, self._login) as nodes:
            metadata = nodes.any("metadata", METADATA_VERSION, topics=[])
            controller = nodes.clients[metadata["controller_id"]]
            _accepted(
                controller.call("incremental_alter_configs", 1, resources=self._configs(phase))[
                    "responses"
                ]
            )
            _accepted(
                controller.call("alter_client_quotas", 1, entries=list(_quotas(phase)))["entries"]
            )
        self._make_topic(phase)

    def _make_topic(self, phase: int) -> None:
        """Make a topic, and wait until each node has it: with the last change it has all."""
        name = f"made-{phase}"
        new_topic = NewTopic(name, 2, -1, config={"retention.ms": str(10**9 + phase)})
        _wait(self._admin.create_topics([new_topic]))

        def is_seen() -> bool:
            with Nodes(self._address, self._login) as nodes:
                answers = list(nodes.each("metadata", METADATA_VERSION, topics=None))
            return all(name in {topic["name"] for topic in answer["topics"]} for answer in answers)

        wait_until(is_seen, f"each node has {name}", WAIT_S)

    def _change_topics(self, phase: int) -> None:
        if phase == 0:
            _wait(self._admin.create_topics([NewTopic(GROWN, 1, -1)]))
        else:
            _wait(self._admin.create_partitions([NewPartitions(GROWN, phase + 1)]))
        if phase >= KEPT_PHASES:
            _wait(self._admin.delete_topics([f"made-{phase - KEPT_PHASES}"]))

    def _change_acls(self, phase: int) -> None:
        _wait(self._admin.create_acls([_acl(phase)]))
        if phase >= KEPT_PHASES:
            old = _acl(phase - KEPT_PHASES)
            _wait(self._admin.delete_acls([_filter_of(old)]))

    def _change_credentials(self, phase: int) -> None:
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096 + phase)
        changes: list[Any] = [
            UserScramCredentialUpsertion(f"scram-{phase}", info, f"secret-{phase}".encode())
        ]
        if phase >= KEPT_PHASES:
            old_user = f"scram-{phase - KEPT_PHASES}"
            changes.append(UserScramCredentialDeletion(old_user, ScramMechanism.SCRAM_SHA_256))
        _wait(self._admin.alter_user_scram_credentials(changes))

    def _configs(self, phase: int) -> list[dict[str, Any]]:
        values = [
            (TOPIC, GROWN, "max.message.bytes", str(10**6 + phase)),
            (BROKER, "", "message.max.bytes", str(2 * 10**6 + phase)),
            (CLIENT_METRICS, f"metrics-{phase % 3}", "interval.ms", str(60_000 + phase)),
        ]
        values += [
            (GROUP, group_id, "consumer.session.timeout.ms", str(45_000 + phase))
            for group_id in self._group_ids
        ]
        return [
            {
                "resource_type": kind,
                "resource_name": name,
                "configs": [{"name": key, "config_operation": SET, "value": value}],
            }
            for kind, name, key, value in values
        ]


def _quotas(phase: int) -> Iterable[dict[str, Any]]:
    """Yield a quota for each kind of entity, and the removal of an old one."""
    yield _quota([("user", f"user-{phase}")], "producer_byte_rate", 10**7 + phase)
    yield _quota([("user", None)], "consumer_byte_rate", 10**8 + phase)
    yield _quota([("client-id", f"client-{phase}")], "request_percentage", 90.5 + phase)
    both = [("user", f"user-{phase % 2}"), ("client-id", None)]
    yield _quota(both, "controller_mutation_rate", 1000.0 + phase)
    yield _quota([("ip", "127.0.0.2")], "connection_creation_rate", 1000.0 + phase)
    if phase >= KEPT_PHASES:
        old = [("client-id", f"client-{phase - KEPT_PHASES}")]
        yield _quota(old, "request_percentage", None)


def _quota(
    entity: Sequence[tuple[str, str | None]], key: str, value: float | None
) -> dict[str, Any]:
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
        "ops": [{"key": key, "value": value or 0.0, "remove": value is None}],
    }


def _acl(phase: int) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC,
        f"prefix-{phase}",
        ResourcePatternType.PREFIXED if phase % 2 else ResourcePatternType.LITERAL,
        f"User:somebody-{phase}",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )


def _filter_of(acl: AclBinding) -> Any:
    return AclBindingFilter(
        acl.restype,
        acl.name,
        acl.resource_pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )


def _wait(futures: Mapping[Any, Any]) -> None:
    for future in futures.values():
        future.result(WAIT_S)


def _accepted(answers: Iterable[Mapping[str, Any]]) -> None:
    refused = [answer for answer in answers if answer["error_code"]]
    assert not refused, refused
