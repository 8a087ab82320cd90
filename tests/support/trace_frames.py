"""Frames for the trace: those of real clients from `tests/golden/wire`, and random ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minibroker.kafka.protocol.header import response_header, write_request_header
from minibroker.kafka.protocol.primitives import Writer
from minibroker.trace.decode import Frames, decode
from minibroker.trace.exchange import Exchange
from tests.support.message_bytes import request_bytes
from tests.support.protocol_values import ValueMaker
from tests.support.reference_codec import MessageSpec, encode, load_specs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.kafka.protocol.api_keys import Api

SPECS = {spec.class_name: spec for spec in load_specs()}

WIRE = Path(__file__).parents[1] / "golden" / "wire"
START_MS = 1_700_000_000_000.0
EXCHANGE = Exchange(
    number=1,
    connection=1,
    client_address="127.0.0.1:50000",
    broker="127.0.0.1:9092",
    api="Produce",
    version=9,
    correlation_id=7,
    client_id="shop",
    at_ms=1_700_000_000_123.9,
    duration_ms=3.21,
    request_bytes=10,
    answer_bytes=10,
    subject="orders-0",
    error=None,
)


def recorded_frames(broker: str = "3.9.1") -> list[Frames]:
    """Return the exchanges with a release of Kafka, one each ms, on one connection a client."""
    rows = json.loads((WIRE / f"kafka-{broker}.json").read_text())
    clients = sorted({row["client"] for row in rows})
    return [
        Frames(
            number=number,
            connection=clients.index(row["client"]) + 1,
            client_address=f"127.0.0.1:{50_000 + clients.index(row['client'])}",
            broker="127.0.0.1:9092",
            at_ms=START_MS + number,
            duration_ms=0.5,
            request=bytes.fromhex(row["request"]),
            answer=None if row["answer"] is None else bytes.fromhex(row["answer"]),
        )
        for number, row in enumerate(rows, 1)
    ]


def numbered(exchanges: list[Frames]) -> list[Frames]:
    """Return the exchanges with their numbers as correlation ids, as on one connection."""
    result: list[Frames] = []
    for frames in exchanges:
        number = frames.number.to_bytes(4, "big")
        request, answer = bytes(frames.request), frames.answer
        changed = None if answer is None else number + bytes(answer[4:])
        result.append(frames._replace(request=request[:4] + number + request[8:], answer=changed))
    return result


def random_frames(api: Api, seed: int) -> Iterator[Frames]:
    """Yield an exchange of random values for each version, encoded by the slow codec."""
    request, answer = SPECS[f"{api.name}Request"], SPECS[f"{api.name}Response"]
    for version in range(api.min_version, api.max_version + 1):
        writer = Writer()
        write_request_header(writer, api.key, version, 1, "client\n\u202e")
        yield Frames(
            number=version + 1,
            connection=1,
            client_address="127.0.0.1:50000",
            broker="127.0.0.1:9092",
            at_ms=START_MS + version,
            duration_ms=0.5,
            request=writer.to_bytes() + _body(request, seed, version),
            answer=response_header(api.key, version, 1) + _body(answer, seed, version),
        )


def _body(spec: MessageSpec, seed: int, version: int) -> bytes:
    return encode(spec, ValueMaker(spec, seed).message(version), version)


def request_frame(message: Any, version: int, correlation_id: int = 7) -> bytes:
    """Return a request of the client `c`."""
    return request_bytes(message, version, correlation_id, "c")


def exchange_of(request: bytes, answer: bytes | None = None, **fields: Any) -> Exchange:
    """Return the exchange of frames without a past."""
    return decode(Frames(1, 1, "127.0.0.1:5", "b:9092", 0.0, 1.25, request, answer, **fields), {})
