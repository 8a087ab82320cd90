"""Requests between brokers, sent by a client with and without CLUSTER_ACTION.

Like `permission_cases.py`, which plays them; of Apache Kafka 3.9.1 alone, because 4.4.0 has no such
requests on the listeners of clients. No request changes anything where it is let in: epochs are of
controllers and brokers that are gone, and broker 99 never was.
"""

from __future__ import annotations

from typing import Any, Final

from minibroker.broker.security.acls import CLUSTER_NAME, Operation, ResourceType
from tests.support.permission_cases import CASES, Case, fetch_of

_OLD: Final = "3.9.1"
_ACTION: Final = (Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
_ALTER: Final = (Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
_READ: Final = (Operation.READ, ResourceType.TOPIC, "t")
BROKER_CASES: Final[dict[str, Case]] = {}


def _case(name: str, version: int, fields: dict[str, Any], *permissions: Any) -> None:
    """Add a case, with `_ALTER`, which does not replace CLUSTER_ACTION."""
    api = name.partition(" ")[0]
    needed = (_ACTION, *(permissions or (_ALTER,)))
    case = Case(api, version, lambda _world, _step: fields, needed, _OLD)
    BROKER_CASES[f"{name} v{version}"] = case


_BY_A_CONTROLLER: Final = {
    "controller_id": 0,
    "is_kraft_controller": False,
    "controller_epoch": 0,
    "broker_epoch": -1,
}
_STATE: Final = {
    "partition_index": 0,
    "controller_epoch": 0,
    "leader": 0,
    "leader_epoch": 0,
    "isr": [0],
    "replicas": [0],
}

for _version in (1, 4, 7):
    _grouped = {
        "topic_states": [
            {"topic_name": "t", "partition_states": [{**_STATE, "partition_epoch": 0}]}
        ]
    }
    _alone = {"ungrouped_partition_states": [{**_STATE, "topic_name": "t", "partition_epoch": 0}]}
    _states = _grouped if _version > 1 else _alone
    _case("leader_and_isr", _version, {**_BY_A_CONTROLLER, **_states, "live_leaders": []})
for _version in (0, 2, 4):
    _partitions = {
        0: {"ungrouped_partitions": [{"topic_name": "t", "partition_index": 0}]},
        2: {"topics": [{"name": "t", "partition_indexes": [0]}]},
        4: {"topic_states": [{"topic_name": "t", "partition_states": [{"partition_index": 0}]}]},
    }[_version]
    _case("stop_replica", _version, {**_BY_A_CONTROLLER, **_partitions})
for _version in (4, 8):
    _topic_states = [{"topic_name": "t", "partition_states": [{**_STATE, "zk_version": 0}]}]
    _case(
        "update_metadata",
        _version,
        {
            **_BY_A_CONTROLLER,
            **({"topic_states": _topic_states} if _version > 4 else {}),
            "live_brokers": [],
        },
    )
for _version in (1, 3):
    _case("controlled_shutdown", _version, {"broker_id": 99, "broker_epoch": -1})
_case("alter_partition", 1, {"broker_id": 0, "broker_epoch": 1, "topics": []})
_case("alter_partition", 3, {"broker_id": 0, "broker_epoch": 1, "topics": []})
_case("allocate_producer_ids", 0, {"broker_id": 0, "broker_epoch": 1})
_case("allocate_producer_ids of-nobody", 0, {"broker_id": 99, "broker_epoch": -1})
_case("fetch as-a-follower", 11, fetch_of(7), _READ)
_case(
    "offset_for_leader_epoch as-a-broker",
    3,
    {
        "replica_id": 7,
        "topics": [
            {
                "topic": name,
                "partitions": [{"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}],
            }
            for name in ("t", "nowhere")
        ],
    },
    (Operation.DESCRIBE, ResourceType.TOPIC, "t"),
)
_case(
    "write_txn_markers of-the-cluster",
    1,
    {
        "markers": [
            {
                "producer_id": 9_999,
                "producer_epoch": 0,
                "transaction_result": False,
                "coordinator_epoch": 0,
                "topics": [{"name": name, "partition_indexes": [0]} for name in ("t", "nowhere")],
            }
        ]
    },
    (Operation.WRITE, ResourceType.TOPIC, "t"),
)

EVERY_CASE: Final = {**CASES, **BROKER_CASES}
