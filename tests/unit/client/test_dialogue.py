"""A client's side of a connection without its socket, and parts of answers; tests of connections
have the rest.
"""

from __future__ import annotations

import pytest

from minibroker.client.answer_parts import by_partition, part_of
from minibroker.client.dialogue import (
    SESSION_PART,
    ApiVersionsAnswer,
    BrokerRefusedError,
    Dialogue,
    Inquiry,
    login_steps,
    older_version,
)
from minibroker.client.sasl import PlainClient
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.api_keys import API_VERSIONS
from minibroker.kafka.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from minibroker.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsTopicResponse,
)
from minibroker.kafka.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from minibroker.kafka.protocol.messages.sasl_handshake import SaslHandshakeResponse
from minibroker.kafka.protocol.primitives import Reader
from tests.support.message_bytes import body_of


def test_the_session_of_a_login_ends_in_time() -> None:
    dialogue = Dialogue("me", 100)
    dialogue.versions = {17: (0, 1), 36: (0, 1)}
    steps = login_steps(dialogue, "broker", "PLAIN", PlainClient("a", "secret"))
    step = next(steps)
    assert isinstance(step, Inquiry)
    assert (step.request.mechanism, step.version) == ("PLAIN", 1)
    begin = steps.send(SaslHandshakeResponse(mechanisms=["PLAIN"]))
    assert not isinstance(begin, Inquiry)
    step = steps.send(begin())
    assert isinstance(step, Inquiry)
    assert (step.request.auth_bytes, step.version) == (b"\0a\0secret", 1)
    respond = steps.send(SaslAuthenticateResponse(session_lifetime_ms=2_000))
    assert not isinstance(respond, Inquiry)
    with pytest.raises(StopIteration) as ended:
        steps.send(respond())
    assert ended.value.value == 2 * SESSION_PART


def test_a_broker_without_logins_is_refused_by_name() -> None:
    steps = login_steps(Dialogue("me", 100), "broker 7", "PLAIN", PlainClient("a", "b"))
    with pytest.raises(BrokerRefusedError, match="broker 7: API 17 is wanted in version 1 to 1"):
        next(steps)


def test_the_size_of_an_answer_is_bounded() -> None:
    dialogue = Dialogue("me", 100)
    assert dialogue.body_size(b"\0\0\0\x64") == 100
    for prefix in (b"\0\0\0\x03", b"\0\0\0\x65", b"\xff\xff\xff\xff"):
        with pytest.raises(ProtocolError, match="expected 4 to 100"):
            dialogue.body_size(prefix)


def test_the_newest_version_that_both_know_is_taken() -> None:
    dialogue = Dialogue("me", 100)
    assert dialogue.version_for(ApiVersionsRequest, 0) is None
    dialogue.versions = {API_VERSIONS: (1, 99)}
    newest = ApiVersionsRequest.VERSIONS[1]
    assert dialogue.version_for(ApiVersionsRequest, 0) == newest
    assert dialogue.version_for(ApiVersionsRequest, 0, 2) == 2
    assert dialogue.version_for(ApiVersionsRequest, 0, 0) is None
    assert dialogue.version_for(ApiVersionsRequest, newest + 1) is None


def answered(code: ErrorCode, version: int) -> ApiVersionsResponse:
    """Return what is read of an answer that is written in `version`."""
    keys = [ApiVersion(api_key=18, min_version=0, max_version=2)]
    body = body_of(ApiVersionsResponse(error_code=code, api_keys=keys), version)
    return ApiVersionsAnswer.read(Reader(body), ApiVersionsRequest.VERSIONS[1])


def test_an_answer_is_in_the_layout_of_its_question() -> None:
    answer = answered(ErrorCode.NONE, ApiVersionsRequest.VERSIONS[1])
    assert [(key.api_key, key.max_version) for key in answer.api_keys] == [(18, 2)]
    assert older_version(answer) is None


def test_a_broker_that_does_not_know_the_version_names_its_own() -> None:
    assert older_version(answered(ErrorCode.UNSUPPORTED_VERSION, 0)) == 2


def test_a_part_is_found_among_others_or_is_left_out() -> None:
    first = ListOffsetsTopicResponse(
        name="a", partitions=[ListOffsetsPartitionResponse(partition_index=n) for n in (1, 2)]
    )
    parts = by_partition([first, ListOffsetsTopicResponse(name="b", partitions=[])])
    assert part_of(parts, ("a", 2)) is first.partitions[1]
    with pytest.raises(ProtocolError, match=r"leaves \('b', 2\) out"):
        part_of(parts, ("b", 2))
    with pytest.raises(ProtocolError):
        part_of(by_partition([]), ("a", 1))
