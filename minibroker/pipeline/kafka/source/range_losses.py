"""Sentences about a range that cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from minibroker.pipeline.offsets import OffsetRange


def rest_of(span: OffsetRange, position: int) -> str:
    """Return the part of a range that is not read yet."""
    return f"{span.topic}-{span.partition} from offset {position} to before offset {span.end}"


def loss(span: OffsetRange, position: int, reason: str) -> str:
    """Return the sentence for records that are gone; `reason`: the broker's error."""
    return (
        f"records of {rest_of(span, position)} are gone ({reason}): they were deleted by "
        "retention, or the topic was made anew; start behind them, or set failOnDataLoss=false to "
        "go on without them"
    )


def made_anew(span: OffsetRange, position: int) -> str:
    """Return the sentence for a topic that has another id than the one that the job reads."""
    return (
        f"records of {rest_of(span, position)} are gone: the topic was made anew; give the same "
        "command again, which says how to go on"
    )


def silent(span: OffsetRange, position: int, silent_s: float, last_error: str) -> str:
    """Return the sentence for a broker that sends nothing; `last_error` may be empty."""
    why = f"; the client's last word: {last_error}" if last_error else ""
    return (
        f"nothing came for {silent_s:.0f} s (kafkaConsumer.pollTimeoutMs) while reading "
        f"{rest_of(span, position)}{why}; is the broker up, and does the topic still "
        "reach that far?"
    )
