"""The settings of a producer that the tasks' own client takes, or why it does not.

    SinkOptions.settings ──producer_settings──► ProducerSettings ──► wire_transaction
                                   └──────────► UnservedError: librdkafka writes instead

Each setting means what librdkafka's documentation says. Without `message.max.bytes` the topic's own
`max.message.bytes` bounds a record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.client.produce import IN_FLIGHT_MAX, ProduceLimits
from minibroker.client.settings import ClientSettings, UnservedError, wire_settings
from minibroker.kafka.records.compression import CODEC_IDS, SNAPPY
from minibroker.pipeline.kafka.sink.encoding import RECORDS_MAX
from minibroker.pipeline.kafka.sink.options import RECORD_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping

BYTES_MAX: Final = 1_000_000
"""librdkafka's message.max.bytes and batch.size: bytes of a batch."""

_WITHOUT_EFFECT: Final = frozenset(
    {
        # Of a queue of single records, which there is none here: what waits is what was sent.
        *("linger.ms", "queue.buffering.max.ms", "queue.buffering.max.messages"),
        *("queue.buffering.max.kbytes", "delivery.report.only.error"),
    }
)
_READ: Final = frozenset(
    {
        *("transaction.timeout.ms", "message.timeout.ms", "delivery.timeout.ms", "partitioner"),
        *("compression.type", "compression.codec", "compression.level"),
        *("message.max.bytes", "batch.size", "batch.num.messages"),
        *("max.in.flight", "max.in.flight.requests.per.connection"),
    }
)


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
    """Return the settings of the tasks' own producer. Raises UnservedError."""
    own = {name: str(settings[name]) for name in settings if name in _READ}
    left = {
        name: value
        for name, value in settings.items()
        if name not in _READ and name not in _WITHOUT_EFFECT
    }
    if own["partitioner"] != "murmur2_random":
        raise UnservedError(f"partitioner {own['partitioner']} is librdkafka's alone")
    transaction_ms = _number(own, ("transaction.timeout.ms",), 0)
    patience_ms = _number(own, ("message.timeout.ms", "delivery.timeout.ms"), 0) or transaction_ms
    request_bytes = _number(own, ("message.max.bytes",), BYTES_MAX)
    record_bytes = _number(own, ("message.max.bytes",), RECORD_BYTES_MAX)
    in_flight = _number(
        own, ("max.in.flight", "max.in.flight.requests.per.connection"), IN_FLIGHT_MAX
    )
    codec = CODEC_IDS.get(own.get("compression.type", own.get("compression.codec", "none")))
    if codec is None:
        raise UnservedError("compression.type is no codec of Kafka")
    return ProducerSettings(
        connection=wire_settings(left),
        limits=ProduceLimits(
            in_flight=max(1, min(in_flight, IN_FLIGHT_MAX)),
            request_bytes=request_bytes,
            patience_s=patience_ms / 1000,
        ),
        transaction_timeout_ms=transaction_ms,
        codec=codec,
        level=_level(own, codec),
        batch_bytes=min(request_bytes, _number(own, ("batch.size",), BYTES_MAX)),
        batch_records=min(RECORDS_MAX, _number(own, ("batch.num.messages",), RECORDS_MAX)),
        record_bytes=record_bytes,
    )


def _level(own: Mapping[str, str], codec: int) -> int | None:
    text = own.get("compression.level", "-1").strip()
    if text == "-1" or codec == SNAPPY:
        return None
    return _number(own, ("compression.level",), 0)


def _number(own: Mapping[str, str], names: tuple[str, ...], default: int) -> int:
    """Return the value of the setting that has one of these names. Raises UnservedError."""
    for name in names:
        if name in own:
            text = own[name].strip()
            if not text.isdecimal():
                raise UnservedError(f"setting {name} is {text!r}, which is no number")
            return int(text)
    return default
