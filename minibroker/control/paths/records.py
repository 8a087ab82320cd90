"""Paths of records, and of seeds, which are records with their topics and groups."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from minibroker.control import shapes
from minibroker.control.bodies import answer
from minibroker.control.messages import EVENT_STREAM, Response
from minibroker.control.operations import NOT_RUNNING, ControlOperation
from minibroker.control.records import (
    TopicReading,
    TopicWriting,
    part_of,
    records_lines,
    records_text,
)
from minibroker.control.seeding import BODY_TYPES, BYTES, JSON_LINES, load_body
from minibroker.control.tails import TopicTail

if TYPE_CHECKING:
    from minibroker.control.messages import EventStream
    from minibroker.control.operations import ControlCall
    from minibroker.control.scope import ControlScope

RECORDS_BYTES_MAX: Final = 256 << 10
SEED_BYTES_MAX: Final = 16 << 20


async def read_records(scope: ControlScope, call: ControlCall) -> Response:
    """Return records of a topic."""
    scope.check_running()
    reading = TopicReading(scope.nodes, call.part, call.query, scope.registry)
    if call.query.wait_ms:
        records, positions = await scope.waiting.run(call.request, reading.run())
    else:
        records, positions = await reading.run()
    if JSON_LINES in call.request.headers.get("accept", ""):
        lines = await asyncio.to_thread(records_lines, records)
        return Response(HTTPStatus.OK, lines, JSON_LINES)
    text = await asyncio.to_thread(records_text, records, positions)
    return Response(HTTPStatus.OK, text)


async def record_part(scope: ControlScope, call: ControlCall) -> Response:
    """Return the bytes of a key or value."""
    scope.check_running()
    query: shapes.PartQuery = call.query
    data = await part_of(scope.nodes, call.part, query)
    name = f"{call.part}-{query.partition}-{query.offset}.{query.part}"
    headers = (
        ("Content-Disposition", f'attachment; filename="{name}"'),
        ("X-Content-Type-Options", "nosniff"),
        ("Content-Security-Policy", "sandbox"),
    )
    return Response(HTTPStatus.OK, data, BYTES, headers)


async def live_records(scope: ControlScope, call: ControlCall) -> EventStream:
    """Stream the records that come."""
    scope.check_running()
    return scope.streams.open(
        "records", TopicTail(scope.nodes, call.query, scope.registry).pieces()
    )


async def write_records(scope: ControlScope, call: ControlCall) -> Response:
    """Write records of a topic."""
    scope.check_running()
    return answer(await TopicWriting(scope.nodes, call.part).run(call.body))


async def load_seed(scope: ControlScope, call: ControlCall) -> Response:
    """Load a seed."""
    scope.check_running()
    kind = call.request.headers.get("content-type", JSON_LINES).partition(";")[0].strip()
    loaded = await load_body(call.body, kind, [node.app for node in scope.nodes.active])
    return answer(
        shapes.LoadedView(
            topics=list(loaded.topics), records=loaded.records, groups=list(loaded.groups)
        )
    )


OPERATIONS: Final = (
    ControlOperation(
        "read_records",
        "GET",
        "/topics/{topic}/records",
        "Records of a topic, from an offset or a time on, or the last ones",
        read_records,
        shapes.RecordsView,
        query=shapes.RecordsQuery,
        failures=(
            HTTPStatus.NOT_FOUND,
            HTTPStatus.CONFLICT,
            HTTPStatus.TOO_MANY_REQUESTS,
            *NOT_RUNNING,
        ),
        has_data=True,
    ),
    ControlOperation(
        "record_part",
        "GET",
        "/topics/{topic}/part",
        "The bytes of a record's value or key, as a file",
        record_part,
        None,
        query=shapes.PartQuery,
        media_type=BYTES,
        failures=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, *NOT_RUNNING),
        has_data=True,
    ),
    ControlOperation(
        "live_records",
        "GET",
        "/live/records",
        "The newest records of a topic as they come, as a stream of events",
        live_records,
        None,
        query=shapes.TailQuery,
        media_type=EVENT_STREAM,
        failures=(
            HTTPStatus.NOT_FOUND,
            HTTPStatus.CONFLICT,
            HTTPStatus.TOO_MANY_REQUESTS,
            *NOT_RUNNING,
        ),
        has_data=True,
    ),
    ControlOperation(
        "write_records",
        "POST",
        "/topics/{topic}/records",
        "Write records, each as a client with acks=all",
        write_records,
        shapes.WrittenRecords,
        body=shapes.NewRecords,
        raw_body=shapes.RawRecords,
        failures=(
            HTTPStatus.NOT_FOUND,
            HTTPStatus.CONFLICT,
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            *NOT_RUNNING,
            HTTPStatus.GATEWAY_TIMEOUT,
        ),
        body_bytes_max=RECORDS_BYTES_MAX,
    ),
    ControlOperation(
        "load_seed",
        "POST",
        "/seeds",
        "Load a seed: topics, records and offsets, in JSON lines or YAML",
        load_seed,
        shapes.LoadedView,
        body=str,
        body_types=BODY_TYPES,
        failures=(
            HTTPStatus.CONFLICT,
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            *NOT_RUNNING,
        ),
        body_bytes_max=SEED_BYTES_MAX,
    ),
)
