"""An S3 on 127.0.0.1 (moto), which can fail as a network and a store do.

It is a process of its own: deltalake holds Python's lock while it waits for an answer.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from pyarrow.fs import FileSelector, S3FileSystem

from minibroker.pipeline.files.object_stores import ObjectStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BUCKET = "lake"
LOST = "lost"
"""The request is done, and its answer is an error."""
REFUSED = "refused"
"""The request is not done."""
_CONTROL = "/fault"
_SECONDS = 60


class Fault(NamedTuple):
    """The requests that fail."""

    methods: list[str]
    part: str
    """Part of their paths."""
    kind: str
    times: int = 1


class S3Server:
    """A store with one bucket."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.object_store"], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        self.store = ObjectStore(self.url, "us-east-1", "key", "secret")
        self.files = S3FileSystem(**self.store.for_arrow(), allow_bucket_creation=True)
        self.files.create_dir(BUCKET)

    def fail(self, fault: Fault | None) -> None:
        """Let these requests fail from now on, and no others."""
        body = json.dumps(fault).encode()
        request = urllib.request.Request(f"{self.url}{_CONTROL}", body, method="POST")
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
            assert answer.status == 200

    def paths(self, directory: str) -> list[str]:
        """Return BUCKET/PATH of each object below `s3://BUCKET/DIRECTORY`."""
        path = directory.removeprefix("s3://")
        selected = FileSelector(path, recursive=True, allow_not_found=True)
        return [file.path for file in self.files.get_file_info(selected) if file.is_file]

    def read(self, path: str) -> str:
        """Return the text of the object at BUCKET/PATH."""
        with self.files.open_input_stream(path) as stream:
            text: bytes = stream.read()
        return text.decode()

    def close(self) -> None:
        self._process.kill()
        self._process.wait(_SECONDS)
        assert self._process.stdout is not None
        self._process.stdout.close()


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Serve a store until the block ends."""
    server = S3Server()
    try:
        yield server
    finally:
        server.close()


class _Application:
    """moto behind the fault of the moment."""

    def __init__(self) -> None:
        from moto.server import (  # noqa: PLC0415  a second, in the server alone
            DomainDispatcherApplication,
            create_backend_app,
        )

        self._moto = DomainDispatcherApplication(create_backend_app)
        self._fault: Fault | None = None

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        length = int(environ.get("CONTENT_LENGTH") or 0)
        if path == _CONTROL:
            order = json.loads(environ["wsgi.input"].read(length))
            self._fault = None if order is None else Fault(*order)
            start_response("200 OK", [("Content-Length", "0")])
            return [b""]
        kind = self._kind_of(method, path)
        if kind is None:
            response: Iterable[bytes] = self._moto(environ, start_response)
            return response
        if kind == LOST:
            list(self._moto(environ, lambda *_: None))
        else:
            environ["wsgi.input"].read(length)
        body = b"<Error><Code>AccessDenied</Code></Error>"
        start_response("403 Forbidden", [("Content-Length", str(len(body)))])
        return io.BytesIO(body)

    def _kind_of(self, method: str, path: str) -> str | None:
        fault = self._fault
        if fault is None or method not in fault.methods or fault.part not in path:
            return None
        self._fault = fault._replace(times=fault.times - 1) if fault.times > 1 else None
        return fault.kind


def main() -> None:
    """Serve until the process is killed; the first line is the URL."""
    from werkzeug.serving import WSGIRequestHandler, make_server  # noqa: PLC0415

    class Quiet(WSGIRequestHandler):
        def log_request(self, *_: Any) -> None:
            """Write no line about a request."""

    server = make_server("127.0.0.1", 0, _Application(), threaded=True, request_handler=Quiet)
    sys.stdout.write(f"http://127.0.0.1:{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
