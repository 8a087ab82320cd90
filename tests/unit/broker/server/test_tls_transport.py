"""TLS of a connection, as a peer sees it: handshakes that end well or badly, bytes, the end."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.server import tls_transport
from minibroker.broker.server.tls_transport import (
    HANDSHAKE_TIMEOUT_MS,
    TlsTransport,
    explain_failure,
)
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from minibroker.kafka.protocol.messages.metadata import MetadataRequest
from tests.support.certificates import (
    broker_certificate,
    client_certificate,
    client_tls,
    pem_of,
    tls_settings,
)
from tests.support.in_process import InProcessBroker, ManualClock, Serve, request_frame
from tests.support.record_requests import fetch_from, produce_values
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.in_process import RawClient


METADATA = MetadataRequest(topics=[])
RECORD_OVERHEAD_BYTES = 5 + 1 + 16  # header, type and tag of a TLS 1.3 record with AES-GCM


async def connect_plain(running: InProcessBroker) -> RawClient:
    """Return a connection whose handshake the broker waits for."""
    client = await running.connect()
    await eventually(lambda: any(isinstance(c, TlsTransport) for c in running.server.connections))
    return client


def failures(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_requests_are_answered_through_tls(serve: Serve, version: ssl.TLSVersion) -> None:
    running = await serve(**tls_settings())
    tls = client_tls()
    tls.minimum_version = tls.maximum_version = version
    async with await running.connect(tls=tls) as client:
        for _ in range(3):
            answer = await client.call(METADATA, 9)
            assert (answer.brokers[0].host, answer.brokers[0].port) == running.address
    await eventually(lambda: len(running.server.connections) == 0)


@pytest.mark.parametrize("step", [1, 5000])
async def test_requests_are_answered_however_their_bytes_arrive(serve: Serve, step: int) -> None:
    running = await serve(**tls_settings())
    stream = b"".join(request_frame(METADATA, 9, number) for number in range(1, 40))
    async with await running.connect(tls=client_tls()) as client:
        for start in range(0, len(stream), step):
            client.writer.write(stream[start : start + step])
        for number in range(1, 40):
            client.expect(3, 9, number)
            await client.receive()


async def test_records_of_megabytes_are_written_and_read(serve: Serve) -> None:
    running = await serve(**tls_settings(), **{"message.max.bytes": "8000000"})
    await running.create_topic("large")
    value = bytes(range(256)) * 12_000
    async with await running.connect(tls=client_tls()) as client:
        answer = await client.call(produce_values("large", value), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0
        fetched = await client.call(fetch_from("large"), 11)
        assert value in bytes(fetched.responses[0].partitions[0].records)


class WatchedSocket:
    """A socket's transport that notes the sizes of what is written."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.sizes: list[int] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        self.sizes.append(len(data))
        self._transport.write(data)


async def test_a_large_answer_leaves_in_pieces(serve: Serve) -> None:
    """Check that the memory of a piece can be used again for the next one."""
    running = await serve(**tls_settings())
    await running.create_topic("large")
    value = bytes(range(256)) * 3_000
    async with await running.connect(tls=client_tls()) as client:
        await client.call(produce_values("large", value), 9)
        (connection,) = running.server.connections
        transport = connection._transport  # type: ignore[attr-defined]
        watched = transport._socket = WatchedSocket(transport._socket)
        fetched = await client.call(fetch_from("large"), 11)
    assert value in bytes(fetched.responses[0].partitions[0].records)
    pieces = -(-len(value) // tls_transport.PIECE_BYTES)
    assert len(watched.sizes) >= pieces
    assert max(watched.sizes) <= tls_transport.PIECE_BYTES + 4 * RECORD_OVERHEAD_BYTES


async def test_small_buffers_leave_in_one_record(serve: Serve) -> None:
    running = await serve(**tls_settings())
    async with await running.connect(tls=client_tls()) as client:
        await client.call(METADATA, 9)
        (connection,) = running.server.connections
        transport = connection._transport  # type: ignore[attr-defined]
        watched = transport._socket = WatchedSocket(transport._socket)
        transport.writelines([b"some", memoryview(b" small "), b"buffers"])
        assert await client.reader.readexactly(18) == b"some small buffers"
    assert watched.sizes[0] == 18 + RECORD_OVERHEAD_BYTES


async def test_a_client_has_the_principal_of_its_certificate(serve: Serve) -> None:
    running = await serve(**tls_settings(ssl_client_auth="required"))
    tls = client_tls(certificate=client_certificate())
    async with await running.connect(tls=tls) as client:
        await client.call(METADATA, 9)
        (connection,) = running.server.connections
        assert connection._context.principal == "User:CN=alice,OU=Users,O=Acme"  # type: ignore[attr-defined]


async def test_a_handshake_holds_nobody_up(serve: Serve) -> None:
    running = await serve(**tls_settings())
    async with await connect_plain(running), await running.connect(tls=client_tls()) as client:
        await client.call(METADATA, 9)


async def test_a_client_without_tls_is_one_log_line(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    running = await serve(**tls_settings())
    async with await running.connect() as client:
        client.writer.write(request_frame(METADATA, 9))
        host, port = client.writer.get_extra_info("sockname")
        await client.reader.read()  # the alert, then the end
    (line,) = failures(caplog)
    assert line.startswith(f"TLS handshake with {host}:{port} on listener SSL failed: ")
    assert "set security.protocol to SSL" in line


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_client_learns_that_its_certificate_is_missing(
    serve: Serve, caplog: pytest.LogCaptureFixture, version: ssl.TLSVersion
) -> None:
    """An alert tells it, before the end of the connection."""
    running = await serve(**tls_settings(ssl_client_auth="required"))
    tls = client_tls()
    tls.maximum_version = version
    with pytest.raises(ssl.SSLError, match=r"(?i)alert"):
        async with await running.connect(tls=tls) as client:
            await client.reader.read()
    (line,) = failures(caplog)
    assert "ssl.client.auth=required" in line


async def test_a_client_that_does_not_trust_the_broker_is_one_log_line(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    running = await serve(**tls_settings())
    with pytest.raises(ssl.SSLCertVerificationError):
        await running.connect(tls=client_tls(number=1))
    await eventually(lambda: len(failures(caplog)) == 1)
    assert "does not trust the broker's certificate" in failures(caplog)[0]


async def test_a_name_that_no_rule_matches_ends_the_connection(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    running = await serve(
        **tls_settings(ssl_client_auth="required", ssl_principal_mapping_rules="RULE:x/y/")
    )
    tls = client_tls(certificate=client_certificate())
    async with await running.connect(tls=tls) as client:
        assert await client.is_closed_by_broker()
    assert "ssl.principal.mapping.rules" in failures(caplog)[0]


async def test_a_handshake_has_a_time_limit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()
    async with InProcessBroker(tmp_path, tls_settings(), clock=clock) as running:
        async with await connect_plain(running) as client:
            clock.advance(HANDSHAKE_TIMEOUT_MS)
            assert await client.is_closed_by_broker()
        assert "not done after 30 s" in failures(caplog)[0]
        async with await running.connect(tls=client_tls()) as client:
            await client.call(METADATA, 9)
            clock.advance(HANDSHAKE_TIMEOUT_MS)
            await client.call(METADATA, 9)


async def test_a_handshake_has_a_limit_of_bytes(
    serve: Serve, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_transport, "HANDSHAKE_BYTES_MAX", 100)
    running = await serve(**tls_settings())
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await running.connect(tls=client_tls())
    assert "more than 100 bytes" in failures(caplog)[0]


async def test_a_look_at_the_port_is_no_failure(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    running = await serve(**tls_settings())
    client = await connect_plain(running)
    await client.close()
    await eventually(lambda: len(running.server.connections) == 0)
    assert failures(caplog) == []


async def test_a_client_that_leaves_in_the_handshake_is_one_log_line(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    running = await serve(**tls_settings())
    async with await connect_plain(running) as client:
        client.writer.write(b"\x16\x03\x01")
        await client.writer.drain()
    await eventually(lambda: len(running.server.connections) == 0)
    assert "the client closed the connection" in failures(caplog)[0]


async def test_a_handshake_counts_as_a_connection(serve: Serve) -> None:
    running = await serve(**tls_settings(), **{"max.connections.per.ip": "1"})
    async with await connect_plain(running), await running.connect() as refused:
        assert await refused.is_closed_by_broker()
    await eventually(lambda: len(running.server.connections) == 0)
    async with await running.connect(tls=client_tls()) as client:
        await client.call(METADATA, 9)


async def test_the_broker_stops_while_a_handshake_waits(serve: Serve) -> None:
    running = await serve(**tls_settings())
    async with await connect_plain(running) as client:
        await running.stop()
        assert await client.is_closed_by_broker()


async def test_the_end_is_told_in_both_directions(serve: Serve) -> None:
    running = await serve(**tls_settings())
    async with await running.connect(tls=client_tls()) as client:
        await client.call(METADATA, 9)
        await running.stop()
        assert await client.reader.read() == b""
        # Without the broker's word asyncio would raise or stay silent; the object knows.
        tls_object = client.writer.get_extra_info("ssl_object")
        assert tls_object is not None


async def test_bytes_that_are_no_tls_end_an_open_connection(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    running = await serve(**tls_settings())
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls_object = client_tls().wrap_bio(incoming, outgoing, server_hostname="localhost")
    async with await running.connect() as client:
        while True:
            try:
                tls_object.do_handshake()
            except ssl.SSLWantReadError:
                client.writer.write(outgoing.read())
                incoming.write(await client.reader.read(65536))
                continue
            client.writer.write(outgoing.read())
            break
        tls_object.write(request_frame(METADATA, 9))
        record = bytearray(outgoing.read())
        record[-1] ^= 1
        client.writer.write(record)
        async with asyncio.timeout(180):
            await client.reader.read()
    (line,) = failures(caplog)
    assert line.startswith("closing connection of ")


async def throttled(running: InProcessBroker, client: RawClient) -> TlsTransport:
    """Have a client go over its quota; return the broker's side of it, which hands on no bytes."""
    await running.create_topic("t")
    await running.broker.cluster.alter_config("clients", "raw", {"producer_byte_rate": "10"})
    answer = await client.call(produce_values("t", b"v" * 1000), 9)
    assert answer.throttle_time_ms > 0
    (connection,) = running.server.connections
    transport = connection._transport  # type: ignore[attr-defined]
    assert isinstance(transport, TlsTransport)
    assert not transport.is_reading()
    return transport


async def test_a_throttled_client_may_leave(serve: Serve) -> None:
    """Its word is heard and answered, though the throttle goes on: the clock stands still."""
    running = await serve(clock=ManualClock(), **tls_settings())
    client = await running.connect(tls=client_tls())
    await throttled(running, client)
    client.writer.close()
    async with asyncio.timeout(20):  # asyncio waits for the broker's word for 30 s
        await client.writer.wait_closed()
    await eventually(lambda: len(running.server.connections) == 0)


async def test_a_throttled_client_has_what_it_sent_before_it_left(serve: Serve) -> None:
    clock = ManualClock()
    running = await serve(clock=clock, **tls_settings())
    client = await running.connect(tls=client_tls())
    transport = await throttled(running, client)
    client.send(produce_values("t", b"last", acks=0), 9)
    client.writer.close()
    await eventually(lambda: transport._has_ended)
    partition = running.partitions.get("t", 0)
    assert partition.log_end_offset == 1
    clock.advance(300_000)
    await eventually(lambda: partition.log_end_offset == 2)
    await eventually(lambda: len(running.server.connections) == 0)
    await client.writer.wait_closed()


async def test_a_throttled_client_is_read_no_further_than_a_record(serve: Serve) -> None:
    clock = ManualClock()
    running = await serve(clock=clock, **tls_settings())
    async with await running.connect(tls=client_tls()) as client:
        transport = await throttled(running, client)
        for _ in range(40):
            client.send(produce_values("t", b"v" * 1000), 9)
        await eventually(lambda: not transport._socket.is_reading())
        assert len(transport._decrypted_bytes) == tls_transport.READ_AHEAD_BYTES
        await running.broker.cluster.alter_config("clients", "raw", {"producer_byte_rate": None})
        clock.advance(300_000)
        for _ in range(40):
            await client.receive()
        assert transport._decrypted_bytes == b""


# Certificates are replaced while the broker runs, as kafka-configs does it.


KEY = "listener.name.ssl.ssl.keystore.location"


def alteration(name: str, value: str) -> IncrementalAlterConfigsRequest:
    change = AlterableConfig(name=name, config_operation=0, value=value)
    return IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=4, resource_name="0", configs=[change])]
    )


async def alter(client: RawClient, name: str, value: str) -> tuple[int, str | None]:
    answer = (await client.call(alteration(name, value), 1)).responses[0]
    return answer.error_code, answer.error_message


async def trusts(running: InProcessBroker, number: int) -> bool:
    try:
        async with await running.connect(tls=client_tls(number)) as client:
            await client.call(METADATA, 9)
    except ssl.SSLCertVerificationError:
        return False
    return True


@pytest.fixture
def stores(tmp_path: Path) -> list[Path]:
    files = [tmp_path / f"{number}.pem" for number in range(2)]
    for number, file in enumerate(files):
        file.write_text(pem_of(broker_certificate(number)))
    return files


def settings_of(store: Path) -> dict[str, str]:
    settings = tls_settings()
    del settings["ssl.keystore.key"], settings["ssl.keystore.certificate.chain"]
    return {**settings, "listener.name.ssl.ssl.keystore.location": str(store)}


async def test_new_clients_get_the_new_certificate_and_others_go_on(
    serve: Serve, stores: list[Path]
) -> None:
    running = await serve(**settings_of(stores[0]))
    async with await running.connect(tls=client_tls(0)) as client:
        assert await alter(client, KEY, str(stores[1])) == (0, None)
        assert await trusts(running, 1)
        assert not await trusts(running, 0)
        await client.call(METADATA, 9)


async def test_a_store_that_cannot_be_read_is_refused(serve: Serve, stores: list[Path]) -> None:
    running = await serve(**settings_of(stores[0]))
    async with await running.connect(tls=client_tls(0)) as client:
        code, message = await alter(client, KEY, "/nowhere")
        assert code == ErrorCode.INVALID_REQUEST
        assert "/nowhere cannot be read" in str(message)
        code, message = await alter(client, "ssl.keystore.location", str(stores[1]))
        assert code == ErrorCode.INVALID_REQUEST
        assert "only per-listener using the listener prefix" in str(message)
    assert await trusts(running, 0)


async def test_a_store_that_is_replaced_in_place_is_read_with_the_next_alteration(
    serve: Serve, stores: list[Path]
) -> None:
    running = await serve(**settings_of(stores[0]))
    async with await running.connect(tls=client_tls(0)) as client:
        stores[0].write_text(stores[1].read_text())
        os.utime(stores[0], ns=(1, 1))
        assert await trusts(running, 0)
        assert await alter(client, KEY, str(stores[0])) == (0, None)
    assert await trusts(running, 1)


# Reasons of OpenSSL become sentences with the way out.


def failure(kind: type[ssl.SSLError], reason: str) -> ssl.SSLError:
    error = kind(1, f"[SSL: {reason}] {reason.lower()} (_ssl.c:1000)")
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("WRONG_VERSION_NUMBER", "set security.protocol to SSL"),
        ("TLSV1_ALERT_UNKNOWN_CA", "does not trust the broker's certificate"),
        ("NO_SHARED_CIPHER", "ssl.cipher.suites"),
        ("PEER_DID_NOT_RETURN_A_CERTIFICATE", "ssl.client.auth=required"),
        ("SOMETHING_ELSE", "something else"),
    ],
)
def test_a_reason_becomes_a_sentence(reason: str, expected: str) -> None:
    assert expected in explain_failure(failure(ssl.SSLError, reason))


def test_a_certificate_that_is_not_accepted_names_the_trust_store() -> None:
    error = failure(ssl.SSLCertVerificationError, "CERTIFICATE_VERIFY_FAILED")
    error.verify_message = "self-signed certificate"  # type: ignore[attr-defined]
    assert "(self-signed certificate)" in explain_failure(error)
    assert "ssl.truststore.location" in explain_failure(error)


def test_other_errors_are_shown_as_they_are() -> None:
    assert explain_failure(ConnectionResetError("reset by peer")) == "reset by peer"
    assert explain_failure(TimeoutError()) == "TimeoutError"
