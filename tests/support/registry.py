"""Apicurio Registry as a partner of tests: a real registry, with Confluent's API.

It comes as Java from Maven (`make registry`), listens on a free port of 127.0.0.1 and keeps its
schemas in its memory, or in a topic of a broker.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

from tests.support.java import JVM_OPTIONS
from tests.support.made import BUILD, required
from tests.support.processes import ManagedProcess, free_port

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

APICURIO = BUILD / "apicurio-3.0.9"
START_SECONDS = 240.0
_SECONDS = 60.0


class Registry:
    """One registry of its own."""

    def __init__(self, directory: Path, *, broker: str | None = None) -> None:
        """Args:
        directory: of its log.
        broker: HOST:PORT of a broker whose topics keep the schemas; None: its memory.
        """
        self._directory = directory
        self._broker = broker
        self.port = free_port()
        self._process: ManagedProcess | None = None

    @property
    def url(self) -> str:
        """Return the URL of Confluent's API."""
        return f"http://127.0.0.1:{self.port}/apis/ccompat/v7"

    def start(self) -> None:
        """Start it; it is ready later, see `wait`."""
        required(APICURIO / ".done")
        self._directory.mkdir(parents=True, exist_ok=True)
        storage = {"apicurio.storage.kind": "sql"}
        if self._broker is not None:
            storage = {
                "apicurio.storage.kind": "kafkasql",
                "apicurio.kafkasql.bootstrap.servers": self._broker,
            }
        settings = {
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": str(self.port),
            "quarkus.log.level": "WARN",
            **storage,
        }
        self._process = ManagedProcess(
            [
                *("java", *JVM_OPTIONS, *(f"-D{key}={settings[key]}" for key in settings)),
                *("-cp", f"{APICURIO}/*:{APICURIO}/lib/*", "io.quarkus.runner.GeneratedMain"),
            ],
            self._directory / "registry.log",
        )

    def wait(self) -> None:
        """Wait until it answers."""
        assert self._process is not None, "start it first"
        self._process.wait_until(self._answers, START_SECONDS, "the schema registry")

    def stop(self) -> None:
        """Stop at once: nobody reads its schemas later."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def register(
        self,
        subject: str,
        schema: str | dict[str, Any],
        kind: str = "AVRO",
        references: Sequence[tuple[str, str, int]] = (),
    ) -> int:
        """Register a schema and return its id.

        Args:
            subject: such as `orders-value`.
            schema: text, or JSON of it.
            kind: AVRO, JSON or PROTOBUF.
            references: (name, subject, version) of schemas that it refers to.
        """
        text = schema if isinstance(schema, str) else json.dumps(schema)
        body = {
            "schema": text,
            "schemaType": kind,
            "references": [
                {"name": name, "subject": other, "version": version}
                for name, other, version in references
            ],
        }
        found = self._ask(f"/subjects/{subject}/versions", body)
        return int(found["id"])

    def _ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        request = urllib.request.Request(
            f"{self.url}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/vnd.schemaregistry.v1+json"},
        )
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
            return json.load(answer)

    def _answers(self) -> bool:
        try:
            self._ask("/subjects")
        except (OSError, urllib.error.URLError):
            return False
        return True
