"""The settings of a producer, as the values that it works with.

    SinkOptions.settings ──producer_settings──► ProducerSettings ──► transaction

Without `max.request.size` the topic's own `max.message.bytes` bounds a record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.client.produce import IN_FLIGHT_MAX, ProduceLimits
from minibroker.kafka.records.compression import CODEC_IDS, SNAPPY
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.client_settings import connection_settings
from minibroker.pipeline.kafka.sink.encoding import RECORDS_MAX
from minibroker.pipeline.kafka.sink.options import RECORD_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.client.settings import ClientSettings

BYTES_MAX: Final = 1_000_000
"""Bytes of a batch."""

_WITHOUT_EFFECT: Final = frozenset(
    {
        # Of a queue of single records, which there is none here: what waits is what was sent.
        *("buffer.memory", "linger.ms", "max.block.ms", "metadata.max.idle.ms"),
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
    }
)
_LEVELS: Final = {f"compression.{codec}.level" for codec in CODEC_IDS}
_READ: Final = _LEVELS | {
    *("transaction.timeout.ms", "delivery.timeout.ms", "partitioner"),
    *("compression.type", "compression.level", "max.request.size", "batch.size"),
    *("batch.num.messages", "max.in.flight.requests.per.connection"),
}


class ProducerSettings(NamedTuple):
    """The settings of one task's producer."""

    connection: ClientSettings
    limits: ProduceLimits
    transaction_timeout_ms: int
    codec: int
    """Id of `records.compression`."""
    level: int | None
    """The codec's own level, None: its default."""
    batch_bytes: int
    """Records of a batch, before compression, unless one alone is larger."""
    batch_records: int
    record_bytes: int
    """Most bytes of a record."""


def producer_settings(settings: Mapping[str, Any]) -> ProducerSettings:
    """Return the values of a producer's settings. Raises PipelineError for a wrong one."""
    own = {name: str(settings[name]) for name in settings if name in _READ}
    client_settings = {
        name: value
        for name, value in settings.items()
        if name not in _READ and name not in _WITHOUT_EFFECT
    }
    if own["partitioner"] != "murmur2_random":
        raise PipelineError(
            f"partitioner={own['partitioner']}: expected murmur2_random, which chooses as Java's "
            "clients do; for another partition fill the column 'partition'"
        )
    transaction_ms = _number(own, "transaction.timeout.ms", 0)
    patience_ms = _number(own, "delivery.timeout.ms", 0) or transaction_ms
    request_bytes = _number(own, "max.request.size", BYTES_MAX)
    in_flight = _number(own, "max.in.flight.requests.per.connection", IN_FLIGHT_MAX)
    codec_name = own.get("compression.type", "none")
    if codec_name not in CODEC_IDS:
        raise PipelineError(
            f"compression.type={codec_name}: expected one of {', '.join(CODEC_IDS)}"
        )
    return ProducerSettings(
        connection=connection_settings(client_settings),
        limits=ProduceLimits(
            in_flight=max(1, min(in_flight, IN_FLIGHT_MAX)),
            request_bytes=request_bytes,
            patience_s=patience_ms / 1000,
        ),
        transaction_timeout_ms=transaction_ms,
        codec=CODEC_IDS[codec_name],
        level=_level(own, codec_name),
        batch_bytes=min(request_bytes, _number(own, "batch.size", BYTES_MAX)),
        batch_records=min(RECORDS_MAX, _number(own, "batch.num.messages", RECORDS_MAX)),
        record_bytes=_number(own, "max.request.size", RECORD_BYTES_MAX),
    )


def _level(own: Mapping[str, str], codec_name: str) -> int | None:
    name = "compression.level"
    if f"compression.{codec_name}.level" in own:
        name = f"compression.{codec_name}.level"
    if own.get(name, "-1").strip() == "-1" or CODEC_IDS[codec_name] == SNAPPY:
        return None
    return _number(own, name, 0)


def _number(own: Mapping[str, str], name: str, default: int) -> int:
    text = own.get(name, str(default)).strip()
    if not text.isdecimal():
        raise PipelineError(f"setting {name} is {text!r}, which is no number")
    return int(text)
