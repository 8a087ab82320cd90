"""Requests that the registry of another broker answers: the one that leads `_schemas`.

Each registry writes its URL to the metadata tree, at `/minibroker/registries/BROKER`. A request
that is forwarded carries `X-Forward`, as Confluent's registries send it, and is not forwarded
again. Answers to writes carry the end of the topic, so that the registry that forwards them can
wait until it has read as far.
"""

from __future__ import annotations

import asyncio
import ssl
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode, urlsplit

import h11

from minibroker.broker.cluster.tree import NoNode, ensure_node
from minibroker.control.messages import Response
from minibroker.kafka.errors import MinibrokerError
from minibroker.registry.errors import forward_failed, has_no_leader

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.cluster.tree import Tree
    from minibroker.control.messages import HttpRequest

FORWARDED: Final = "x-forward"
OFFSET: Final = "x-minibroker-offset"
"""Name of the header with the end of the topic behind a write."""
URLS: Final = "/minibroker/registries"
TIMEOUT_S: Final = 15.0
"""A change is written, replicated and answered in less."""
ANSWER_BYTES_MAX: Final = 64 << 20
_PASSED_ON: Final = ("accept", "authorization", "content-type")
_PIECE_BYTES: Final = 64 << 10


async def publish(tree: Tree, broker_id: int, url: str) -> None:
    """Write the URL of a broker's registry to the tree. Raises CoordinationError."""
    path = f"{URLS}/{broker_id}"
    await ensure_node(tree, path)
    await tree.set(path, url.encode())


async def withdraw(tree: Tree, broker_id: int) -> None:
    """Remove the URL of a broker's registry from the tree. Raises CoordinationError."""
    try:
        await tree.delete(f"{URLS}/{broker_id}")
    except NoNode:
        return


class Forwarding:
    """The way from one registry to those of other brokers. Owned by the loop."""

    def __init__(self, tls: Callable[[], ssl.SSLContext]) -> None:
        """`tls`: returns the context of connections to URLs of https."""
        self._tls = tls

    async def send(
        self, tree: Tree, broker_id: int, request: HttpRequest, body: bytes | bytearray
    ) -> Response:
        """Return the answer of another broker's registry. Raises RegistryError: 50003, 50004."""
        if FORWARDED in request.headers:
            raise has_no_leader("the leader of the topic _schemas is changing: try again")
        if broker_id < 0:
            raise has_no_leader("the topic _schemas has no leader now: try again")
        url = await self._url(tree, broker_id)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await self._exchange(url, request, body)
        except (OSError, ValueError, h11.ProtocolError, asyncio.IncompleteReadError) as error:
            raise forward_failed(
                f"the registry of broker {broker_id} at {url} does not answer:"
                f" {error or type(error).__name__}"
            ) from None

    async def _url(self, tree: Tree, broker_id: int) -> str:
        """Raises RegistryError."""
        try:
            data, _ = await tree.get(f"{URLS}/{broker_id}")
        except NoNode:
            raise has_no_leader(
                f"broker {broker_id} leads the topic _schemas and has no registry: start it with"
                " --registry, or have another broker lead the topic"
            ) from None
        except MinibrokerError as error:
            raise forward_failed(f"the metadata cannot be read: {error}") from None
        return data.decode("ascii", "replace")

    async def _exchange(self, url: str, request: HttpRequest, body: bytes | bytearray) -> Response:
        """Raises OSError, h11.ProtocolError; ValueError for a URL that is none."""
        parts = urlsplit(url)
        reader, writer = await asyncio.open_connection(
            parts.hostname,
            parts.port,
            ssl=self._tls() if parts.scheme == "https" else None,
        )
        try:
            connection = h11.Connection(h11.CLIENT)
            headers = [
                ("Host", parts.netloc),
                ("Content-Length", str(len(body))),
                ("Connection", "close"),
                (FORWARDED, "true"),
                *((name, request.headers[name]) for name in _PASSED_ON if name in request.headers),
            ]
            query = f"?{urlencode(request.query)}" if request.query else ""
            head = h11.Request(
                method=request.method, target=f"{request.path}{query}", headers=headers
            )
            for event in (head, h11.Data(bytes(body)), h11.EndOfMessage()):
                writer.write(connection.send(event) or b"")
            await writer.drain()
            return await _read_answer(connection, reader)
        finally:
            writer.close()


async def _read_answer(connection: h11.Connection, reader: asyncio.StreamReader) -> Response:
    """Raises OSError, h11.ProtocolError."""
    status, body = HTTPStatus.BAD_GATEWAY.value, bytearray()
    headers: dict[str, str] = {}
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(_PIECE_BYTES))
        elif isinstance(event, h11.Response):
            status = event.status_code
            headers = {name.decode(): value.decode("latin-1") for name, value in event.headers}
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > ANSWER_BYTES_MAX:
                raise OSError(f"its answer is larger than {ANSWER_BYTES_MAX} bytes")
        else:
            break
    content_type = headers.get("content-type", "")
    offset = ((OFFSET, headers[OFFSET]),) if OFFSET in headers else ()
    return Response(status, body, content_type, offset)
