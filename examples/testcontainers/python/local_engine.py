"""Stands for a Docker engine: its container is a process `minibroker serve` of this machine.

The ports of the process are those that Docker would publish. `script` is the file that was copied
into the container; minibroker's `tests/integration/test_container.py` runs it in the image's files.
"""

import io
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path

from minibroker_container import CLIENT_PORT, CONTROL_PORT
from testcontainers.core.config import ConnectionMode

START_S = 60


class LocalEngine:
    """The part of Testcontainers' `DockerClient` that a container uses."""

    def __init__(self):
        self.created = {}
        """Arguments of `create`."""
        self.script = ""
        self.client = self
        self._process = None
        self._ports = {}

    def create(self, image, **arguments):
        """Return a container that is not started."""
        self.created = {"image": image, **arguments}
        return LocalContainer(self)

    def start(self, container):
        """Start the process, and wait until it has its ports."""
        environment = self.created["environment"]
        ready = Path(tempfile.mkdtemp()) / "ready"
        command = ["minibroker", "serve", "--memory", "--listen", "127.0.0.1:0"]
        command += ["--control", "127.0.0.1:0", "--ready-file", str(ready)]
        command += ["--control-token", environment["MINIBROKER_CONTROL_TOKEN"]]
        for topic in filter(None, environment["KAFKA_CREATE_TOPICS"].split(";")):
            command += ["--topic", topic]
        self._process = subprocess.Popen(command)
        deadline = time.monotonic() + START_S
        while not ready.exists():
            assert self._process.poll() is None, "minibroker ended"
            assert time.monotonic() < deadline, "minibroker does not start"
            time.sleep(0.005)
        lines = ready.read_text().splitlines()
        ports = [int(line.rpartition(":")[2]) for line in lines]
        self._ports = dict(zip((CLIENT_PORT, CONTROL_PORT), ports, strict=True))

    def port(self, container_id, port):
        """Return the port of this machine for one of the container."""
        return self._ports[port]

    def host(self):
        """Return the address of the engine."""
        return "127.0.0.1"

    def get_connection_mode(self):
        """Return that ports are published on the engine's address."""
        return ConnectionMode.docker_host

    def close(self):
        """Stop the process."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None


class LocalContainer:
    """The part of a container of `docker` that Testcontainers uses."""

    id = short_id = "local"
    status = "running"

    def __init__(self, engine):
        self._engine = engine

    def put_archive(self, path, data):
        """Keep the only file of an archive; return that it is in the container."""
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            (member,) = archive.getmembers()
            self._engine.script = archive.extractfile(member).read().decode()
        return True

    def reload(self):
        """Do nothing: `status` holds while the process runs."""

    def logs(self, **_):
        """Return nothing: the process writes to the terminal."""
        return b""

    def remove(self, **_):
        """Stop the process."""
        self._engine.close()
