"""Requests of a client with and without each permission: what it asks, and what it is told.

The cases are recorded from Apache Kafka with AclAuthorizer (3.9.1) and with StandardAuthorizer
(4.4.0) by `tests/golden/record_permissions.py`, and played on minibroker with the same authorizer.
Each case is one request. It is sent without any permission, with each of its permissions alone, and
with all of them. What cannot be equal (ids, addresses, times, words) is masked.

`alice` has a listener with SASL PLAIN. The super user is ANONYMOUS, on a PLAINTEXT listener.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.broker.security.acls import CLUSTER_NAME, Operation, ResourceType
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PLAINTEXT, SASL = "PLAINTEXT", "SASL"
ALICE: Final = "User:alice"
LATEST: Final = "4.4.0"
SETTINGS: Final = {
    "super.users": "User:ANONYMOUS",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.security.protocol.map": (
        "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
    ),
    "listener.name.sasl.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required"
        ' user_alice="alice-secret";'
    ),
    "auto.create.topics.enable": "true",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
"""Settings of every broker, without its listeners and the name of its authorizer."""
RECORDS: Final = bytes(build_batch([Record(0, 1_700_000_000_000, b"key", b"value", ())]))

Permission = tuple[Operation, ResourceType, str]
"""Operation, type and name of a resource; `@` in the name stands for the step."""


class World:
    """A broker with a topic `t`, offsets of a group `g` and a transactional id `x`."""

    def __init__(
        self, host: str, ports: Mapping[str, int], *, settle: Callable[[], object] = bool
    ) -> None:
        """`settle`: called after a change of ACLs, waits until a controller of Kafka has it."""
        self.root = WireClient(host, ports[PLAINTEXT])
        self.alice: WireClient
        self._address = host, ports[SASL]
        self._settle = settle
        self.connect()

    def connect(self) -> None:
        """Let alice log in."""
        self.alice = WireClient(*self._address)
        answer = self.alice.call("sasl_handshake", 1, mechanism="PLAIN")
        assert answer["error_code"] == 0, answer
        answer = self.alice.call("sasl_authenticate", 1, auth_bytes=b"\0alice\0alice-secret")
        assert answer["error_code"] == 0, answer

    def close(self) -> None:
        """Close both connections."""
        self.root.close()
        self.alice.close()

    def make_topic(self, name: str) -> None:
        """Create a topic with one partition, and wait for its leader."""
        topic = {"name": name, "num_partitions": 1, "replication_factor": 1}
        self.root.call("create_topics", 4, topics=[topic], timeout_ms=30_000)
        wait_until(lambda: self._has_leader(name), f"a leader of {name}")

    def topic_id(self, name: str) -> bytes:
        """Return the id of a topic."""
        topics = [{"name": name}]
        answer = self.root.call("metadata", 10, topics=topics, allow_auto_topic_creation=False)
        topic_id: bytes = answer["topics"][0]["topic_id"]
        return bytes(topic_id)

    def _has_leader(self, name: str) -> bool:
        topics = [{"name": name}]
        answer = self.root.call("metadata", 8, topics=topics, allow_auto_topic_creation=False)
        (topic,) = answer["topics"]
        return bool(topic["partitions"]) and topic["partitions"][0]["error_code"] == 0

    def prepare(self) -> None:
        """Make what the cases ask about."""
        self.make_topic("t")
        partition = {"index": 0, "records": RECORDS}
        data = [{"name": "t", "partition_data": [partition]}]
        self.root.call("produce", 7, acks=-1, timeout_ms=30_000, topic_data=data)
        committed = {"partition_index": 0, "committed_offset": 1}
        offsets = [{"name": "t", "partitions": [committed]}]

        def is_committed() -> bool:
            self.root.call("find_coordinator", 1, key="g", key_type=0)
            answer = self.root.call(
                "offset_commit", 5, group_id="g", generation_id_or_member_epoch=-1, topics=offsets
            )
            return answer["topics"][0]["partitions"][0]["error_code"] == 0

        def is_initialized() -> bool:
            self.root.call("find_coordinator", 1, key="x", key_type=1)
            answer = self.root.call(
                "init_producer_id", 1, transactional_id="x", transaction_timeout_ms=60_000
            )
            return bool(answer["error_code"] == 0)

        wait_until(is_committed, "offsets of group g")
        wait_until(is_initialized, "a producer with the id x")

    def permit(self, permissions: list[Permission]) -> None:
        """Give alice these permissions and no others."""
        mine = {
            "resource_type_filter": 1,
            "resource_name_filter": None,
            "pattern_type_filter": 1,
            "principal_filter": ALICE,
            "host_filter": None,
            "operation": 1,
            "permission_type": 1,
        }
        self.root.call("delete_acls", 2, filters=[mine])
        creations = [
            {
                "resource_type": int(kind),
                "resource_name": name,
                "resource_pattern_type": 3,
                "principal": ALICE,
                "host": "*",
                "operation": int(operation),
                "permission_type": 3,
            }
            for operation, kind, name in permissions
        ]
        answer = self.root.call("create_acls", 2, creations=creations)
        assert all(result["error_code"] == 0 for result in answer["results"]), answer
        expected = {(int(op), int(kind), name) for op, kind, name in permissions}

        def is_known() -> bool:
            answer = self.root.call("describe_acls", 2, **mine)
            return expected == {
                (acl["operation"], resource["resource_type"], resource["resource_name"])
                for resource in answer["resources"]
                for acl in resource["acls"]
            }

        wait_until(is_known, f"ACLs {permissions}")
        self._settle()


class Case(NamedTuple):
    """One request, and the permissions that have to do with it."""

    api: str
    version: int
    fields: Callable[[World, str], dict[str, Any]]
    """Returns the fields of the request; the text names the step, and is new in each."""
    permissions: tuple[Permission, ...]
    only: str | None = None
    """The only release that is asked."""
    leaves_out_all: bool = False
    """True if the request must not succeed: it would stop the broker, or waits."""


CASES: Final[dict[str, Case]] = {}


def case(
    name: str,
    version: int,
    fields: dict[str, Any] | Callable[[World, str], dict[str, Any]],
    *permissions: str,
    only: str | None = None,
    leaves_out_all: bool = False,
) -> None:
    """Add a case.

    `name`: the API, and after a blank what is special.
    `permissions`: as in `READ TOPIC t, ALTER CLUSTER`.
    """
    make = fields if callable(fields) else lambda _world, step: _filled(fields, step)
    api = name.partition(" ")[0]
    needed = tuple(map(permission_of, ", ".join(permissions).split(", ") if permissions else ()))
    CASES[f"{name} v{version}"] = Case(api, version, make, needed, only, leaves_out_all)


def permission_of(text: str) -> Permission:
    """Return the permission of a text: operation, type and name, which a cluster has not."""
    operation, kind, *name = text.split()
    return Operation[operation], ResourceType[kind], name[0] if name else CLUSTER_NAME


def _filled(value: Any, step: str) -> Any:
    """Return the value with `@` in texts replaced by the step."""
    if isinstance(value, str):
        return value.replace("@", step)
    if isinstance(value, dict):
        return {name: _filled(inner, step) for name, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, step) for inner in value]
    return value


def steps_of(api_case: Case) -> dict[str, tuple[Permission, ...]]:
    """Return step → the permissions that alice has in it."""
    steps: dict[str, tuple[Permission, ...]] = {"without": ()}
    if api_case.leaves_out_all:
        return steps
    if len(api_case.permissions) > 1:
        for permission in api_case.permissions:
            operation, kind, name = permission
            steps[f"{operation.name} {kind.name} {name}"] = (permission,)
    steps["with all"] = api_case.permissions
    return steps


def play(world: World, name: str, api_case: Case) -> dict[str, Any]:
    """Return step → what alice is told."""
    answers = {}
    for number, (label, permissions) in enumerate(steps_of(api_case).items()):
        step = f"{name.replace(' ', '-')}-{number}"
        fields = api_case.fields(world, step)
        world.permit([(op, kind, _filled(text, step)) for op, kind, text in permissions])
        try:
            answer: Any = world.alice.call(api_case.api, api_case.version, **fields)
        except ConnectionError:
            answer = "closed"
            world.connect()
        text = json.dumps(_comparable("", answer)).replace(step, "@")
        answers[label] = json.loads(text)
    return answers


_NO_ID: Final = bytes(16)
_WORDS: Final = {
    "error_message": "text",
    "host": "host",
    "cluster_id": "id",
    "log_dir": "directory",
}
_NUMBERS: Final = {
    "node_id": "broker",
    "broker_id": "broker",
    "controller_id": "broker",
    "leader_id": "broker",
    "coordinator": "broker",
    "port": "port",
    "leader_epoch": "epoch",
    "producer_id": "id",
    "total_bytes": "bytes",
    "usable_bytes": "bytes",
    "timestamp": "time",
    "transaction_start_time_ms": "time",
}
_LEFT_OUT: Final = frozenset({"throttle_time_ms"})


def in_order(value: Any) -> str:
    """Return the text by which lists of answers are sorted: their order is a broker's own."""
    return json.dumps(value, sort_keys=True)


def _comparable(key: str, value: Any) -> Any:
    """Return a part of an answer without what is a broker's own. Lists are sorted."""
    if isinstance(value, dict):
        return {
            name: _comparable(name, inner) for name, inner in value.items() if name not in _LEFT_OUT
        }
    if key == "configs" and value and "config_source" in value[0]:
        return [inner["name"] for inner in value if inner["name"] == "cleanup.policy"] or "some"
    if isinstance(value, list | tuple):
        return sorted((_comparable(key, inner) for inner in value), key=in_order)
    if isinstance(value, bytes | bytearray | memoryview):
        if key == "topic_id":
            return "none" if bytes(value) == _NO_ID else "id"
        return f"{len(value)} bytes"
    if isinstance(value, str):
        if key == "member_id":
            return "id" if value else ""
        return _WORDS.get(key, value) if value else value
    if isinstance(value, int) and not isinstance(value, bool):
        if key in ("replica_nodes", "isr_nodes"):
            return "broker"
        return _NUMBERS[key] if key in _NUMBERS and value >= 0 else value
    return value


# Records

_DATA = [
    {"name": name, "partition_data": [{"index": 0, "records": RECORDS}]}
    for name in ("t", "nowhere")
]
case(
    "produce",
    9,
    {"transactional_id": None, "acks": 1, "timeout_ms": 30_000, "topic_data": _DATA},
    "WRITE TOPIC t, WRITE TOPIC nowhere",
)
_TRANSACTIONAL = bytes(
    build_batch(
        [Record(0, 1_700_000_000_000, b"key", b"value", ())],
        producer_id=9_999,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
)
case(
    "produce transactional",
    9,
    {
        "transactional_id": "x",
        "acks": -1,
        "timeout_ms": 30_000,
        "topic_data": [{"name": "t", "partition_data": [{"index": 0, "records": _TRANSACTIONAL}]}],
    },
    "WRITE TOPIC t, WRITE TRANSACTIONAL_ID x",
)


def fetch_of(replica_id: int) -> dict[str, Any]:
    """Return a Fetch of a broker, or of a consumer (-1)."""
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
    return {
        "replica_id": replica_id,
        "max_wait_ms": 0,
        "min_bytes": 0,
        "max_bytes": 1000,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [{"topic": name, "partitions": [partition]} for name in ("t", "nowhere")],
    }


case("fetch", 11, fetch_of(-1), "READ TOPIC t, READ TOPIC nowhere, DESCRIBE TOPIC t")
case("fetch as-a-broker", 11, fetch_of(7), "READ TOPIC t", leaves_out_all=True)
case(
    "list_offsets",
    5,
    {
        "replica_id": -1,
        "topics": [
            {
                "name": name,
                "partitions": [{"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}],
            }
            for name in ("nowhere", "t")
        ],
    },
    "DESCRIBE TOPIC t, DESCRIBE TOPIC nowhere",
)
case(
    "delete_records",
    2,
    {
        "timeout_ms": 30_000,
        "topics": [
            {"name": name, "partitions": [{"partition_index": 0, "offset": 0}]}
            for name in ("t", "nowhere")
        ],
    },
    "DELETE TOPIC t, DELETE TOPIC nowhere",
)
case(
    "offset_for_leader_epoch",
    3,
    {
        "replica_id": -1,
        "topics": [
            {
                "topic": name,
                "partitions": [{"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}],
            }
            for name in ("t", "nowhere")
        ],
    },
    "DESCRIBE TOPIC t, CLUSTER_ACTION CLUSTER",
)
case(
    "describe_producers",
    0,
    {"topics": [{"name": name, "partition_indexes": [0]} for name in ("t", "nowhere", "!")]},
    "READ TOPIC t, READ TOPIC nowhere",
)

# Metadata

_NAMES = [{"name": "t"}, {"name": "nowhere"}]
for _version in (9, 12):
    case(
        "metadata",
        _version,
        {
            "topics": _NAMES,
            "allow_auto_topic_creation": False,
            "include_topic_authorized_operations": True,
            "include_cluster_authorized_operations": _version == 9,
        },
        "DESCRIBE TOPIC t, DESCRIBE TOPIC nowhere, DESCRIBE CLUSTER",
    )
case("metadata all", 9, {"topics": None}, "WRITE TOPIC t")
case(
    "metadata with-creation",
    9,
    {"topics": [{"name": "@"}], "allow_auto_topic_creation": True},
    "DESCRIBE TOPIC @, CREATE TOPIC @, CREATE CLUSTER",
    leaves_out_all=True,
)
case(
    "metadata by-id",
    12,
    lambda world, _step: {
        "topics": [
            {"topic_id": world.topic_id("t"), "name": None},
            {"topic_id": b"\1" * 16, "name": None},
        ],
        "include_topic_authorized_operations": True,
    },
    "DESCRIBE TOPIC t",
)
case(
    "describe_cluster",
    1,
    {"include_cluster_authorized_operations": True},
    "DESCRIBE CLUSTER, CREATE CLUSTER",
)
case(
    "describe_topic_partitions",
    0,
    {"topics": _NAMES, "response_partition_limit": 10},
    "DESCRIBE TOPIC t, DESCRIBE TOPIC nowhere",
    only=LATEST,
)

# Groups

_OFFSETS = [
    {
        "name": name,
        "partitions": [{"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1}],
    }
    for name in ("t", "nowhere")
]
_READ_GROUP = "READ GROUP g"
case(
    "offset_commit",
    8,
    {
        "group_id": "g",
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "group_instance_id": None,
        "topics": _OFFSETS,
    },
    _READ_GROUP,
    "READ TOPIC t, READ TOPIC nowhere",
)
_FETCHED = [{"name": name, "partition_indexes": [0]} for name in ("t", "nowhere")]
case("offset_fetch", 7, {"group_id": "g", "topics": _FETCHED}, "DESCRIBE GROUP g, DESCRIBE TOPIC t")
case("offset_fetch all", 7, {"group_id": "g", "topics": None}, "DESCRIBE GROUP g, DESCRIBE TOPIC t")
case(
    "offset_fetch groups",
    8,
    {"groups": [{"group_id": "g", "topics": _FETCHED}, {"group_id": "other", "topics": None}]},
    "DESCRIBE GROUP g, DESCRIBE GROUP other, READ TOPIC t",
)
case(
    "offset_delete",
    0,
    {
        "group_id": "g",
        "topics": [
            {"name": name, "partitions": [{"partition_index": 9}]} for name in ("t", "nowhere")
        ],
    },
    "DELETE GROUP g, READ TOPIC t",
)
case(
    "find_coordinator groups",
    4,
    {"key_type": 0, "coordinator_keys": ["g", "other"]},
    "DESCRIBE GROUP g",
)
case(
    "find_coordinator transactions",
    4,
    {"key_type": 1, "coordinator_keys": ["x", "other"]},
    "DESCRIBE TRANSACTIONAL_ID x",
)
case("find_coordinator", 3, {"key_type": 0, "key": "g"}, "READ GROUP g")
case(
    "join_group",
    5,
    {
        "group_id": "g",
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 30_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    },
    _READ_GROUP,
)
case("heartbeat", 4, {"group_id": "g", "generation_id": 1, "member_id": "m"}, _READ_GROUP)
case("leave_group", 4, {"group_id": "g", "members": [{"member_id": "m"}]}, _READ_GROUP)
for _names in (None, "range"):
    case(
        f"sync_group {_names}",
        5,
        {
            "group_id": "g",
            "generation_id": 1,
            "member_id": "m",
            "protocol_type": _names,
            "protocol_name": _names,
        },
        _READ_GROUP,
    )
case(
    "describe_groups",
    5,
    {"groups": ["g", "other"], "include_authorized_operations": True},
    "DESCRIBE GROUP g, READ GROUP other",
)
case("list_groups", 4, {"states_filter": []}, "DESCRIBE GROUP g, DESCRIBE CLUSTER")
case("delete_groups", 2, {"groups_names": ["no-group", "other"]}, "DELETE GROUP no-group")
case(
    "consumer_group_heartbeat",
    0,
    {
        "group_id": "@",
        "member_id": "",
        "member_epoch": 0,
        "rebalance_timeout_ms": 30_000,
        "subscribed_topic_names": ["t"],
        "topic_partitions": [],
    },
    "READ GROUP @, DESCRIBE TOPIC t",
    only=LATEST,
    leaves_out_all=True,
)
case(
    "consumer_group_describe",
    0,
    {"group_ids": ["g", "other"], "include_authorized_operations": True},
    "DESCRIBE GROUP g",
    only=LATEST,
)

# Transactions

_WRITE_ID = "WRITE TRANSACTIONAL_ID x"
case(
    "init_producer_id idempotent",
    4,
    {"transactional_id": None, "transaction_timeout_ms": 1000},
    "IDEMPOTENT_WRITE CLUSTER, WRITE TOPIC some, READ TOPIC t",
)
case("init_producer_id", 4, {"transactional_id": "", "transaction_timeout_ms": 1000}, _WRITE_ID)
_IDENTITY = {"producer_id": 9_999, "producer_epoch": 0}
case(
    "add_partitions_to_txn",
    3,
    {
        "v3_and_below_transactional_id": "x",
        "v3_and_below_producer_id": 9_999,
        "v3_and_below_producer_epoch": 0,
        "v3_and_below_topics": [
            {"name": name, "partitions": [0]} for name in ("t", "nowhere", "__consumer_offsets")
        ],
    },
    _WRITE_ID,
    "WRITE TOPIC t, WRITE TOPIC nowhere, WRITE TOPIC __consumer_offsets",
)
case(
    "add_partitions_to_txn of-brokers",
    4,
    {
        "transactions": [
            {
                "transactional_id": "x",
                **_IDENTITY,
                "verify_only": True,
                "topics": [{"name": "t", "partitions": [0]}],
            }
        ]
    },
    "WRITE TRANSACTIONAL_ID x, CLUSTER_ACTION CLUSTER",
)
case(
    "add_offsets_to_txn",
    3,
    {"transactional_id": "x", **_IDENTITY, "group_id": "g"},
    _WRITE_ID,
    _READ_GROUP,
)
case("end_txn", 3, {"transactional_id": "x", **_IDENTITY, "committed": True}, _WRITE_ID)
case(
    "txn_offset_commit",
    3,
    {
        "transactional_id": "x",
        "group_id": "g",
        **_IDENTITY,
        "generation_id_or_member_epoch": 5,
        "member_id": "m",
        "topics": _OFFSETS,
    },
    _WRITE_ID,
    _READ_GROUP,
    "READ TOPIC t",
)
_MARKER = {
    **_IDENTITY,
    "transaction_result": False,
    "coordinator_epoch": 0,
    "topics": [{"name": "nowhere", "partition_indexes": [0]}],
}
case("write_txn_markers", 1, {"markers": [_MARKER]}, "ALTER CLUSTER, CLUSTER_ACTION CLUSTER")
case(
    "describe_transactions", 0, {"transactional_ids": ["x", "other"]}, "DESCRIBE TRANSACTIONAL_ID x"
)
case("list_transactions", 0, {}, "DESCRIBE TRANSACTIONAL_ID x")

# Topics

case(
    "create_topics",
    7,
    {
        "topics": [{"name": "@", "num_partitions": 1, "replication_factor": 1}],
        "timeout_ms": 30_000,
        "validate_only": True,
    },
    "CREATE TOPIC @, CREATE CLUSTER, DESCRIBE_CONFIGS TOPIC @",
)
case(
    "create_topics forbidden-name",
    7,
    {
        "topics": [{"name": "t", "num_partitions": 1, "replication_factor": 1}],
        "timeout_ms": 30_000,
        "validate_only": True,
    },
    "CREATE TOPIC t",
)
case(
    "create_partitions",
    3,
    {
        "topics": [{"name": name, "count": 2} for name in ("t", "nowhere")],
        "timeout_ms": 30_000,
        "validate_only": True,
    },
    "ALTER TOPIC t, ALTER TOPIC nowhere",
)


def _to_delete(world: World, step: str) -> dict[str, Any]:
    world.make_topic(step)
    return {"topic_names": [step, "nowhere"], "timeout_ms": 30_000}


def _to_delete_by_id(world: World, step: str) -> dict[str, Any]:
    world.make_topic(step)
    ids = (world.topic_id(step), b"\1" * 16)
    return {
        "topics": [{"name": None, "topic_id": topic_id} for topic_id in ids],
        "timeout_ms": 30_000,
    }


case(
    "delete_topics",
    5,
    _to_delete,
    "DESCRIBE TOPIC @, DESCRIBE TOPIC nowhere, DELETE TOPIC @, DELETE CLUSTER",
)
case("delete_topics by-id", 6, _to_delete_by_id, "DESCRIBE TOPIC @, DELETE TOPIC @")

# Configurations

_RESOURCES = ((2, "t"), (2, "nowhere"), (4, ""))
_CONFIGS = ("DESCRIBE_CONFIGS TOPIC t, ALTER_CONFIGS TOPIC nowhere, DESCRIBE_CONFIGS CLUSTER",)
case(
    "describe_configs",
    4,
    {
        "resources": [
            {
                "resource_type": kind,
                "resource_name": name,
                "configuration_keys": ["flush.messages", "message.max.bytes"],
            }
            for kind, name in _RESOURCES
        ]
    },
    *_CONFIGS,
)
_ALTER_CONFIGS = ("ALTER_CONFIGS TOPIC t, ALTER_CONFIGS TOPIC nowhere, ALTER_CONFIGS CLUSTER",)
for _api, _version, _extra in (
    ("alter_configs", 2, {}),
    ("incremental_alter_configs", 1, {"config_operation": 0}),
):
    case(
        _api,
        _version,
        {
            "resources": [
                {
                    "resource_type": kind,
                    "resource_name": name,
                    "configs": [{"name": key, "value": "100000", **_extra}],
                }
                for (kind, name), key in zip(
                    _RESOURCES, ("retention.ms", "retention.ms", "message.max.bytes"), strict=True
                )
                # Kafka 4 takes no AlterConfigs of all brokers that leaves out min.insync.replicas.
                if kind == 2 or _extra
            ],
            "validate_only": True,
        },
        *_ALTER_CONFIGS,
    )
case("list_config_resources", 0, {}, "DESCRIBE_CONFIGS CLUSTER", only=LATEST)
case("describe_client_quotas", 1, {"components": [], "strict": False}, "DESCRIBE_CONFIGS CLUSTER")
case(
    "alter_client_quotas",
    1,
    {
        "entries": [
            {
                "entity": [{"entity_type": "user", "entity_name": "bob"}],
                "ops": [{"key": "producer_byte_rate", "value": 1.0, "remove": False}],
            }
        ],
        "validate_only": True,
    },
    "ALTER_CONFIGS CLUSTER",
)
case("describe_user_scram_credentials", 0, {"users": [{"name": "nobody"}]}, "DESCRIBE CLUSTER")
case(
    "alter_user_scram_credentials",
    0,
    {"deletions": [{"name": "nobody", "mechanism": 1}], "upsertions": []},
    "ALTER CLUSTER",
)

# The cluster

_ALTER = "ALTER CLUSTER"
_DESCRIBE = "DESCRIBE CLUSTER"
case(
    "describe_acls",
    2,
    {
        "resource_type_filter": 2,
        "resource_name_filter": "nothing",
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    },
    _DESCRIBE,
)
case(
    "create_acls",
    2,
    {
        "creations": [
            {
                "resource_type": 2,
                "resource_name": name,
                "resource_pattern_type": 3,
                "principal": principal,
                "host": "*",
                "operation": operation,
                "permission_type": 3,
            }
            for name, principal, operation in (
                ("", "User:bob", 3),
                ("made", "User:bob", 3),
                ("made", "User:bob", 99),
            )
        ]
    },
    _ALTER,
)
case(
    "delete_acls",
    2,
    {
        "filters": [
            {
                "resource_type_filter": 2,
                "resource_name_filter": "made",
                "pattern_type_filter": 1,
                "principal_filter": None,
                "host_filter": None,
                "operation": 1,
                "permission_type": 1,
            }
        ]
        * 2
    },
    _ALTER,
)
case("alter_replica_log_dirs", 2, {"dirs": []}, _ALTER)
case("describe_log_dirs", 4, {"topics": []}, _DESCRIBE)
case(
    "elect_leaders",
    2,
    {
        "election_type": 0,
        "topic_partitions": [{"topic": "t", "partitions": [0]}],
        "timeout_ms": 30_000,
    },
    _ALTER,
)
case("alter_partition_reassignments", 0, {"timeout_ms": 30_000, "topics": []}, _ALTER)
case(
    "list_partition_reassignments",
    0,
    {"timeout_ms": 30_000, "topics": []},
    _DESCRIBE,
    leaves_out_all=True,
)
case("update_features", 1, {"timeout_ms": 30_000, "feature_updates": []}, leaves_out_all=True)
case("unregister_broker", 0, {"broker_id": 99}, leaves_out_all=True, only=LATEST)
