"""The coordinators of one name, of its group and of its transactions, asked until they answer.

    transactions ─┐
    groups ───────┴─► CoordinatorClient ─► Client

A coordinator that moves, starts or is silent is asked again until the deadline of the caller. So a
request that comes here may be repeated: the coordinator knows what it has done.

Source: Kafka TransactionManager, AdminApiDriver; KIP-98.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

from minibroker.client.dialogue import BrokerRefusedError
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, ProtocolError
from minibroker.kafka.protocol.api_keys import (
    DELETE_GROUPS,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_DELETE,
    SYNC_GROUP,
)
from minibroker.kafka.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from minibroker.kafka.protocol.messages.describe_groups import DescribeGroupsRequest
from minibroker.kafka.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from minibroker.kafka.protocol.messages.offset_commit import OffsetCommitRequest
from minibroker.kafka.protocol.messages.offset_fetch import OffsetFetchRequest
from minibroker.kafka.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.client.client import Client

OF_GROUPS: Final = 0
OF_TRANSACTIONS: Final = 1
FIND_VERSIONS: Final = (0, 3)
_KINDS_FROM: Final = 1
"""Version of FindCoordinator from which on a request may ask for one of transactions."""
PAUSE_S: Final = 0.02
_GROUP_CALLS: Final = frozenset(
    {
        ConsumerGroupDescribeRequest.API_KEY,
        DescribeGroupsRequest.API_KEY,
        *(JOIN_GROUP, SYNC_GROUP, HEARTBEAT, LEAVE_GROUP, DELETE_GROUPS, OFFSET_DELETE),
        OffsetCommitRequest.API_KEY,
        OffsetFetchRequest.API_KEY,
        TxnOffsetCommitRequest.API_KEY,
    }
)
_UNFINISHED: Final = frozenset(
    {ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.UNSTABLE_OFFSET_COMMIT}
)
"""A transaction is about to end; its coordinator is the right one."""


def _code(answer: Any) -> int:
    return int(answer.error_code)


class CoordinatorClient:
    """The coordinators of one name; used by one thread."""

    def __init__(self, client: Client, name: str) -> None:
        """`name`: of a group, and of the transactions that have the same name."""
        self._client = client
        self._addresses: dict[int, tuple[str, int]] = {}
        self.name = name

    def ask(
        self,
        request: Any,
        response: Any,
        versions: tuple[int, int],
        deadline: float,
        code_of: Callable[[Any], int] = _code,
    ) -> Any:
        """Return the answer of a coordinator, which is asked until it gives one.

        Args:
            request: a call that may be repeated.
            response: reads the answer.
            versions: from oldest to newest.
            deadline: on the monotonic clock, in seconds.
            code_of: returns the error code of an answer.

        Raises:
            KafkaError: the coordinator refuses, or it could not be asked before the deadline.
            OSError: no broker answered before the deadline, or it takes no login.
            ProtocolError: an answer is malformed.
            ConfigError: the settings of TLS.
        """
        kind = OF_GROUPS if request.API_KEY in _GROUP_CALLS else OF_TRANSACTIONS
        while True:
            try:
                answer = self._ask_once(kind, request, response, versions)
                code = code_of(answer)
                if not code:
                    return answer
                raise KafkaError(ErrorCode(code), type(request).__name__)
            except BrokerRefusedError:
                raise
            except KafkaError as error:
                if not error.code.retriable or time.monotonic() >= deadline:
                    raise
                if error.code not in _UNFINISHED:
                    self._addresses.pop(kind, None)
            except (OSError, ProtocolError):
                self._addresses.pop(kind, None)
                if time.monotonic() >= deadline:
                    raise
            threading.Event().wait(PAUSE_S)

    def _ask_once(self, kind: int, request: Any, response: Any, versions: tuple[int, int]) -> Any:
        if kind not in self._addresses:
            self._addresses[kind] = self._find(kind)
        return self._client.ask(self._addresses[kind], request, response, versions)

    def _find(self, kind: int) -> tuple[str, int]:
        request = FindCoordinatorRequest(key=self.name, key_type=kind)
        oldest = _KINDS_FROM if kind else FIND_VERSIONS[0]
        versions = (oldest, FIND_VERSIONS[1])
        answer = self._client.ask_any(request, FindCoordinatorResponse, versions)
        if answer.error_code:
            raise KafkaError(ErrorCode(answer.error_code), answer.error_message)
        return answer.host, answer.port
