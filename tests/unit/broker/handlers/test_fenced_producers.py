"""The error code that a fenced producer gets."""

from __future__ import annotations

from minibroker.broker.handlers.common.fenced_producers import known_code
from minibroker.kafka.error_codes import ErrorCode


def test_only_versions_that_know_it_hear_producer_fenced() -> None:
    fenced = ErrorCode.PRODUCER_FENCED
    assert known_code(fenced, knows_fenced=True) is fenced
    assert known_code(fenced, knows_fenced=False) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_every_other_code_is_itself() -> None:
    for code in ErrorCode:
        if code is not ErrorCode.PRODUCER_FENCED:
            assert known_code(code, knows_fenced=False) is code
