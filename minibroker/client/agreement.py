"""The answer to a client's first request, which says what versions the broker speaks.

A broker that does not know that version answers in the layout of version 0 (KIP-511).
"""

from typing import Final

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.api_keys import API_VERSIONS
from minibroker.kafka.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from minibroker.kafka.protocol.primitives import Reader

NEWEST: Final = ApiVersionsRequest.VERSIONS[1]


class ApiVersionsAnswer:
    """Reads ApiVersions, whatever the layout."""

    @staticmethod
    def read(reader: Reader, version: int) -> ApiVersionsResponse:
        """Return the answer to a question of `version`. Raises ProtocolError."""
        start = reader.position
        is_refused = reader.int16() == ErrorCode.UNSUPPORTED_VERSION
        reader.position = start
        return ApiVersionsResponse.read(reader, 0 if is_refused else version)


def older_version(found: ApiVersionsResponse) -> int | None:
    """Return the version to ask again with, None if the question was answered."""
    if found.error_code != ErrorCode.UNSUPPORTED_VERSION:
        return None
    known = {key.api_key: key.max_version for key in found.api_keys}
    return min(NEWEST, known.get(API_VERSIONS, 0))
