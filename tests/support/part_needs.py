"""The permissions that parts of a request need.

They are of single topics, groups or configs. The handler of the request asks
`RequestContext.authorize` about each, in Kafka's order of checks, and refuses or leaves out only
that part. `test_permissions.py` compares this table and `permissions.REQUEST_NEEDS` with the
questions asked.

Source: Kafka KafkaApis, ControllerApis, AclApis.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from minibroker.broker.handlers.common.permissions import CLUSTER, GROUP, TOPIC, TRANSACTIONAL_ID
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.kafka.protocol import api_keys as keys


class PartNeed(NamedTuple):
    """A permission that a part of a request needs; its handler asks."""

    operation: Operation
    resource_type: ResourceType
    part: str
    """The part that needs it."""


_READ_TOPIC: Final = PartNeed(Operation.READ, TOPIC, "each topic")
_WRITE_TOPIC: Final = PartNeed(Operation.WRITE, TOPIC, "each topic")
_DESCRIBE_TOPIC: Final = PartNeed(Operation.DESCRIBE, TOPIC, "each topic")
_DELETE_TOPIC: Final = PartNeed(Operation.DELETE, TOPIC, "each topic")
_READ_ITS_GROUP: Final = PartNeed(Operation.READ, GROUP, "the group")
_DESCRIBE_GROUP: Final = PartNeed(Operation.DESCRIBE, GROUP, "each group")
_DESCRIBE_ID: Final = PartNeed(Operation.DESCRIBE, TRANSACTIONAL_ID, "each transactional id")
_OPERATIONS: Final = PartNeed(Operation.DESCRIBE, CLUSTER, "the cluster's authorized operations")
_CREATE_ANY: Final = PartNeed(Operation.CREATE, CLUSTER, "creating topics, or the next")
_CREATE_TOPIC: Final = PartNeed(Operation.CREATE, TOPIC, "each topic to be created")

PART_NEEDS: Final[dict[int, tuple[PartNeed, ...]]] = {
    keys.PRODUCE: (
        PartNeed(Operation.WRITE, TRANSACTIONAL_ID, "transactional records, all of them"),
        _WRITE_TOPIC,
    ),
    keys.FETCH: (
        PartNeed(Operation.CLUSTER_ACTION, CLUSTER, "a broker that follows"),
        _READ_TOPIC,
    ),
    keys.LIST_OFFSETS: (_DESCRIBE_TOPIC,),
    keys.METADATA: (_DESCRIBE_TOPIC, _CREATE_ANY, _CREATE_TOPIC, _OPERATIONS),
    keys.OFFSET_COMMIT: (_READ_TOPIC,),
    keys.OFFSET_FETCH: (_DESCRIBE_GROUP, _DESCRIBE_TOPIC),
    keys.FIND_COORDINATOR: (_DESCRIBE_GROUP, _DESCRIBE_ID),
    keys.SYNC_GROUP: (_READ_ITS_GROUP,),
    keys.DESCRIBE_GROUPS: (_DESCRIBE_GROUP,),
    keys.LIST_GROUPS: (
        PartNeed(Operation.DESCRIBE, CLUSTER, "all groups, or the next"),
        _DESCRIBE_GROUP,
    ),
    keys.CREATE_TOPICS: (
        _CREATE_ANY,
        _CREATE_TOPIC,
        PartNeed(Operation.DESCRIBE_CONFIGS, TOPIC, "the configuration in the answer"),
    ),
    keys.DELETE_TOPICS: (
        PartNeed(Operation.DELETE, CLUSTER, "all topics, with StandardAuthorizer"),
        PartNeed(Operation.DESCRIBE, TOPIC, "the name of a topic that is asked for by id"),
        _DELETE_TOPIC,
    ),
    keys.DELETE_RECORDS: (_DELETE_TOPIC,),
    keys.INIT_PRODUCER_ID: (
        PartNeed(Operation.WRITE, TRANSACTIONAL_ID, "the transactional id"),
        PartNeed(Operation.IDEMPOTENT_WRITE, CLUSTER, "no transactional id, or the next"),
        PartNeed(Operation.WRITE, TOPIC, "no transactional id: any topic"),
    ),
    keys.OFFSET_FOR_LEADER_EPOCH: (
        PartNeed(Operation.CLUSTER_ACTION, CLUSTER, "all topics, or the next"),
        _DESCRIBE_TOPIC,
    ),
    keys.ADD_PARTITIONS_TO_TXN: (
        PartNeed(Operation.WRITE, TRANSACTIONAL_ID, "the transactional id, up to version 3"),
        _WRITE_TOPIC,
        PartNeed(Operation.CLUSTER_ACTION, CLUSTER, "from version 4 on, which brokers send"),
    ),
    keys.WRITE_TXN_MARKERS: (
        PartNeed(Operation.ALTER, CLUSTER, "all markers, or the next"),
        PartNeed(Operation.CLUSTER_ACTION, CLUSTER, "all markers"),
    ),
    keys.TXN_OFFSET_COMMIT: (_READ_TOPIC,),
    keys.DESCRIBE_ACLS: (PartNeed(Operation.DESCRIBE, CLUSTER, "the request"),),
    keys.CREATE_ACLS: (PartNeed(Operation.ALTER, CLUSTER, "the request"),),
    keys.DELETE_ACLS: (PartNeed(Operation.ALTER, CLUSTER, "the request"),),
    keys.DESCRIBE_CONFIGS: tuple(
        PartNeed(Operation.DESCRIBE_CONFIGS, kind, part)
        for kind, part in ((TOPIC, "topics"), (GROUP, "groups"), (CLUSTER, "everything else"))
    ),
    keys.ALTER_CONFIGS: tuple(
        PartNeed(Operation.ALTER_CONFIGS, kind, part)
        for kind, part in ((TOPIC, "topics"), (GROUP, "groups"), (CLUSTER, "everything else"))
    ),
    keys.INCREMENTAL_ALTER_CONFIGS: tuple(
        PartNeed(Operation.ALTER_CONFIGS, kind, part)
        for kind, part in ((TOPIC, "topics"), (GROUP, "groups"), (CLUSTER, "everything else"))
    ),
    keys.CREATE_PARTITIONS: (PartNeed(Operation.ALTER, TOPIC, "each topic"),),
    keys.DELETE_GROUPS: (PartNeed(Operation.DELETE, GROUP, "each group"),),
    keys.OFFSET_DELETE: (_READ_TOPIC,),
    keys.DESCRIBE_CLUSTER: (_OPERATIONS,),
    keys.DESCRIBE_PRODUCERS: (_READ_TOPIC,),
    keys.DESCRIBE_TRANSACTIONS: (_DESCRIBE_ID, _DESCRIBE_TOPIC),
    keys.LIST_TRANSACTIONS: (_DESCRIBE_ID,),
    keys.CONSUMER_GROUP_HEARTBEAT: (_READ_ITS_GROUP, _DESCRIBE_TOPIC),
    keys.CONSUMER_GROUP_DESCRIBE: (_DESCRIBE_GROUP, _DESCRIBE_TOPIC),
    keys.DESCRIBE_TOPIC_PARTITIONS: (_DESCRIBE_TOPIC,),
    keys.CREATE_DELEGATION_TOKEN: (
        PartNeed(Operation.CREATE_TOKENS, ResourceType.USER, "an owner who is not the client"),
    ),
    keys.DESCRIBE_DELEGATION_TOKEN: (
        PartNeed(
            Operation.DESCRIBE,
            ResourceType.DELEGATION_TOKEN,
            "each token that is not the client's, or the next",
        ),
        PartNeed(Operation.DESCRIBE_TOKENS, ResourceType.USER, "the owner of such a token"),
    ),
}
"""API key → the permissions that parts of a request need; its handler asks in Kafka's order."""
