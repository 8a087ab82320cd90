"""Errors of Kafka as answers of HTTP."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from minibroker.control.messages import HttpError
from minibroker.kafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from minibroker.kafka.errors import KafkaError

_STATUSES: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: HTTPStatus.NOT_FOUND,
    ErrorCode.GROUP_ID_NOT_FOUND: HTTPStatus.NOT_FOUND,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: HTTPStatus.NOT_FOUND,
    ErrorCode.OFFSET_OUT_OF_RANGE: HTTPStatus.BAD_REQUEST,
    ErrorCode.INVALID_TOPIC_EXCEPTION: HTTPStatus.BAD_REQUEST,
    ErrorCode.INVALID_GROUP_ID: HTTPStatus.BAD_REQUEST,
    ErrorCode.INVALID_RECORD: HTTPStatus.BAD_REQUEST,
    ErrorCode.INVALID_TIMESTAMP: HTTPStatus.BAD_REQUEST,
    ErrorCode.MESSAGE_TOO_LARGE: HTTPStatus.BAD_REQUEST,
    ErrorCode.RECORD_LIST_TOO_LARGE: HTTPStatus.BAD_REQUEST,
    ErrorCode.INVALID_CONFIG: HTTPStatus.BAD_REQUEST,
    ErrorCode.INVALID_PARTITIONS: HTTPStatus.BAD_REQUEST,
    ErrorCode.INVALID_REPLICATION_FACTOR: HTTPStatus.BAD_REQUEST,
    ErrorCode.INVALID_REQUEST: HTTPStatus.BAD_REQUEST,
}


def as_http(error: KafkaError) -> HttpError:
    """Return an error of Kafka as an answer; those that may pass by themselves are 409."""
    return HttpError(_STATUSES.get(error.code, HTTPStatus.CONFLICT), str(error))
