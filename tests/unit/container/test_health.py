"""The health check asks as a client does."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest

from minibroker.container.health import AskedListener, NotReady, check, main, read_address
from minibroker.testing import Broker
from tests.support.certificates import tls_settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERSIONS = b"\0\0\0\0\0\0"
ONE_BROKER = (1).to_bytes(4, "big")


class Peer:
    """Answers the first requests of one connection with these bodies, then hangs up."""

    def __init__(self, *answers: bytes) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = AskedListener(*self._listening.getsockname(), "PLAINTEXT")
        self._thread = threading.Thread(target=self._serve, args=(answers,))
        self._thread.start()

    def _serve(self, answers: tuple[bytes, ...]) -> None:
        connection, _ = self._listening.accept()
        with connection:
            for answer in answers:
                request = connection.recv(1000)
                body = request[8:12] + answer
                connection.sendall(len(body).to_bytes(4, "big") + body)

    def close(self) -> None:
        self._thread.join(60)
        self._listening.close()


@pytest.fixture
def free_port() -> Iterator[int]:
    """Bound by nobody who listens, and by nobody else meanwhile."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def test_a_broker_that_serves_is_healthy(tmp_path: Path) -> None:
    with Broker() as broker:
        (tmp_path / "listener").write_text(broker.bootstrap)
        assert main(str(tmp_path / "listener")) == 0


def test_nobody_there_is_one_sentence(
    tmp_path: Path, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "listener"
    assert main(str(file)) == 1
    assert "no broker was started yet" in capsys.readouterr().err
    file.write_text(f"0.0.0.0:{free_port}")
    assert main(str(file)) == 1
    assert capsys.readouterr().err.startswith(f"not ready: 127.0.0.1:{free_port}: ")


@pytest.mark.parametrize(
    ("line", "address"),
    [
        (":9092", ("127.0.0.1", 9092)),
        ("0.0.0.0:9092", ("127.0.0.1", 9092)),
        ("kafka:19092\n", ("kafka", 19092)),
        ("[::]:9092", ("::1", 9092)),
        (":::9092", ("::1", 9092)),
    ],
)
def test_where_it_asks(tmp_path: Path, line: str, address: tuple[str, int]) -> None:
    (tmp_path / "listener").write_text(line)
    assert read_address(str(tmp_path / "listener")) == (*address, "PLAINTEXT")
    (tmp_path / "listener").write_text(f"{line.strip()} SASL_SSL")
    assert read_address(str(tmp_path / "listener")) == (*address, "SASL_SSL")


@pytest.mark.parametrize("line", ["", "host:", "host:0", "host:65536"])
def test_a_file_that_says_something_else(tmp_path: Path, line: str) -> None:
    (tmp_path / "listener").write_text(line)
    with pytest.raises(NotReady, match="expected HOST:PORT"):
        read_address(str(tmp_path / "listener"))


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ((b"\0\x23" + bytes(4), ONE_BROKER), "ApiVersions was answered with error 35"),
        ((VERSIONS, bytes(4)), "Metadata names no broker"),
        ((VERSIONS,), "closed the connection|reset"),
        ((b"",), "an answer of 4 bytes"),
    ],
)
def test_errors_that_a_client_would_fail_with(answers: tuple[bytes, ...], reason: str) -> None:
    peer = Peer(*answers)
    try:
        with pytest.raises(NotReady, match=reason):
            check(peer.address)
    finally:
        peer.close()


@pytest.mark.parametrize("greeting", [b"HTTP/1.1 400 ", b"\0\0\0\x0aHTTP/1.1 4"])
def test_a_stranger_is_no_broker(greeting: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=_greet, args=(listening, greeting))
        thread.start()
        with pytest.raises(NotReady, match="none of Kafka's"):
            check(AskedListener(*listening.getsockname(), "PLAINTEXT"))
        thread.join(60)


def _greet(listening: socket.socket, greeting: bytes) -> None:
    connection, _ = listening.accept()
    with connection:
        connection.recv(1000)
        connection.sendall(greeting)


@pytest.mark.parametrize("security", ["SSL", "SASL_SSL", "SASL_PLAINTEXT"])
def test_a_secured_broker_is_healthy(security: str, tmp_path: Path) -> None:
    users = {"a": "b"} if security.startswith("SASL") else None
    with Broker(security=security, users=users) as broker:
        (tmp_path / "listener").write_text(f"{broker.bootstrap} {security}")
        assert main(str(tmp_path / "listener")) == 0


def test_a_broker_that_wants_a_certificate_is_healthy(tmp_path: Path) -> None:
    with Broker(config=tls_settings(ssl_client_auth="required")) as broker:
        (tmp_path / "listener").write_text(f"{broker.bootstrap} SSL")
        assert main(str(tmp_path / "listener")) == 0
