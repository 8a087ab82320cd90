"""Apicurio Registry as a partner of tests: a real registry, with Confluent's API.

It comes as Java from Maven (`make registry`), listens on a free port of 127.0.0.1 and keeps its
schemas in its memory. The same calls go to it and to minibroker's.
"""

from __future__ import annotations

from http import HTTPStatus
from http.client import HTTPException
from typing import TYPE_CHECKING

from tests.support.build_files import BUILD, required
from tests.support.java import JVM_OPTIONS
from tests.support.processes import ManagedProcess, free_port
from tests.support.registry_calls import ask

if TYPE_CHECKING:
    from pathlib import Path

APICURIO = BUILD / "apicurio-3.0.9"
START_SECONDS = 240.0


class Registry:
    """One registry of its own."""

    def __init__(self, directory: Path) -> None:
        """`directory`: of its log."""
        self._directory = directory
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
        settings = {
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": str(self.port),
            "quarkus.log.level": "WARN",
            "apicurio.storage.kind": "sql",
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

    def _answers(self) -> bool:
        try:
            return ask(self.url, "GET", "/subjects").status == HTTPStatus.OK
        except (OSError, HTTPException):
            return False
