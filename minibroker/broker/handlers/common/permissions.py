"""The permissions that each API needs: one table for all of them.

The authorize station (`server/handling.py`) checks `REQUEST_NEEDS` before the handler runs: without
one of them the whole request is refused. `PART_NEEDS` are of single topics, groups or configs of a
request. Its handler asks `RequestContext.authorize` about each, in Kafka's order of checks, and
refuses or leaves out only that part. A test compares the tables with the questions asked.

Source: Kafka KafkaApis, ControllerApis, AclApis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from minibroker.broker.security.acls import CLUSTER_NAME, Operation, ResourceType
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol import api_keys as keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.slices import Steps

Item = TypeVar("Item")

CLUSTER: Final = ResourceType.CLUSTER
GROUP: Final = ResourceType.GROUP
TOPIC: Final = ResourceType.TOPIC
TRANSACTIONAL_ID: Final = ResourceType.TRANSACTIONAL_ID

REFUSALS: Final = {
    CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
"""Type of resource → the error of a request that may not do something to it."""


class Need(NamedTuple):
    """A permission that a request needs."""

    operation: Operation
    resource_type: ResourceType
    field: str = ""
    """The field of the request that names the resource; empty for the cluster."""
    has_message: bool = True
    """True if the error has a message, where the response has a place for it."""

    def check(self, context: RequestContext, request: Any) -> None:
        """Raise KafkaError with the error of the resource's type if the client may not do it."""
        self.require(context, getattr(request, self.field) if self.field else CLUSTER_NAME)

    def require(self, context: RequestContext, name: str) -> None:
        """Raise KafkaError with the error of the type if the client may not do it to `name`."""
        if not context.authorize(self.operation, self.resource_type, name):
            error = refusal(self.resource_type)
            raise error if self.has_message else KafkaError(error.code)


class PartNeed(NamedTuple):
    """A permission that a part of a request needs; its handler asks."""

    operation: Operation
    resource_type: ResourceType
    part: str
    """The part that needs it."""


_READ_GROUP: Final = Need(Operation.READ, GROUP, "group_id")
_WRITE_ID: Final = Need(Operation.WRITE, TRANSACTIONAL_ID, "transactional_id")
_ACTION: Final = Need(Operation.CLUSTER_ACTION, CLUSTER)
ALTER_CLUSTER: Final = Need(Operation.ALTER, CLUSTER)
DESCRIBE_CLUSTER: Final = Need(Operation.DESCRIBE, CLUSTER)

REQUEST_NEEDS: Final[dict[int, tuple[Need, ...]]] = {
    keys.LEADER_AND_ISR: (_ACTION,),
    keys.STOP_REPLICA: (_ACTION,),
    keys.UPDATE_METADATA: (_ACTION,),
    keys.CONTROLLED_SHUTDOWN: (_ACTION,),
    keys.OFFSET_COMMIT: (_READ_GROUP,),
    keys.JOIN_GROUP: (_READ_GROUP,),
    keys.HEARTBEAT: (_READ_GROUP,),
    keys.LEAVE_GROUP: (_READ_GROUP,),
    keys.ADD_OFFSETS_TO_TXN: (_WRITE_ID, _READ_GROUP),
    keys.END_TXN: (_WRITE_ID,),
    keys.TXN_OFFSET_COMMIT: (_WRITE_ID, _READ_GROUP),
    keys.ALTER_REPLICA_LOG_DIRS: (ALTER_CLUSTER,),
    keys.DESCRIBE_LOG_DIRS: (DESCRIBE_CLUSTER,),
    keys.ELECT_LEADERS: (ALTER_CLUSTER,),
    keys.ALTER_PARTITION_REASSIGNMENTS: (ALTER_CLUSTER,),
    keys.LIST_PARTITION_REASSIGNMENTS: (DESCRIBE_CLUSTER,),
    keys.OFFSET_DELETE: (Need(Operation.DELETE, GROUP, "group_id"),),
    keys.DESCRIBE_CLIENT_QUOTAS: (Need(Operation.DESCRIBE_CONFIGS, CLUSTER, has_message=False),),
    keys.ALTER_CLIENT_QUOTAS: (Need(Operation.ALTER_CONFIGS, CLUSTER),),
    keys.DESCRIBE_USER_SCRAM_CREDENTIALS: (Need(Operation.DESCRIBE, CLUSTER, has_message=False),),
    keys.ALTER_USER_SCRAM_CREDENTIALS: (ALTER_CLUSTER,),
    keys.DESCRIBE_QUORUM: (DESCRIBE_CLUSTER,),
    keys.ALTER_PARTITION: (_ACTION,),
    keys.UPDATE_FEATURES: (ALTER_CLUSTER,),
    keys.UNREGISTER_BROKER: (ALTER_CLUSTER,),
    keys.ALLOCATE_PRODUCER_IDS: (_ACTION,),
    keys.LIST_CONFIG_RESOURCES: (Need(Operation.DESCRIBE_CONFIGS, CLUSTER),),
}
"""API key → the permissions without which the whole request is refused, in Kafka's order."""


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


def check_of(api_key: int) -> Callable[[RequestContext, Any], None] | None:
    """Return the check of an API's requests, None if no request needs a permission as a whole.

    The check raises KafkaError for a client that lacks a permission.
    """
    needs = REQUEST_NEEDS.get(api_key)
    if needs is None:
        return None

    def check(context: RequestContext, request: Any) -> None:
        for need in needs:
            need.check(context, request)

    return check


def refusal(resource_type: ResourceType) -> KafkaError:
    """Return the error of a request that may not do something to a resource of this type."""
    code = REFUSALS[resource_type]
    return KafkaError(code, code.meaning if resource_type is CLUSTER else None)


class Allowed:
    """The names of one type of resource to which a client may do something.

    Lives for one request and asks about each name once, however many partitions the name has.
    """

    __slots__ = ("_answers", "_context", "_is_filter", "_operation", "_resource_type")

    def __init__(
        self,
        context: RequestContext,
        operation: Operation,
        resource_type: ResourceType = TOPIC,
        *,
        is_filter: bool = False,
    ) -> None:
        """`is_filter`: without the permission something is left out, which is logged at DEBUG."""
        self._context = context
        self._operation = operation
        self._resource_type = resource_type
        self._is_filter = is_filter
        self._answers: dict[str, bool] | None = None
        if context.services.authorizer is not None:
            self._answers = {}

    def __contains__(self, name: str) -> bool:
        """Return whether the client may do it to the resource of this name."""
        answers = self._answers
        if answers is None:
            return True
        answer = answers.get(name)
        if answer is None:
            answer = answers[name] = self._context.authorize(
                self._operation, self._resource_type, name, is_filter=self._is_filter
            )
        return answer

    def refused_last(
        self, items: Iterable[Item], name_of: Callable[[Item], str]
    ) -> Steps[list[Item]]:
        """Return the items, those whose resource the client may not use behind the others."""
        if self._answers is None:
            return list(items)
        permitted: list[Item] = []
        refused: list[Item] = []
        for item in items:
            (permitted if name_of(item) in self else refused).append(item)
            yield
        return permitted + refused

    def require(self, name: str) -> None:
        """Raise KafkaError if the client may not do it to the resource of this name."""
        if self._answers is not None and name not in self:
            raise refusal(self._resource_type)
