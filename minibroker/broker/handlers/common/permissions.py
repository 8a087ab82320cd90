"""The permissions that each API needs: one table for all of them.

The authorize station (`server/handling.py`) checks `REQUEST_NEEDS` before the handler runs: without
one of them the whole request is refused. Others are of single topics, groups or configs of a
request. Its handler asks `RequestContext.authorize` about each, in Kafka's order of checks, and
refuses or leaves out only that part. `tests/support/part_needs.py` has a table of those.

Source: Kafka KafkaApis, ControllerApis, AclApis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

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


class Need:
    """A permission that a request needs. Constant."""

    __slots__ = ("field", "has_message", "operation", "resource_type")

    def __init__(
        self,
        operation: Operation,
        resource_type: ResourceType,
        field: str = "",
        *,
        has_message: bool = True,
    ) -> None:
        self.operation = operation
        self.resource_type = resource_type
        self.field = field
        """The field of the request that names the resource; empty for the cluster."""
        self.has_message = has_message
        """True if the error has a message, where the response has a place for it."""

    def check(self, context: RequestContext, request: Any) -> None:
        """Raise KafkaError with the error of the resource's type if the client may not do it."""
        self.require(context, getattr(request, self.field) if self.field else CLUSTER_NAME)

    def require(self, context: RequestContext, name: str) -> None:
        """Raise KafkaError with the error of the type if the client may not do it to `name`."""
        if not context.authorize(self.operation, self.resource_type, name):
            error = refusal(self.resource_type)
            raise error if self.has_message else KafkaError(error.code)


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
