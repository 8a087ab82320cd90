"""The schema registry of this process, as the control API shows it.

    GET /registry/subjects ─► Access of this API ─► the registry's own API: GET /subjects
    0x00, schema id (int32), payload: a value ─► the decoder of its schema ─► JSON

The registry sets `begin` when it begins to serve. Paths, bodies and answers are its own.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from functools import partial
from http import HTTPStatus
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

import msgspec

from minibroker.control.messages import EventStream, HttpError, HttpRequest
from minibroker.control.record_views import text_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from minibroker.control.messages import Response, Work
    from minibroker.control.record_views import RecordForm, RecordsText
    from minibroker.control.schema_decoding import ValueDecoder
    from minibroker.rig.topic_records import ReadBatches

    Run = Callable[[bytearray], Awaitable[Response | EventStream]]

PREFIX: Final = "/registry"
NO_REGISTRY: Final = "no schema registry runs here: start one with --registry HOST:PORT"
REFUSED: Final = (
    "another broker's schema registry leads _schemas, and refuses the login of this broker's one:"
    " start both with the same --registry-user @FILE"
)
DECODERS_MAX: Final = 200
"""Schemas that are kept for the next records."""
AT_ONCE_MAX: Final = 20
"""Schemas that one look at records reads."""
REFERENCES_MAX: Final = 20
"""Schemas that one schema refers to, at any depth; one with more is not decoded."""


_HEAD: Final = Struct(">bi")
_MAGIC: Final = 0


def is_of_registry(request: HttpRequest) -> bool:
    """Return whether a request is one for the registry."""
    return request.path.startswith(f"{PREFIX}/")


class ThreadSchemas:
    """The decoders of one look at records: a thread uses them, and says which ones it lacks."""

    def __init__(self, decoders: dict[int, ValueDecoder | None]) -> None:
        self._decoders = decoders
        self.missing: dict[int, None] = {}
        """Ids of schemas that no decoder was looked for yet, in the order of the records."""

    def decoded(self, data: bytes) -> tuple[int | None, Any]:
        """Return the id of the schema of a value, None: it is in no such frame; and the value, None
        where there is no decoder, or the bytes are not of the schema.
        """
        if len(data) < _HEAD.size:
            return None, None
        magic, schema_id = _HEAD.unpack_from(data)
        if magic != _MAGIC or schema_id <= 0:
            return None, None
        if schema_id not in self._decoders:
            self.missing[schema_id] = None
            return schema_id, None
        decoder = self._decoders[schema_id]
        if decoder is None:
            return schema_id, None
        try:
            return schema_id, decoder.decode(data[_HEAD.size :])
        except ValueError:  # of another schema, or no value at all: it is shown as bytes
            return schema_id, None


class RegistryView:
    """The registry of one broker. The loop owns it."""

    def __init__(self) -> None:
        self.begin: Callable[[HttpRequest], Work] | None = None
        """Returns the work for a request of the registry's paths; None: there is no registry."""
        self._decoders: OrderedDict[int, ValueDecoder | None] = OrderedDict()
        """Schema id → decoder of its values, None where there is none; last used last."""

    @property
    def is_shown(self) -> bool:
        """Return whether there is a registry."""
        return self.begin is not None

    def work(self, request: HttpRequest) -> Work:
        """Return the work for a request under `/registry`. Raises HttpError."""
        headers = {
            name: value
            for name, value in request.headers.items()
            if name not in ("authorization", "origin")  # they were for this API
        }
        work = self._begin(
            request._replace(path=request.path.removeprefix(PREFIX), headers=headers)
        )
        return work._replace(run=partial(_let_in, work.run))

    def _begin(self, request: HttpRequest) -> Work:
        if self.begin is None:
            raise HttpError(HTTPStatus.NOT_FOUND, NO_REGISTRY)
        return self.begin(request)

    # Values of records.

    async def text(
        self, batches: ReadBatches, limit: int, bytes_max: int, form: RecordForm, scan_max: int
    ) -> RecordsText:
        """Do `text_of` in a thread; with the format `registry` values are decoded by their schemas.
        Raises CorruptionError, HttpError.
        """
        if form.format != "registry" or self.begin is None:
            return await asyncio.to_thread(text_of, batches, limit, bytes_max, form, scan_max)
        for is_last in (False, True):
            schemas = ThreadSchemas(dict(self._decoders))
            decoding = form._replace(schemas=schemas)
            text = await asyncio.to_thread(text_of, batches, limit, bytes_max, decoding, scan_max)
            if is_last or not schemas.missing:
                break
            await self._load(schemas.missing)
        return text

    async def _load(self, schema_ids: Iterable[int]) -> None:
        """Have decoders for some schemas, the first ones of them."""
        for schema_id in list(schema_ids)[:AT_ONCE_MAX]:
            self._decoders[schema_id] = await self._decoder(schema_id)
            while len(self._decoders) > DECODERS_MAX:
                self._decoders.popitem(last=False)

    async def _decoder(self, schema_id: int) -> ValueDecoder | None:
        """Return the decoder of a schema; None where it is unknown, or of a kind that is not
        decoded.
        """
        from minibroker.control.schema_decoding import decoder_of  # noqa: PLC0415  libraries of --registry

        schema = await self._ask(f"/schemas/ids/{schema_id}")
        if schema is None:
            return None
        texts: list[str] = []
        if not await self._references(schema, texts, set()):
            return None
        kind = schema.get("schemaType", "AVRO")
        return await asyncio.to_thread(decoder_of, kind, schema["schema"], texts)

    async def _references(self, schema: Any, texts: list[str], names: set[str]) -> bool:
        """Add the texts of the schemas that a schema refers to, each behind those that it needs;
        return whether all of them are there.
        """
        for reference in schema.get("references", ()):
            if reference["name"] in names:
                continue
            names.add(reference["name"])
            subject, version = reference["subject"], reference["version"]
            other = await self._ask(f"/subjects/{_quoted(subject)}/versions/{version}")
            if other is None or len(names) > REFERENCES_MAX:
                return False
            if not await self._references(other, texts, names):
                return False
            texts.append(other["schema"])
        return True

    async def _ask(self, path: str) -> Any:
        """Return an answer of the registry, None where it has none. Raises HttpError where it
        cannot say.
        """
        try:
            work = self._begin(HttpRequest("GET", path, {}, {}))
            response = await _let_in(work.run, bytearray())
        except HttpError as error:
            if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                raise
            return None
        if isinstance(response, EventStream) or response.status != HTTPStatus.OK:
            return None
        return msgspec.json.decode(response.body)


async def _let_in(run: Run, body: bytearray) -> Response | EventStream:
    """Return the answer of a registry. Raises HttpError, also where the one that it forwarded to
    refuses its login: a login of the caller would be no help, and a page would ask for one.
    """
    response = await run(body)
    if isinstance(response, EventStream) or response.status != HTTPStatus.UNAUTHORIZED:
        return response
    raise HttpError(HTTPStatus.BAD_GATEWAY, REFUSED)


def _quoted(subject: str) -> str:
    from urllib.parse import quote  # noqa: PLC0415  for schemas with references only

    return quote(subject, safe="")
