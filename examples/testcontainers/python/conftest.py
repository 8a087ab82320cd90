"""Makes the tests run without Docker: a container of these tests is a process of this machine."""

import os

import pytest

os.environ["TESTCONTAINERS_RYUK_DISABLED"] = "true"  # it removes containers of Docker

from local_engine import LocalEngine


@pytest.fixture
def engine(monkeypatch):
    """Return what stands for Docker."""
    engine = LocalEngine()
    monkeypatch.setattr("testcontainers.core.container.DockerClient", lambda **_: engine)
    yield engine
    engine.close()
