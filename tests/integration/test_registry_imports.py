"""The modules that a broker loads for its registry: idle, and with the first schemas of a format.

Memory is mostly modules, and unlike memory their names are the same on each machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.imports import names_in
from tests.support.processes import free_port
from tests.support.registry_calls import ask, register

if TYPE_CHECKING:
    from pathlib import Path

OWN_MODULES_MAX = 23
"""The modules of `control`, `registry` and `rig` that an idle registry needs."""
MODULES_MAX = {"idle": 50, "AVRO": 8, "JSON": 70, "PROTOBUF": 45}
"""Stage → modules of libraries that come with it; of JSON Schema, some are there for tests only."""
LIBRARIES = {"AVRO": "avro", "JSON": "jsonschema", "PROTOBUF": "google.protobuf"}
OF_THE_SERVER = ("h11", "msgspec", "uvicorn")
NEVER = ("click", "multiprocessing", "uvicorn.main", "uvicorn.server", "hmac", "grpc_tools.protoc")
RECORD = {"type": "record", "name": "A", "fields": [{"name": "a", "type": "int"}]}
FIELD = {"name": "b", "type": "int", "default": 0}
OBJECT = {"type": "object", "additionalProperties": False, "properties": {"a": {"type": "string"}}}
MESSAGE = 'syntax = "proto3"; message A { int32 a = 1; '
SCHEMAS = {
    "AVRO": (json.dumps(RECORD), json.dumps({**RECORD, "fields": [*RECORD["fields"], FIELD]})),
    "JSON": (json.dumps(OBJECT), json.dumps({**OBJECT, "title": "A"})),
    "PROTOBUF": (f"{MESSAGE}}}", f"{MESSAGE}int32 b = 2; }}"),
}
"""Format → two versions, of which the second is compared with the first."""


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Stage → the modules that came with it; `start`: with a broker that has no registry yet."""
    directory: Path = tmp_path_factory.mktemp("registry")
    port = free_port()
    words = ["serve", "--memory", "--listen", "127.0.0.1:0", "--loop", "asyncio"]
    words += ["--registry", f"127.0.0.1:{port}"]
    log = directory / "imports"
    stages: dict[str, set[str]] = {}

    def end_stage(name: str) -> None:
        stages[name] = names_in(log.read_text()) - set().union(*stages.values())

    with (
        log.open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-X", "importtime", "-m", "minibroker", *words],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=directory,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("minibroker listening on ")
            url = f"http://127.0.0.1:{port}"
            assert ask(url, "GET", "/subjects").body == []
            end_stage("idle")
            for kind, schemas in SCHEMAS.items():
                for schema in schemas:
                    register(url, kind, schema, kind)
                end_stage(kind)
        finally:
            process.kill()
    return stages


def of_libraries(names: set[str]) -> list[str]:
    """Return the modules that are neither Python's nor ours, and not of Python's own start."""
    tops = {*sys.stdlib_module_names, "minibroker", "sitecustomize", "_distutils_hack"}
    return sorted(name for name in names if name.partition(".")[0] not in tops)


def test_idle_registry_loads_a_server_and_no_format(stages: dict[str, set[str]]) -> None:
    rooms = ("minibroker.control", "minibroker.registry", "minibroker.rig")
    own = sorted(name for name in stages["idle"] if name.startswith(rooms))
    assert "minibroker.registry.service" in own
    assert len(own) <= OWN_MODULES_MAX, own
    server = [name for name in stages["idle"] if name.partition(".")[0] in OF_THE_SERVER]
    assert len(server) <= MODULES_MAX["idle"], sorted(server)
    assert not stages["idle"] & set(LIBRARIES.values())


@pytest.mark.parametrize("kind", LIBRARIES)
def test_format_is_loaded_with_its_first_schema(stages: dict[str, set[str]], kind: str) -> None:
    assert LIBRARIES[kind] in stages[kind]
    libraries = of_libraries(stages[kind])
    assert len(libraries) <= MODULES_MAX[kind], libraries


@pytest.mark.parametrize("name", NEVER)
def test_registry_loads_no_program_of_a_library(stages: dict[str, set[str]], name: str) -> None:
    assert name not in set().union(*stages.values())
