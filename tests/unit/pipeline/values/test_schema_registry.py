"""The registry's client beside a small server that speaks as Confluent's; .proto files."""

from __future__ import annotations

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.cluster import without_password
from minibroker.pipeline.values.decoding import PROTOBUF, reader_of
from minibroker.pipeline.values.schema_registry import SchemaRegistry, descriptors

if TYPE_CHECKING:
    from collections.abc import Iterator

GUID = "89791762-2336-4186-9674-299b90a802e2"
ANSWERS: dict[str, Any] = {
    "/subjects/t-value/versions": [1, 2],
    "/subjects/t-value/versions/1": {
        "subject": "t-value",
        "version": 1,
        "id": 7,
        "schema": '"int"',
    },
    "/subjects/t-value/versions/2": {
        "subject": "t-value",
        "version": 2,
        "id": 9,
        "schema": '"int"',
    },
    "/schemas/ids/7": {"schema": '"int"'},
    "/schemas/ids/8": {
        "schema": 'syntax = "proto3"; import "o.proto"; message A { O o = 1; }',
        "schemaType": "PROTOBUF",
        "references": [{"name": "o.proto", "subject": "o", "version": 1}],
    },
    "/subjects/o/versions/1": {
        "subject": "o",
        "version": 1,
        "id": 10,
        "schema": 'syntax = "proto3"; message O { int32 x = 1; }',
        "schemaType": "PROTOBUF",
    },
    f"/schemas/guids/{GUID}": {"schema": '"long"', "guid": GUID},
    "/schemas/ids/11": {"schema": "message A {", "schemaType": "PROTOBUF"},
    "/schemas/ids/12": {"schema": "…", "schemaType": "XML"},
}
LOGIN = "Basic " + base64.b64encode(b"alice:secret").decode()


class Answers(BaseHTTPRequestHandler):
    """Answers to one user."""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        status = 200 if path in ANSWERS else 404
        if self.headers["Authorization"] != LOGIN:
            status = 401
        body = json.dumps(ANSWERS.get(path, {"error_code": 40403, "message": "no"})).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def registry(url: str) -> Iterator[SchemaRegistry]:
    schema_registry = SchemaRegistry({"url": url, "basic.auth.user.info": "alice:secret"})
    yield schema_registry
    schema_registry.close()


def test_ids_of_a_subject(registry: SchemaRegistry) -> None:
    assert registry.ids("t-value") == [7, 9]
    assert registry.ids("other-value") == []


def test_schemas_with_what_they_refer_to(registry: SchemaRegistry) -> None:
    registered = registry.schema(7)
    assert registered is not None
    assert (registered.kind, registered.text, registered.reason) == ("AVRO", '"int"', "")
    registered = registry.schema(8)
    assert registered is not None
    assert registered.kind == PROTOBUF
    assert reader_of(registered).type.field("o").type.names == ["x"]
    assert registry.schema(999) is None
    registered = registry.schema(GUID)
    assert registered is not None
    assert registered.text == '"long"'
    assert registry.schema(GUID.replace("8", "9")) is None


def test_schemas_that_nothing_can_be_done_with(registry: SchemaRegistry) -> None:
    for id_, reason in ((11, "it is no .proto file"), (12, "its type XML is none of AVRO, JSON")):
        registered = registry.schema(id_)
        assert registered is not None
        assert reason in registered.reason


def test_a_wrong_login_and_wrong_settings(url: str) -> None:
    registry = SchemaRegistry({"url": url, "basic.auth.user.info": "alice:wrong"})
    with pytest.raises(PipelineError, match=r"registry at http://127.0.0.1:\d+ does not answer"):
        registry.schema(7)
    registry.close()
    with pytest.raises(PipelineError, match="the settings of the schema registry are wrong"):
        SchemaRegistry({"url": url, "no.such.setting": "1"})
    with pytest.raises(PipelineError, match="expected USER_INFO or URL"):
        SchemaRegistry({"url": url, "basic.auth.credentials.source": "SASL_INHERIT"})


def test_paths_of_imports_stay_inside() -> None:
    with pytest.raises(ValueError, match="is no path of an import"):
        descriptors('syntax = "proto3";', {"../evil.proto": ""})


def test_no_password_is_shown() -> None:
    assert without_password("https://alice:secret@host:8081/x") == "https://host:8081/x"
    assert without_password("http://host") == "http://host"
