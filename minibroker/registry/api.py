"""The REST API of the schema registry, as Confluent documents it.

    HttpRequest ─► RegistryApi.begin: RegistryAccess.check, the operation
      a read   ─► topic.read ─► an answer from the state
      a change ─► at the leader: topic.all_visible ─► `changing` ─► topic.write ─► the answer
                  elsewhere: Forwarding.send ─► topic.reaches ─► the answer

Changes come one after the other: each one decides on everything that is in the topic.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import msgspec

from minibroker import __version__
from minibroker.broker.slices import TimeSlice, collect, run_with_pauses
from minibroker.broker.storage.tasks import quick_switches
from minibroker.control.messages import JSON, Response, Work
from minibroker.kafka.errors import MinibrokerError
from minibroker.registry import listing
from minibroker.registry.bodies import (
    LATEST,
    ConfigBody,
    ModeBody,
    PostedSchema,
    SchemaBody,
    config_fields,
    flag,
    id_of,
    mode_of,
    number,
    parse_body,
    schema_of,
    version_of,
)
from minibroker.registry.changing import (
    Revision,
    check_registers,
    delete_config,
    delete_mode,
    delete_subject,
    delete_version,
    register,
    set_config,
    set_mode,
)
from minibroker.registry.checking import resolve
from minibroker.registry.entries import PROTOBUF, VersionEntry, described
from minibroker.registry.errors import (
    CONTENT_TYPE,
    NO_LEADER,
    UNPROCESSABLE,
    LostLeadershipError,
    RegistryError,
    backend_failed,
    has_no_leader,
    has_no_level,
    has_no_mode,
    is_incompatible,
    no_schema,
    no_subject,
    no_version,
)
from minibroker.registry.forwarding import FORWARDED, OFFSET
from minibroker.registry.levels import LEVELS
from minibroker.registry.listing import Page, Search
from minibroker.registry.operations import (
    BODY_BYTES_MAX,
    SMALL_BODY_BYTES,
    Paths,
    RegistryCall,
    RegistryOperation,
)
from minibroker.registry.state import IMPORT
from minibroker.registry.subjects import (
    DEFAULT,
    EVERY_CONTEXT,
    check_subject,
    context_of,
    prefix_of,
    qualified,
)
from minibroker.registry.topic import Elsewhere

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from minibroker.broker.slices import Steps
    from minibroker.control.messages import HttpRequest
    from minibroker.registry.access import RegistryAccess
    from minibroker.registry.checking import ResolvedSchema, SchemaChecks
    from minibroker.registry.entries import SchemaText
    from minibroker.registry.forwarding import Forwarding
    from minibroker.registry.state import RegistryState
    from minibroker.registry.topic import SchemasTopic

logger = logging.getLogger(__name__)

TRIES: Final = 3
"""So often a change begins again when the leader of the topic moves meanwhile."""
CONTENT_TYPES: Final = (
    CONTENT_TYPE,
    "application/vnd.schemaregistry+json",
    JSON,
    "application/octet-stream",
)


class RegistryApi:
    """The API of one broker's registry. The loop owns it."""

    def __init__(
        self,
        topic: SchemasTopic,
        checks: SchemaChecks,
        access: RegistryAccess,
        forwarding: Forwarding,
    ) -> None:
        self._topic = topic
        self._checks = checks
        self._access = access
        self._forwarding = forwarding
        self._changing = asyncio.Lock()

    def begin(self, request: HttpRequest) -> Work:
        """Return the work for a request whose body is not read yet. Raises RegistryError."""
        self._access.check(request)
        return self._begin(request)

    def begin_within(self, request: HttpRequest) -> Work:
        """Do `begin` for a caller that another API of this process has let in."""
        return self._begin(self._access.signed(request))

    def _begin(self, request: HttpRequest) -> Work:
        operation, parts, context = _PATHS.find(request)
        has_body = request.method in ("POST", "PUT")
        if has_body:
            _check_content_type(request)
        run = partial(self._run, operation, request, parts, context)
        return Work(BODY_BYTES_MAX if has_body else SMALL_BODY_BYTES, run)

    async def _run(
        self,
        operation: RegistryOperation,
        request: HttpRequest,
        parts: dict[str, str],
        context: str,
        body: bytearray,
    ) -> Response:
        call = RegistryCall(request, parts, context, body)
        try:
            if operation.is_write:
                response = await self._write(operation, call)
            else:
                response = await self._read(operation, call)
        except MinibrokerError as error:
            raise backend_failed(str(error)) from None
        except RecursionError:  # in a step behind the decoder, which has just taken the body
            raise RegistryError(UNPROCESSABLE, "the body is nested too deep") from None
        return response

    # Where a request is answered.

    async def _read(self, operation: RegistryOperation, call: RegistryCall) -> Response:
        state = await self._topic.read()
        if isinstance(state, Elsewhere):
            if not state.is_followed:
                return await self._forward(state, call)
            response = await self._forward_if_possible(state, call)
            if response is not None:
                return response
            state = await self._topic.latest()
        return await _answer(await operation.run(self, call, state), call)

    async def _write(self, operation: RegistryOperation, call: RegistryCall) -> Response:
        for _ in range(TRIES):
            leader = await self._topic.leader()
            if isinstance(leader, Elsewhere):
                forwarded = await self._forward_write(leader, call)
                if forwarded is None:
                    continue
                response = forwarded
                offset = dict(response.headers).get(OFFSET, "")
                if offset.isdecimal():
                    await self._topic.reaches(int(offset))
                return response._replace(headers=())
            try:
                async with self._changing:
                    state = await self._topic.all_visible(leader)
                    change = await operation.run(self, call, state)
                    if change.entries:
                        await self._topic.write(leader, change.entries)
            except LostLeadershipError:
                continue
            response = await _answer(change.answer, call)
            return response._replace(headers=((OFFSET, str(leader.high_watermark)),))
        raise has_no_leader("the leader of the topic _schemas is changing: try again")

    async def _forward_write(self, leader: Elsewhere, call: RegistryCall) -> Response | None:
        """Return the answer of the leader's registry; None: it has none, and this broker leads by
        now. Raises RegistryError.
        """
        try:
            return await self._forward(leader, call)
        except RegistryError as error:
            has_registry = error.code != NO_LEADER
            if has_registry or FORWARDED in call.request.headers:
                raise
            if not await self._topic.take_lead():
                raise
            return None

    async def _forward(self, leader: Elsewhere, call: RegistryCall) -> Response:
        tree = self._topic.broker.cluster.tree
        return await self._forwarding.send(tree, leader.broker_id, call.request, call.body)

    async def _forward_if_possible(self, leader: Elsewhere, call: RegistryCall) -> Response | None:
        """Return the answer of the leader's registry, None where it has none."""
        if FORWARDED in call.request.headers:
            return None
        try:
            response = await self._forward(leader, call)
        except RegistryError as error:
            logger.info("the registry answers from what it has: %s", error)
            return None
        return None if response.status >= HTTPStatus.INTERNAL_SERVER_ERROR else response

    # Subjects and versions.

    async def health(self, _call: RegistryCall, _state: RegistryState) -> Any:
        """Answer with an empty object."""
        return {}

    async def subjects(self, call: RegistryCall, state: RegistryState) -> Any:
        """List subjects."""
        steps = listing.subjects(state, _search(call), _page(call))
        return await run_with_pauses(steps)

    async def versions(self, call: RegistryCall, state: RegistryState) -> Any:
        """List the versions of a subject."""
        subject = _subject(call, state)
        steps = listing.numbers(state, subject, _search(call), _page(call))
        numbers = await run_with_pauses(steps)
        if not numbers:
            raise no_subject(subject)
        return numbers

    async def version(self, call: RegistryCall, state: RegistryState) -> Any:
        """Return a version."""
        entry = _version(call, state, deleted=flag(call.query, "deleted"))
        return await self._formatted(call, state, entry.subject, _view(entry), entry.schema)

    async def version_schema(self, call: RegistryCall, state: RegistryState) -> Any:
        """Return the text of a version."""
        entry = _version(call, state, deleted=flag(call.query, "deleted"))
        return _text(entry.schema, call)

    async def referenced_by(self, call: RegistryCall, state: RegistryState) -> Any:
        """List the ids of the schemas that refer to a version."""
        entry = _version(call, state)
        referrers = state.referrers(entry.subject, entry.version)
        ids = await collect(referrer.schema_id for referrer in referrers)
        return sorted(set(ids))

    async def metadata(self, call: RegistryCall, state: RegistryState) -> Any:
        """Return the last version whose metadata have a property."""
        subject = _subject(call, state)
        deleted = flag(call.query, "deleted")
        if state.latest(subject, deleted=deleted) is None:
            raise no_subject(subject)
        key, value = call.query.get("key", ""), call.query.get("value", "")
        turn = TimeSlice()
        for entry in list(reversed(state.subjects[subject].values())):
            if turn.is_over:
                await turn.pause()
            if entry.is_deleted and not deleted:
                continue
            properties = msgspec.json.decode(entry.schema.metadata or "{}").get("properties", {})
            if isinstance(properties, dict) and properties.get(key) == value:
                return _view(entry)
        raise no_schema()

    async def look_up(self, call: RegistryCall, state: RegistryState) -> Any:
        """Return the version of a subject that has a schema."""
        subject = _subject(call, state)
        deleted = flag(call.query, "deleted")
        if state.latest(subject, deleted=deleted) is None:
            raise no_subject(subject)
        posted = await self._posted(call, state, subject)
        schema, _ = await self._canonical(call, state, subject, posted.schema, deleted=deleted)
        entry = state.same(subject, schema, deleted=deleted)
        if entry is None:
            raise no_schema()
        return await self._formatted(call, state, subject, _view(entry), entry.schema)

    async def register(self, call: RegistryCall, state: RegistryState) -> Revision:
        """Add a version to a subject."""
        subject = _subject(call, state)
        check_subject(subject)
        posted = await self._posted(call, state, subject)
        check_registers(state, subject, posted.schema_id)
        schema, resolved = await self._canonical(call, state, subject, posted.schema)
        is_new = state.same(subject, schema) is None
        if is_new and state.mode(subject) != IMPORT:
            level = state.config(subject)["compatibilityLevel"]
            messages = await self._messages(state, resolved, _earlier(state, subject, level), level)
            if messages:
                raise is_incompatible(subject, messages)
        change = register(state, subject, schema, posted.schema_id, posted.version)
        return change._replace(answer={"id": change.answer.schema_id})

    async def delete_subject(self, call: RegistryCall, state: RegistryState) -> Revision:
        """Delete all versions of a subject."""
        permanent = flag(call.query, "permanent")
        steps = delete_subject(state, _subject(call, state), permanent=permanent)
        return await run_with_pauses(steps)

    async def delete_version(self, call: RegistryCall, state: RegistryState) -> Revision:
        """Delete a version of a subject."""
        version = version_of(call.parts["version"])
        permanent = flag(call.query, "permanent")
        return delete_version(state, _subject(call, state), version, permanent=permanent)

    # Schemas.

    async def types(self, _call: RegistryCall, _state: RegistryState) -> Any:
        """List the formats."""
        from minibroker.registry.formats import SCHEMA_TYPES  # noqa: PLC0415  seldom asked for

        return list(SCHEMA_TYPES)

    async def schemas(self, call: RegistryCall, state: RegistryState) -> Any:
        """List versions of all subjects."""
        latest_only = flag(call.query, "latestOnly")
        steps = listing.schemas(state, _search(call), _page(call), latest_only=latest_only)
        entries = await run_with_pauses(steps)
        return lambda: [_view(entry) for entry in entries]

    async def schema(self, call: RegistryCall, state: RegistryState) -> Any:
        """Return the schema of an id."""
        context, schema_id = await run_with_pauses(_id(call, state))
        schema = state.schemas[context, schema_id]
        view = described(schema)
        if flag(call.query, "fetchMaxId"):
            view["maxId"] = state.last_id(context)
        return await self._formatted(call, state, prefix_of(context), view, schema)

    async def schema_text(self, call: RegistryCall, state: RegistryState) -> Any:
        """Return the text of an id."""
        place = await run_with_pauses(_id(call, state))
        return _text(state.schemas[place], call)

    async def schema_subjects(self, call: RegistryCall, state: RegistryState) -> Any:
        """List the subjects that have a schema."""
        places = await run_with_pauses(_places(call, state))
        return lambda: sorted({subject for subject, _ in places})

    async def schema_versions(self, call: RegistryCall, state: RegistryState) -> Any:
        """List the versions that have a schema."""
        places = await run_with_pauses(_places(call, state))
        return lambda: [
            {"subject": subject, "version": version} for subject, version in sorted(places)
        ]

    # Compatibility.

    async def compatibility(self, call: RegistryCall, state: RegistryState) -> Any:
        """Say whether a schema fits a version, or all that its subject's level is about."""
        subject = _subject(call, state)
        level = state.config(subject)["compatibilityLevel"]
        if "version" not in call.parts:
            entries = _earlier(state, subject, level)
        elif state.latest(subject) is None:
            version = version_of(call.parts["version"])
            if version != LATEST:
                raise no_version(version)
            entries = []
        else:
            entries = [_version(call, state)]
        posted = await self._posted(call, state, subject)
        _, resolved = await self._canonical(call, state, subject, posted.schema)
        messages = await self._messages(state, resolved, entries, level)
        verdict: dict[str, Any] = {"is_compatible": not messages}
        if flag(call.query, "verbose"):
            verdict["messages"] = messages
        return verdict

    # Configurations and modes.

    async def config(self, call: RegistryCall, state: RegistryState) -> Any:
        """Return a configuration."""
        subject = _scope(call)
        if subject is None or flag(call.query, "defaultToGlobal"):
            return {**state.config(subject), **state.own_config(subject)}
        own = state.own_config(subject)
        if "compatibilityLevel" not in own and not own:
            raise has_no_level(subject)
        return own

    async def set_config(self, call: RegistryCall, state: RegistryState) -> Revision:
        """Set fields of a configuration."""
        fields = config_fields(parse_body(call.body, ConfigBody))
        change = set_config(state, _scope(call), fields)
        answer = dict(change.answer)
        if "compatibilityLevel" in answer:
            answer["compatibility"] = answer.pop("compatibilityLevel")
        return change._replace(answer=answer)

    async def delete_config(self, call: RegistryCall, state: RegistryState) -> Revision:
        """Remove a configuration."""
        return delete_config(state, _scope(call))

    async def mode(self, call: RegistryCall, state: RegistryState) -> Any:
        """Return a mode."""
        subject = _scope(call)
        is_own = subject in state.modes
        if subject is not None and not is_own and not flag(call.query, "defaultToGlobal"):
            raise has_no_mode(subject)
        return {"mode": state.modes[subject] if is_own else state.mode(subject)}

    async def set_mode(self, call: RegistryCall, state: RegistryState) -> Revision:
        """Set a mode."""
        mode = mode_of(parse_body(call.body, ModeBody))
        change = set_mode(state, _scope(call), mode, force=flag(call.query, "force"))
        return change._replace(answer={"mode": change.answer})

    async def delete_mode(self, call: RegistryCall, state: RegistryState) -> Revision:
        """Remove a mode."""
        change = delete_mode(state, _scope(call))
        return change._replace(answer={"mode": change.answer})

    # The registry itself.

    async def contexts(self, call: RegistryCall, state: RegistryState) -> Any:
        """List the contexts."""
        offset, limit = _page(call).within(listing.SUBJECTS_MAX)
        return state.context_names[offset : offset + limit]

    async def cluster(self, _call: RegistryCall, _state: RegistryState) -> Any:
        """Return the id of the cluster."""
        clusters = {
            "kafka-cluster": self._topic.broker.cluster.image.cluster_id,
            "schema-registry-cluster": "schema-registry",
        }
        return {"scope": {"path": [], "clusters": clusters}, "id": ""}

    async def release(self, _call: RegistryCall, _state: RegistryState) -> Any:
        """Return the version of minibroker."""
        return {"version": __version__, "commitId": ""}

    # Schemas of answers and bodies.

    async def _formatted(
        self,
        call: RegistryCall,
        state: RegistryState,
        subject: str,
        view: dict[str, Any],
        schema: SchemaText,
    ) -> dict[str, Any]:
        """Return the view of a schema in the format of the query: `serialized` is a descriptor in
        place of a text of Protobuf. `subject`: a name in the context of the schema.
        """
        if call.query.get("format") == "serialized" and schema.schema_type == PROTOBUF:
            resolved = resolve(state, context_of(subject), schema, deleted=True)
            view["schema"] = await self._checks.descriptor(resolved)
        return view

    async def _posted(self, call: RegistryCall, state: RegistryState, subject: str) -> PostedSchema:
        """Return the schema of the body. Raises RegistryError."""
        parse = partial(parse_body, call.body, SchemaBody)
        small = len(call.body) <= SMALL_BODY_BYTES
        body = parse() if small else await self._checks.run(parse)
        context = context_of(subject)
        if small or (len(body.metadata) < SMALL_BODY_BYTES > len(body.rule_set)):
            return schema_of(body, state, context)
        return await self._checks.run(partial(schema_of, body, state, context))

    async def _canonical(
        self,
        call: RegistryCall,
        state: RegistryState,
        subject: str,
        schema: SchemaText,
        *,
        deleted: bool = False,
    ) -> tuple[SchemaText, ResolvedSchema]:
        """Return a schema with the text that decides, and with its references. Raises
        RegistryError.
        """
        resolved = resolve(state, context_of(subject), schema, deleted=deleted)
        parsed_schema = await self._checks.parse(resolved)
        normalizes = flag(call.query, "normalize") or bool(state.config(subject).get("normalize"))
        text = parsed_schema.normalized if normalizes else parsed_schema.canonical
        return schema._replace(text=text), resolved

    async def _messages(
        self,
        state: RegistryState,
        resolved: ResolvedSchema,
        entries: Sequence[VersionEntry],
        level: str,
    ) -> list[str]:
        """Return why a schema does not fit versions. Raises RegistryError."""
        others = []
        turn = TimeSlice()
        for entry in entries:
            if not entry.is_deleted:
                context = context_of(entry.subject)
                others.append((entry, resolve(state, context, entry.schema, deleted=True)))
            if turn.is_over:
                await turn.pause()
        return await self._checks.messages(resolved, others, level)


# Parts of calls.


def _check_content_type(request: HttpRequest) -> None:
    """Raise RegistryError(415) for a body that does not say it is JSON."""
    content_type = request.headers.get("content-type", CONTENT_TYPE).partition(";")[0].strip()
    if content_type.lower() not in CONTENT_TYPES:
        raise RegistryError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"HTTP 415 Unsupported Media Type: {content_type:.100}; expected Content-Type:"
            f" {CONTENT_TYPE}",
        )


def _subject(call: RegistryCall, state: RegistryState) -> str:
    """Return the full name of the subject of the path, behind its alias."""
    return state.target(qualified(call.parts["subject"], call.context))


def _scope(call: RegistryCall) -> str | None:
    """Return the subject or context whose settings a path is about, None: those of all."""
    name = call.parts.get("subject")
    if name is None:
        return prefix_of(call.context) or None
    return qualified(name, call.context) or None


def _version(call: RegistryCall, state: RegistryState, *, deleted: bool = False) -> VersionEntry:
    """Return the version of the path. Raises RegistryError."""
    version = version_of(call.parts["version"])
    subject = _subject(call, state)
    latest = state.latest(subject, deleted=deleted)
    if latest is None:
        raise no_subject(subject)
    if version == LATEST:
        return latest
    entry = state.subjects[subject].get(version)
    if entry is None or (entry.is_deleted and not deleted):
        raise no_version(version)
    return entry


def _earlier(state: RegistryState, subject: str, level: str) -> list[VersionEntry]:
    """Return the versions that a new schema has to fit, by a level; soft-deleted ones among them
    do not count.
    """
    if LEVELS[level].is_transitive:
        return list(state.subjects.get(subject, {}).values())
    latest = state.latest(subject)
    return [] if latest is None else [latest]


def _id(call: RegistryCall, state: RegistryState) -> Steps[tuple[str, int]]:
    """Return context and id of the path's schema. Raises RegistryError(40403)."""
    schema_id = id_of(call.parts["id"])
    name = call.query.get("subject")
    subject = qualified(name, call.context) if name else None
    context = yield from listing.find_context(state, call.context, schema_id, subject)
    if context is None:
        raise no_schema(schema_id)
    return context, schema_id


def _places(call: RegistryCall, state: RegistryState) -> Steps[list[tuple[str, int]]]:
    """Return (subject, version) that have the path's schema. Raises RegistryError(40403)."""
    context, schema_id = yield from _id(call, state)
    name = call.query.get("subject")
    subject = qualified(name, context) if name else ""
    search = Search(subject, flag(call.query, "deleted"))
    return (yield from listing.places(state, context, schema_id, search))


def _search(call: RegistryCall) -> Search:
    prefix = call.query.get("subjectPrefix", EVERY_CONTEXT)
    if call.context != DEFAULT and prefix == EVERY_CONTEXT:
        prefix = ""
    if not prefix.startswith(EVERY_CONTEXT):
        prefix = qualified(prefix, call.context)
    return Search(prefix, flag(call.query, "deleted"), flag(call.query, "deletedOnly"))


def _page(call: RegistryCall) -> Page:
    """Raises RegistryError(404)."""
    return Page(number(call.query, "offset", 0), number(call.query, "limit", -1))


# Answers.


def _view(entry: VersionEntry) -> dict[str, Any]:
    """Return a version as JSON has it."""
    head = {"subject": entry.subject, "version": entry.version, "id": entry.schema_id}
    return head | described(entry.schema)


def _text(schema: SchemaText, call: RegistryCall) -> Response:
    """Return the text of a schema, as it is."""
    return Response(HTTPStatus.OK, schema.text.encode(), _content_type(call.request))


async def _answer(value: Any, call: RegistryCall) -> Response:
    """Return a value as JSON; a function makes it in a thread."""
    if isinstance(value, Response):
        return value
    if callable(value):
        body = await asyncio.to_thread(_encoded, value)
    else:
        body = msgspec.json.encode(value)
    return Response(HTTPStatus.OK, body, _content_type(call.request))


def _encoded(make: Callable[[], Any]) -> bytes:
    with quick_switches():
        return msgspec.json.encode(make())


def _content_type(request: HttpRequest) -> str:
    """Return the type of an answer: Confluent's, unless the client takes only another one."""
    accept = request.headers.get("accept", "").lower()
    if "*/*" in accept or CONTENT_TYPE in accept:
        return CONTENT_TYPE
    return next((name for name in CONTENT_TYPES[1:3] if name in accept), CONTENT_TYPE)


_API: Final = RegistryApi
_VERSIONS: Final = "/subjects/{subject}/versions"
_COMPATIBILITY: Final = f"/compatibility{_VERSIONS}"

OPERATIONS: Final = (
    RegistryOperation("GET", "/", _API.health),
    RegistryOperation("GET", "/subjects", _API.subjects),
    RegistryOperation("POST", "/subjects/{subject}", _API.look_up),
    RegistryOperation("DELETE", "/subjects/{subject}", _API.delete_subject, is_write=True),
    RegistryOperation("GET", "/subjects/{subject}/metadata", _API.metadata),
    RegistryOperation("GET", _VERSIONS, _API.versions),
    RegistryOperation("POST", _VERSIONS, _API.register, is_write=True),
    RegistryOperation("GET", f"{_VERSIONS}/{{version}}", _API.version),
    RegistryOperation("DELETE", f"{_VERSIONS}/{{version}}", _API.delete_version, is_write=True),
    RegistryOperation("GET", f"{_VERSIONS}/{{version}}/schema", _API.version_schema),
    RegistryOperation("GET", f"{_VERSIONS}/{{version}}/referencedby", _API.referenced_by),
    RegistryOperation("GET", "/schemas", _API.schemas),
    RegistryOperation("GET", "/schemas/types", _API.types),
    RegistryOperation("GET", "/schemas/ids/{id}", _API.schema),
    RegistryOperation("GET", "/schemas/ids/{id}/schema", _API.schema_text),
    RegistryOperation("GET", "/schemas/ids/{id}/subjects", _API.schema_subjects),
    RegistryOperation("GET", "/schemas/ids/{id}/versions", _API.schema_versions),
    RegistryOperation("POST", _COMPATIBILITY, _API.compatibility),
    RegistryOperation("POST", f"{_COMPATIBILITY}/{{version}}", _API.compatibility),
    RegistryOperation("GET", "/config", _API.config),
    RegistryOperation("PUT", "/config", _API.set_config, is_write=True),
    RegistryOperation("DELETE", "/config", _API.delete_config, is_write=True),
    RegistryOperation("GET", "/config/{subject}", _API.config),
    RegistryOperation("PUT", "/config/{subject}", _API.set_config, is_write=True),
    RegistryOperation("DELETE", "/config/{subject}", _API.delete_config, is_write=True),
    RegistryOperation("GET", "/mode", _API.mode),
    RegistryOperation("PUT", "/mode", _API.set_mode, is_write=True),
    RegistryOperation("DELETE", "/mode", _API.delete_mode, is_write=True),
    RegistryOperation("GET", "/mode/{subject}", _API.mode),
    RegistryOperation("PUT", "/mode/{subject}", _API.set_mode, is_write=True),
    RegistryOperation("DELETE", "/mode/{subject}", _API.delete_mode, is_write=True),
    RegistryOperation("GET", "/contexts", _API.contexts),
    RegistryOperation("GET", "/v1/metadata/id", _API.cluster),
    RegistryOperation("GET", "/v1/metadata/version", _API.release),
)
"""Every method of every path."""

_PATHS: Final = Paths(OPERATIONS)
