"""The first error of an answer, as the log of requests and the trace show it."""

from __future__ import annotations

from typing import Any

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.message import Message


def first_error(response: Any) -> str | None:
    """Return the name of the first error code that is not 0, anywhere in an answer."""
    code = getattr(response, "error_code", 0) or getattr(response, "partition_error_code", 0)
    if code:
        return error_name(code)
    if isinstance(response, Message):
        for name in response.__slots__:
            value = getattr(response, name)
            for part in value if isinstance(value, list) else (value,):
                error = first_error(part)
                if error is not None:
                    return error
    return None


def error_name(code: int) -> str:
    """Return Kafka's name of an error; a number that Kafka does not have stays a number."""
    error = ErrorCode(code)
    return error.name if error == code else f"error {code}"
