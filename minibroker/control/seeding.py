"""A seed in the body of a request, loaded like one in a file."""

from __future__ import annotations

import asyncio
import tempfile
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final

from minibroker.control.messages import HttpError
from minibroker.seeds.errors import SeedError
from minibroker.seeds.load import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.broker.app import Broker
    from minibroker.seeds.load import LoadedSeed

JSON_LINES: Final = "application/x-ndjson"
BYTES: Final = "application/octet-stream"
BODY_TYPES: Final = (JSON_LINES, "application/yaml", BYTES)
"""The types that openapi.json has; some generators of clients know only bytes."""
_ENDINGS: Final = {
    JSON_LINES: ".jsonl",
    BYTES: ".jsonl",
    "application/jsonl": ".jsonl",
    "application/json": ".jsonl",
    "application/x-www-form-urlencoded": ".jsonl",  # curl says so where nobody does
    "application/yaml": ".yaml",
    "application/x-yaml": ".yaml",
    "text/yaml": ".yaml",
}


async def load_body(
    body: bytes | bytearray, content_type: str, brokers: Sequence[Broker]
) -> LoadedSeed:
    """Load a seed. Raises HttpError, KafkaError."""
    ending = _ENDINGS.get(content_type.lower())
    if ending is None:
        raise HttpError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"Content-Type is {content_type:.100}, expected {JSON_LINES} or application/yaml",
        )
    if not body:
        raise HttpError(HTTPStatus.BAD_REQUEST, "the body is empty, expected a seed")
    # Made, written and removed in threads: files of some megabytes take milliseconds.
    directory = await asyncio.to_thread(tempfile.TemporaryDirectory, prefix="minibroker-seed-")
    try:
        file = Path(directory.name) / f"seed{ending}"
        await asyncio.to_thread(file.write_bytes, body)
        return await load(file, brokers, name="the body")
    except SeedError as error:
        raise HttpError(HTTPStatus.BAD_REQUEST, str(error)) from None
    finally:
        await asyncio.to_thread(directory.cleanup)
