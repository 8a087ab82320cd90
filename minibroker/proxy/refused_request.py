"""A refused request: an answer of the proxy in place of Kafka's, or a request with fewer places.

`request_side` calls it on the loop, for long requests beside it: nothing here changes but the
request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.api_keys import FETCH, load_messages
from minibroker.kafka.protocol.refusals import refusal
from minibroker.proxy import codec
from minibroker.rig.message_places import has_places, take_out

if TYPE_CHECKING:
    from minibroker.proxy.pending import Pending
    from minibroker.rig.faults import Fault
    from minibroker.rig.message_places import TopicName


class RefusedRequest(NamedTuple):
    """A request that a rule refuses, as a whole or for some places."""

    frame: bytes | None = None
    """The rest of it, which goes to Kafka; None: Kafka is not asked."""
    failed: Any = None
    """The answer for the places that were taken out of that rest."""
    own_answer: bytes | None = None
    """The frame of the whole answer; None without a rest: the connection ends."""


def refused_by(
    fault: Fault, pending: Pending, frame: bytes, request: Any, name_of: TopicName
) -> RefusedRequest:
    """Return the rest of a request and the answer to what the rule refuses. `request` loses it."""
    head = pending.head
    assert head is not None
    assert fault.error is not None
    detail = f"{fault!r}"
    if fault.topic is None and fault.partition is None:
        return _answered(pending, refusal(request, head.version, fault.error, detail))
    if head.api_key == FETCH and request.session_id:
        # A session leaves out what has not changed, and so the faulted partition.
        lost = load_messages(FETCH)[1](error_code=int(ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
        return _answered(pending, lost)
    covered = take_out(request, fault.covers, name_of)
    if covered is None:
        return RefusedRequest(frame)
    failed = refusal(covered, head.version, fault.error, detail)
    if not has_places(request, name_of):
        return _answered(pending, failed)
    if head.api_key == FETCH:
        request.session_epoch, request.max_wait_ms = -1, 0
    return RefusedRequest(codec.write_request(head, pending.correlation_id, request), failed)


def _answered(pending: Pending, response: Any) -> RefusedRequest:
    """Return a refusal that Kafka does not hear of. `response`: None for an API without a place for
    an error.
    """
    head = pending.head
    assert head is not None
    if response is None or not head.wants_answer:
        return RefusedRequest()
    return RefusedRequest(own_answer=codec.write_answer(head, pending.correlation_id, response))
