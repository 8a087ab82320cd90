"""Calls of a schema registry's REST API, without a client between."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

SECONDS = 60.0
V1 = "application/vnd.schemaregistry.v1+json"


class RegistryAnswer(NamedTuple):
    """Status and body of an answer; a body that is JSON is decoded."""

    status: int
    body: Any
    headers: dict[str, str]

    @property
    def code(self) -> int:
        """Return the error's code."""
        assert isinstance(self.body, dict), self
        code: int = self.body["error_code"]
        return code


def ask(
    url: str,
    method: str,
    path: str,
    body: Any = None,
    *,
    headers: dict[str, str] | None = None,
) -> RegistryAnswer:
    """Return the answer to a request; `body` is sent as JSON, bytes as they are."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    connection = HTTPConnection(parts.hostname, parts.port, timeout=SECONDS)
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    try:
        connection.request(
            method, f"{parts.path}{path}", data, {"Content-Type": V1, **(headers or {})}
        )
        response = connection.getresponse()
        text = response.read()
    finally:
        connection.close()
    try:
        decoded = json.loads(text)
    except ValueError:
        decoded = text
    return RegistryAnswer(
        response.status, decoded, {name.lower(): value for name, value in response.getheaders()}
    )


def posted(
    schema: str | dict[str, Any],
    kind: str = "AVRO",
    references: tuple[tuple[str, str, int], ...] = (),
    **fields: Any,
) -> dict[str, Any]:
    """Return the body of a schema; `references`: (name, subject, version)."""
    body: dict[str, Any] = {
        "schema": schema if isinstance(schema, str) else json.dumps(schema),
        "schemaType": kind,
        **fields,
    }
    if references:
        body["references"] = [
            {"name": name, "subject": subject, "version": version}
            for name, subject, version in references
        ]
    return body


def register(
    url: str,
    subject: str,
    schema: str | dict[str, Any],
    kind: str = "AVRO",
    references: tuple[tuple[str, str, int], ...] = (),
    **fields: Any,
) -> int:
    """Register a schema and return its id."""
    path = f"/subjects/{quote(subject, safe='')}/versions"
    answer = ask(url, "POST", path, posted(schema, kind, references, **fields))
    assert answer.status == 200, answer
    schema_id: int = answer.body["id"]
    return schema_id


class OpenRegistry(NamedTuple):
    """A registry that takes every schema."""

    url: str

    def register(
        self,
        subject: str,
        schema: str | dict[str, Any],
        kind: str = "AVRO",
        references: tuple[tuple[str, str, int], ...] = (),
    ) -> int:
        """Do `register`."""
        return register(self.url, subject, schema, kind, references)

    def open(self) -> OpenRegistry:
        """Have the registry take schemas that do not fit those before."""
        answer = ask(self.url, "PUT", "/config", {"compatibility": "NONE"})
        assert answer.status == 200, answer
        return self


def record(*fields: str, name: str = "Order") -> dict[str, Any]:
    """Return an Avro record whose fields are ints; `x?` has a default."""
    return {
        "type": "record",
        "name": name,
        "fields": [
            {"name": field.rstrip("?"), "type": "int", **({"default": 0} if "?" in field else {})}
            for field in fields
        ],
    }
