"""The offsets of a log agree with each other, whatever a checkpoint says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minibroker.broker.storage.partition_log import clamped

OFFSETS = st.integers(-1, 40)


@given(start=OFFSETS, length=st.integers(0, 20), recovery=OFFSETS, watermark=OFFSETS, clean=OFFSETS)
def test_offsets_in_the_middle_are_between_start_and_end(
    start: int, length: int, recovery: int, watermark: int, clean: int
) -> None:
    extent = clamped(
        log_start_offset=start,
        recovery_point=recovery,
        high_watermark=watermark,
        log_end_offset=start + length,
        clean_offset=clean,
    )
    assert extent.log_start_offset == start
    assert extent.log_end_offset == start + length
    assert start <= extent.recovery_point <= start + length
    assert start <= extent.high_watermark <= start + length
    assert extent.clean_offset is not None
    assert extent.clean_offset <= start + length
    if start <= recovery <= start + length:
        assert extent.recovery_point == recovery


def test_a_log_that_was_never_compacted_has_no_clean_offset() -> None:
    extent = clamped(
        log_start_offset=0, recovery_point=0, high_watermark=0, log_end_offset=0, clean_offset=None
    )
    assert extent.clean_offset is None


def test_a_log_cannot_end_before_it_starts() -> None:
    with pytest.raises(ValueError, match="a log from 5 cannot end at 4"):
        clamped(
            log_start_offset=5,
            recovery_point=0,
            high_watermark=0,
            log_end_offset=4,
            clean_offset=None,
        )
