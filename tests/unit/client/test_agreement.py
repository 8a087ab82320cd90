"""The first answer of a broker, in the layout that was asked for and in the one for a refusal."""

from __future__ import annotations

from minibroker.client.agreement import NEWEST, ApiVersionsAnswer, older_version
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from minibroker.kafka.protocol.primitives import Reader, Writer


def answered(code: ErrorCode, version: int) -> ApiVersionsResponse:
    """Return what is read of an answer that is written in `version`."""
    keys = [ApiVersion(api_key=18, min_version=0, max_version=2)]
    writer = Writer()
    ApiVersionsResponse(error_code=code, api_keys=keys).write(writer, version)
    return ApiVersionsAnswer.read(Reader(writer.to_bytes()), NEWEST)


def test_an_answer_is_in_the_layout_of_its_question() -> None:
    found = answered(ErrorCode.NONE, NEWEST)
    assert [(key.api_key, key.max_version) for key in found.api_keys] == [(18, 2)]
    assert older_version(found) is None


def test_a_broker_that_does_not_know_the_version_names_its_own() -> None:
    assert older_version(answered(ErrorCode.UNSUPPORTED_VERSION, 0)) == 2
