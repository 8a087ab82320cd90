"""Makes `openapi.json` and the reference page of the control API from its operations.

    python -m minibroker.control.description    # writes both; a test proves that they are fresh

OpenAPI 3.0, as generators of typed clients know it: a field that may be null is `nullable`.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import msgspec

from minibroker.control.api import OPERATIONS
from minibroker.control.messages import JSON
from minibroker.control.operations import ControlOperation
from minibroker.control.seeding import BYTES
from minibroker.control.shapes import Error, Nothing

OPENAPI: Final = Path(__file__).parent / "openapi.json"
PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "control-api.md"
_INTRODUCTION: Final = (
    "Health, metrics, records, faults and time of a running minibroker. An answer of 4xx and 5xx is"
    ' JSON: {"error": a sentence}.'
)
_OF_EACH: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
_DESCRIPTIONS: Final[dict[int, str]] = {
    HTTPStatus.BAD_REQUEST: "a field of the query or the body is wrong",
    HTTPStatus.UNAUTHORIZED: "there is no token, or a wrong one",
    HTTPStatus.FORBIDDEN: "this token only reads, or a caller without a token may not ask this",
    HTTPStatus.NOT_FOUND: "there is no such thing",
    HTTPStatus.TOO_MANY_REQUESTS: "too many requests wait already",
    HTTPStatus.GATEWAY_TIMEOUT: "it did not come about in time",
    HTTPStatus.CONFLICT: "the broker cannot do this now",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "the body is too large",
    HTTPStatus.SERVICE_UNAVAILABLE: "the broker does not serve now",
}
_REF: Final = "#/components/schemas/{name}"
_INTEGER_PARTS: Final = ("id",)


def openapi() -> dict[str, Any]:
    """Return the document."""
    shapes = [kind for row in OPERATIONS for kind in (row.answer, row.body) if kind is not None]
    queries = [row.query for row in OPERATIONS]
    refs, components = msgspec.json.schema_components([*shapes, *queries, Error], ref_template=_REF)
    schemas = dict(zip([*map(repr, (*shapes, *queries, Error))], map(_as_3_0, refs), strict=True))
    bodies = {repr(row.body) for row in OPERATIONS}
    names_of_queries = {query.__name__ for query in queries if repr(query) not in bodies}
    paths: dict[str, dict[str, Any]] = {}
    for row in OPERATIONS:
        methods = paths.setdefault(row.path, {})
        methods[row.method.lower()] = _operation(row, schemas, components)
    return {
        "openapi": "3.0.3",
        "info": {"title": "minibroker control API", "version": "1", "description": _INTRODUCTION},
        "paths": paths,
        "components": {
            "schemas": {
                name: _with_optional_fields(_as_3_0(schema))
                for name, schema in components.items()
                if name not in names_of_queries
            },
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The token of --control-token: it may do everything.",
                },
                "readToken": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The token of --control-read-token: it may read (GET).",
                },
            },
        },
    }


def _operation(
    row: ControlOperation, schemas: dict[str, Any], components: dict[str, Any]
) -> dict[str, Any]:
    """Return one operation as OpenAPI has it."""
    parameters = []
    if name := row.part_name:
        kind = "integer" if name in _INTEGER_PARTS else "string"
        schema_text = _as_3_0({"type": kind})
        parameters.append({"name": name, "in": "path", "required": True, "schema": schema_text})
    query = components[row.query.__name__]
    for name, schema in query["properties"].items():
        schema_text = _as_3_0(schema)
        schema_text.pop("nullable", None)
        parameter = {"name": name, "in": "query", "required": name in query["required"]}
        if text := schema_text.pop("description", None):
            parameter["description"] = text
        parameters.append({**parameter, "schema": schema_text})
    failures = row.failures if row.is_open else (*_OF_EACH, *row.failures)
    answers = {row.status: "done"} | {status: _DESCRIPTIONS[status] for status in failures}
    responses = {}
    for status, text in sorted(answers.items()):
        is_failure = status != row.status
        schema = schemas[repr(Error)] if is_failure else {"type": "string"}
        if row.media_type == BYTES and not is_failure:
            schema = {"type": "string", "format": "binary"}
        if row.answer is not None and (not is_failure or row.is_open):
            schema = schemas[repr(row.answer)]
        media_type = JSON if is_failure else row.media_type
        content = {media_type: {"schema": schema}}
        responses[str(int(status))] = {"description": text, "content": content}
    described: dict[str, Any] = {"operationId": row.name, "summary": row.summary}
    if parameters:
        described["parameters"] = parameters
    if row.body is not None:
        body = {kind: {"schema": schemas[repr(row.body)]} for kind in row.body_types}
        if BYTES in body:
            body[BYTES] = {"schema": {"type": "string", "format": "binary"}}
        described["requestBody"] = {"required": row.body is not Nothing, "content": body}
    described["responses"] = responses
    described["security"] = _security(row)
    return described


def _security(row: ControlOperation) -> list[dict[str, list[str]]]:
    """Return the tokens of an operation; without a token, only programs on the machine ask."""
    if row.is_open:
        return []
    tokens = ["token", "readToken"] if row.method == "GET" else ["token"]
    needed: list[dict[str, list[str]]] = [{name: []} for name in tokens]
    return [{}, *needed]


def _as_3_0(schema: Any) -> Any:
    """Return a schema of JSON Schema 2020-12 as OpenAPI 3.0 has it."""
    if isinstance(schema, list):
        return [_as_3_0(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    converted = {name: _as_3_0(part) for name, part in schema.items() if name != "title"}
    choices = converted.pop("anyOf", None)
    if choices is not None:
        others = [choice for choice in choices if choice != {"type": "null"}]
        is_nullable = len(others) < len(choices)
        converted |= others[0] if len(others) == 1 else {"anyOf": others}
        if is_nullable and "default" not in converted:
            converted["nullable"] = True
    if converted.get("default", "") is None:
        del converted["default"]
    if "$ref" in converted and len(converted) > 1:
        converted = {"allOf": [{"$ref": converted.pop("$ref")}], **converted}
    if converted.get("type") == "integer":
        converted["format"] = "int64"
    if converted.get("type") == "array":
        converted.setdefault("items", {})
    if "enum" in converted:
        converted.setdefault("type", "string")
    if not converted.get("required", True):
        del converted["required"]
    return converted


def _with_optional_fields(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a shape's schema with defaults as sentences: some generators take a field with a
    default for one that is always there.
    """
    for field in schema["properties"].values():
        if "default" in field:
            default = f"Default: {json.dumps(field.pop('default'))}."
            field["description"] = f"{field.get('description', '')} {default}".strip()
    return schema


def page() -> str:
    """Return the reference page, in Markdown."""
    document = openapi()
    schemas = document["components"]["schemas"]
    lines = [
        "# Control API",
        "",
        "`minibroker serve --control HOST:PORT` serves these paths.",
        "[From any language](../how-to/any-language.md) shows how to use them, and who may ask.",
        "This page is made from `/openapi.json`, which describes the same for programs.",
        "",
        "A path but those of `/health` may also answer, with an [Error](#error):",
        "",
        *(f"- {int(status)}: {_DESCRIPTIONS[status]}" for status in _OF_EACH),
        "",
    ]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            lines += _section(method.upper(), path, operation)
    lines += ["## Shapes", ""]
    for name, schema in sorted(schemas.items()):
        lines += [f"### {name}", "", schema.get("description", ""), ""]
        required = schema.get("required", ())
        lines += _table(
            (field, part, field in required) for field, part in schema["properties"].items()
        )
    return "\n".join(lines).rstrip() + "\n"


def _section(method: str, path: str, operation: dict[str, Any]) -> list[str]:
    lines = [f"## {method} {path}", "", operation["summary"] + ".", ""]
    if parameters := operation.get("parameters"):
        lines += _table(
            (
                parameter["name"],
                {**parameter["schema"], "description": parameter.get("description", "")},
                parameter["required"],
            )
            for parameter in parameters
        )
    if body := operation.get("requestBody"):
        kinds = {_kind(content["schema"]) for content in body["content"].values()}
        types = " or ".join(f"`{media_type}`" for media_type in body["content"])
        lines += [f"Body: {' or '.join(sorted(kinds))} ({types}).", ""]
    for status, response in operation["responses"].items():
        if int(status) in _OF_EACH:
            continue
        ((media_type, content),) = response["content"].items()
        lines.append(
            f"- {status}: {response['description']}; {_kind(content['schema'])} (`{media_type}`)"
        )
    return [*lines, ""]


def _table(rows: Any) -> list[str]:
    lines = ["| field | type | meaning |", "|---|---|---|"]
    for name, schema, is_required in rows:
        meaning = [schema.get("description", "")]
        if not is_required and "default" in schema:
            meaning.append(f"Default: {json.dumps(schema['default'])}.")
        text = " ".join(part for part in meaning if part).replace("|", "\\|")
        kind = _kind(schema) + ("" if is_required else ", optional")
        lines.append(f"| `{name}` | {kind} | {text} |")
    return [*lines, ""] if len(lines) > 2 else []


def _kind(schema: dict[str, Any]) -> str:
    """Return the type of a schema in words."""
    if "allOf" in schema:
        return _kind(schema["allOf"][0])
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name == Nothing.__name__:
            return "`{}`"  # it has no fields, so it has no section
        return f"[{name}](#{name.lower()})"
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'])}"
    kind = schema.get("type", "any JSON")
    limits = [f"from {schema['minimum']:,.12g}"] if "minimum" in schema else []
    if schema.get("maximum", 1 << 63) < 1 << 53:
        limits.append(f"to {schema['maximum']:,.12g}")
    words = " ".join([kind, *limits])
    return f"{words} or null" if schema.get("nullable") else words


def main() -> None:
    """Write both files."""
    OPENAPI.write_text(json.dumps(openapi(), indent=2, ensure_ascii=False) + "\n")
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
